"""A finished SGLang log → launches, events and the levels of its Decode and Prefill lines."""

from __future__ import annotations

from specscope_collectors.logs.blocks import Unpacked
from specscope_collectors.sources.sglang_log.reading import LogOptions, LogReader, Portion
from specscope_collectors.sources.sglang_log.summary import Summary

SOURCE = "sglang_log"

__all__ = ["SOURCE", "LogOptions", "LogReader", "Portion", "Summary", "Unpacked"]
