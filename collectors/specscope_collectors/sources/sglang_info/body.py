"""The body of ``/server_info``, redacted and taken apart; five versions differ in what they put where."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from specscope_collectors.json_body import WrongBodyError, decode_json
from specscope_collectors.redaction import redact

# What runs (not how it was set up): changes while nothing about the launch does.
VOLATILE = frozenset({
    "internal_states", "last_gen_throughput", "avg_spec_accept_length", "memory_usage", "load", "loads",
    "status", "step_time_dict", "dspark_info_record", "timestamp", "time", "uptime", "kv_events",
    "hicache_object_layout", "env_vars", "num_running_reqs", "num_waiting_reqs", "gen_throughput",
    "token_usage", "queue",
})  # fmt: skip


class NotServerInfoError(WrongBodyError):
    """The body is no server info."""


class ServerInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What an engine says about itself, without secrets."""

    version: str | None
    config: dict[str, Any]
    """Resolved arguments and constants of the process: nothing volatile."""
    states: tuple[dict[str, Any], ...]
    """Internal state of each DP rank, in the order of the replies (which is no rank order)."""
    variables: dict[str, Any]
    """Environment of the engine's processes, as far as it tells; {} when it does not."""
    is_demo: bool


def parse_info(body: bytes, *, known_secrets: Iterable[str | None] = ()) -> ServerInfo:
    """Return what ``/server_info`` said. Raises `NotServerInfoError`."""
    info = redact(_decode(body), known=known_secrets)
    listed = info.get("internal_states")
    states = tuple(state for state in listed if isinstance(state, dict)) if isinstance(listed, list) else ()
    told = [holder["env_vars"] for holder in (info, *states) if isinstance(holder.get("env_vars"), dict)]
    version = info.get("version")
    return ServerInfo(
        version=version[:100] if isinstance(version, str) else None,
        config={key: value for key, value in info.items() if key not in VOLATILE},
        states=states,
        variables=told[0] if told else {},
        is_demo=info.get("specscope_demo") is True,
    )


def _decode(body: bytes) -> dict[str, Any]:
    info = decode_json(body, NotServerInfoError)
    if not isinstance(info, dict) or "model_path" not in info:
        raise NotServerInfoError("JSON without model_path, which every SGLang names")
    if "internal_states" not in info and "tp_size" not in info:
        raise NotServerInfoError("JSON without tp_size and internal_states, which every SGLang names")
    return info
