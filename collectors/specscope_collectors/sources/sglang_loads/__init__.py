"""``/v1/loads`` (SGLang 0.5.8 and later): load and lifetime accept length, even without ``--enable-metrics``.

From 0.5.23 on it is answered from a shared-memory snapshot, so reading it does not disturb the schedulers.
"""

from __future__ import annotations

from specscope_collectors.sources.sglang_loads.body import Loads, NotLoadsError, parse_loads
from specscope_collectors.sources.sglang_loads.levels import to_levels

SOURCE = "sglang_loads"
PATH = "/v1/loads"

__all__ = ["PATH", "SOURCE", "Loads", "NotLoadsError", "parse_loads", "to_levels"]
