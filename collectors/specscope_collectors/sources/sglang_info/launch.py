"""`ServerInfo` → `Launch`."""

from __future__ import annotations

from typing import Any

import msgspec

from specscope_collectors.observations import Launch, Parallelism, SpeculativeConfig
from specscope_collectors.sources.sglang_info.body import ServerInfo
from specscope_collectors.sources.sglang_info.environment import chosen
from specscope_collectors.sources.sglang_info.fingerprint import live_values

MAX_TEXT = 500
MAX_CONFIG_BYTES = 400_000
TOO_LARGE = "[too large]"
_LARGEST = 2**31


def to_launch(info: ServerInfo, *, key: str, time_ms: int, reason: str = "first seen") -> Launch:
    """Return the launch that this info describes; what the engine did not say is None."""
    config = info.config
    return Launch(
        key=key,
        time_ms=time_ms,
        engine="sglang",
        engine_version=info.version,
        version_source="server_info" if info.version else None,
        reason=reason,
        model=text(config.get("model_path")),
        served_model_name=text(config.get("served_model_name")),
        dtype=text(config.get("dtype")),
        quantization=text(config.get("quantization")),
        kv_cache_dtype=text(config.get("kv_cache_dtype")),
        speculative=speculative_of(info),
        parallelism=parallelism_of(config),
        environment=chosen(info.variables),
        config=bounded(config),
        is_demo=info.is_demo,
    )


def bounded(config: dict[str, Any]) -> dict[str, Any]:
    """Return ``config`` without its largest values, if need be: a launch that is too large is not stored."""
    sizes = {name: len(msgspec.json.encode(value)) for name, value in config.items()}
    excess = sum(sizes.values()) + sum(map(len, config)) - MAX_CONFIG_BYTES
    kept = dict(config)
    for name in sorted(sizes, key=sizes.__getitem__, reverse=True):
        if excess <= 0:
            break
        excess -= sizes[name]
        kept[name] = TOO_LARGE
    return kept if excess <= 0 else {}


def speculative_of(info: ServerInfo) -> SpeculativeConfig:
    """Return the resolved speculative arguments; under adaptive speculation the values in force."""
    config = info.config
    algorithm = text(config.get("speculative_algorithm"))
    if algorithm is None or algorithm.upper() == "NONE":
        return SpeculativeConfig()
    adaptive = flag(config.get("speculative_adaptive"))
    return SpeculativeConfig(
        algorithm=algorithm,
        num_steps=_in_force(info, "speculative_num_steps", adaptive=adaptive),
        eagle_topk=integer(config.get("speculative_eagle_topk")),
        num_draft_tokens=_in_force(info, "speculative_num_draft_tokens", adaptive=adaptive),
        draft_model=text(config.get("speculative_draft_model_path")),
        adaptive=adaptive,
    )


def parallelism_of(config: dict[str, Any]) -> Parallelism:
    """Return the parallel sizes."""
    return Parallelism(
        tp_size=integer(config.get("tp_size")),
        dp_size=integer(config.get("dp_size")),
        pp_size=integer(config.get("pp_size")),
        ep_size=integer(config.get("ep_size")),
        nnodes=integer(config.get("nnodes")),
        enable_dp_attention=flag(config.get("enable_dp_attention")),
    )


def expected_reporters(parallelism: Parallelism) -> int:
    """Return how many schedulers publish gauges by default: one per data-parallel rank and pipeline stage."""
    return (parallelism.dp_size or 1) * (parallelism.pp_size or 1)


def expected_ranks(parallelism: Parallelism) -> int:
    """Return how many schedulers run; with DP attention the DP ranks share the tensor-parallel group."""
    replicas = 1 if parallelism.enable_dp_attention else parallelism.dp_size or 1
    return (parallelism.tp_size or 1) * (parallelism.pp_size or 1) * replicas


def text(value: Any) -> str | None:
    """Return a non-empty string, bounded; None for anything else."""
    return value[:MAX_TEXT] if isinstance(value, str) and value else None


def integer(value: Any) -> int | None:
    """Return a whole number ≥ 0; None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _LARGEST else None


def flag(value: Any) -> bool | None:
    """Return a boolean; None for anything else."""
    return value if isinstance(value, bool) else None


def _in_force(info: ServerInfo, name: str, *, adaptive: bool | None) -> int | None:
    """The value of the whole launch, unless adaptive and all ranks agree on another one now."""
    resolved = integer(info.config.get(name))
    live = [value for value in map(integer, live_values(info, name)) if value is not None]
    if len(live) == 1 and (adaptive or resolved is None):
        return live[0]
    return resolved
