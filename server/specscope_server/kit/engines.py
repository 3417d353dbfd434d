"""How engines are called on screen."""

from __future__ import annotations

TITLES = {"sglang": "SGLang", "vllm": "vLLM"}


def engine_title(engine: str | None) -> str:
    """Return the engine's own spelling of its name; an unknown one (untrusted text) as it is stored."""
    return TITLES.get(engine or "", engine or "an unknown engine")
