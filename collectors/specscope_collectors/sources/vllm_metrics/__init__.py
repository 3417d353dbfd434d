"""Source ``vllm_metrics``: vLLM, from what it serves on ``/metrics``, ``/version`` and ``/v1/models``.

`table` says which raw name is which canonical metric, `renaming` brings all versions to the newest spelling
and to our labels, `speculation` checks what the counters say together, `info` tells launches apart, and
`engine` is what the collectors find.
"""
