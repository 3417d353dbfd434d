"""A Prometheus Alertmanager, told by its own API."""
