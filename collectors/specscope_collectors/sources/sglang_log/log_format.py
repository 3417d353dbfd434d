"""How an SGLang log is recognised, and what reads it."""

from __future__ import annotations

from specscope_collectors.logs.formats import LogFormat
from specscope_collectors.sources.sglang_log import SOURCE
from specscope_collectors.sources.sglang_log.reading import LogReader

MARKS = (b"Decode batch", b"Prefill batch", b"server_args=")

FORMAT = LogFormat(SOURCE, MARKS, LogReader)
