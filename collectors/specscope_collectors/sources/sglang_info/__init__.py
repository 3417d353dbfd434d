"""``/server_info`` of SGLang (``/get_server_info`` up to 0.5.2) → one `Launch`."""

from __future__ import annotations

from specscope_collectors.sources.sglang_info.body import NotServerInfoError, ServerInfo, parse_info
from specscope_collectors.sources.sglang_info.launch import to_launch

SOURCE = "sglang_info"
PATHS = ("/server_info", "/get_server_info")
"""In this order: 0.5.8 and later log a deprecation warning for each call of the second, 0.5.2 and earlier
answer 404 to the first."""

__all__ = ["PATHS", "SOURCE", "NotServerInfoError", "ServerInfo", "parse_info", "to_launch"]
