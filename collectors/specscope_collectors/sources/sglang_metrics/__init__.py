"""Source ``sglang_metrics``: the Prometheus exposition that SGLang serves on ``/metrics``."""
