"""How a vLLM log is recognised, and what reads it."""

from __future__ import annotations

from specscope_collectors.logs.formats import LogFormat
from specscope_collectors.sources.vllm_log import SOURCE
from specscope_collectors.sources.vllm_log.reading import VllmLogReader

MARKS = (
    b"SpecDecoding metrics: ", b"Speculative metrics: Draft acceptance rate", b"Avg prompt throughput: ",
    b"vLLM API server version", b"Initializing a V1 LLM engine", b"Initializing an LLM engine (v",
    b"Initializing a V0 LLM engine",
)  # fmt: skip

FORMAT = LogFormat(SOURCE, MARKS, VllmLogReader)
