"""What vLLM says about itself when it starts → a `Launch`."""

from __future__ import annotations

import re
from typing import Any

from specscope_collectors.identity import digest
from specscope_collectors.observations import Launch, Parallelism, SpeculativeConfig
from specscope_collectors.redaction import redact_text

START = re.compile(
    r"Initializing (?:an? )?(V0|V1)?\s?(?:LLM engine|LLMEngine) \(v([\w.+\-]{1,60})\) with config: "
)
NEEDLE = b"Initializing a"
MAX_LINE = 20_000
MAX_TEXT = 500


def read_start(line: str) -> dict[str, Any] | None:
    """Return what a start line says, without secrets; None if it is none."""
    match = START.search(line[:MAX_LINE])
    if match is None:
        return None
    text = redact_text(line[match.end() : MAX_LINE])
    speculative = re.search(r"speculative_config=(?:SpeculativeConfig)?\(([^)]{0,2000})\)", text)
    own = text.replace(speculative[0], "") if speculative else text
    found: dict[str, Any] = {"version": match[2], "core": match[1]}
    for name in ("model", "dtype", "quantization", "kv_cache_dtype", "served_model_name"):
        found[name] = _text(own, name)
    for name in ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size"):
        found[name] = _integer(own, name)
    if speculative:
        found["method"] = _text(speculative[1], "method")
        found["draft_model"] = _text(speculative[1], "model")
        found["depth"] = _integer(speculative[1], "num_spec_tokens")
    return {name: value for name, value in found.items() if value is not None}


def to_launch(found: dict[str, Any], *, salt: str, time_ms: int, reason: str) -> Launch:
    """Return the launch that begins with this line."""
    depth = found.get("depth")
    is_on = depth is not None or "method" in found
    return Launch(
        key=digest(["vllm_log", salt, found, time_ms])[:32],
        time_ms=time_ms,
        engine="vllm",
        engine_version=found.get("version"),
        version_source="log_lines" if "version" in found else None,
        reason=reason,
        model=found.get("model"),
        served_model_name=found.get("served_model_name"),
        dtype=found.get("dtype"),
        quantization=found.get("quantization"),
        kv_cache_dtype=found.get("kv_cache_dtype"),
        speculative=SpeculativeConfig(
            algorithm=str(found.get("method") or "draft model") if is_on else None,
            num_steps=depth,
            num_draft_tokens=depth + 1 if depth is not None else None,
            draft_model=found.get("draft_model"),
        ),
        parallelism=Parallelism(
            tp_size=found.get("tensor_parallel_size"),
            pp_size=found.get("pipeline_parallel_size"),
            dp_size=found.get("data_parallel_size"),
        ),
        config=found,
    )


def unknown_launch(*, salt: str, time_ms: int) -> Launch:
    """Return the launch of lines before any start line."""
    return Launch(key=digest(["vllm_log", salt])[:32], time_ms=time_ms, engine="vllm")


def _text(text: str, name: str) -> str | None:
    match = re.search(rf"(?<![\w]){name}='?([^',()]{{1,{MAX_TEXT}}})", text)
    return None if match is None or match[1] == "None" else match[1].strip()


def _integer(text: str, name: str) -> int | None:
    match = re.search(rf"(?<![\w]){name}=(\d{{1,6}})(?!\d)", text)
    return int(match[1]) if match else None
