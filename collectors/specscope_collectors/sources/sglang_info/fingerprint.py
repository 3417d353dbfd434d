"""Two fingerprints: of the configuration, and of the process that runs it."""

from __future__ import annotations

from typing import Any

import msgspec

from specscope_collectors.identity import Identity, digest
from specscope_collectors.observations import START_EVIDENCE
from specscope_collectors.sources.sglang_info.body import ServerInfo

# Can be changed while the server runs (/set_internal_state), so only the schedulers know the value in force.
LIVE_SETTINGS = (
    "speculative_accept_threshold_single", "speculative_accept_threshold_acc",
    "pp_max_micro_batch_size", "max_micro_batch_size",
)  # fmt: skip
# Measured by the scheduler during its start; the tokenizer adds its own entry later, so that one is left out.
_STARTUP_PHASES = ("load_weight", "kv_cache_allocation", "scheduler_e2e")


def identify(info: ServerInfo) -> Identity:
    """Return what tells this launch from all others; volatile values and adaptive tiers change nothing."""
    startup = startup_times(info)
    evidence = {key: info.config.get(key) for key in ("random_seed", "launch_command", "nccl_port")}
    return Identity(
        source="server_info",
        process=digest([startup, evidence]),
        configuration=digest([info.version, _settings(info)]),
        certain=any(startup.values()),
    )


def startup_times(info: ServerInfo) -> dict[str, Any]:
    """Return the start-up seconds by phase (0.5.23), of the top level or else of the slowest scheduler."""
    top = info.config.get("startup_time")
    if isinstance(top, dict):
        return {phase: top.get(phase) for phase in _STARTUP_PHASES}
    found = [state["startup_time"] for state in info.states if isinstance(state.get("startup_time"), dict)]
    # ranks reply in any order
    return max(
        ({phase: each.get(phase) for phase in _STARTUP_PHASES} for each in found), key=repr, default={}
    )


def live_values(info: ServerInfo, name: str) -> list[Any]:
    """Return the distinct values of a setting over the ranks' internal states, in a stable order."""
    distinct = {msgspec.json.encode(state[name]): state[name] for state in info.states if name in state}
    return [distinct[key] for key in sorted(distinct)]


def _settings(info: ServerInfo) -> dict[str, Any]:
    settings = {key: value for key, value in info.config.items() if key not in START_EVIDENCE}
    return settings | {f"live {name}": live_values(info, name) for name in LIVE_SETTINGS}
