"""``/server_info`` of five SGLang versions: two captured, three built from their documented shapes."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

FIXTURES = Path(__file__).parent / "fixtures"

# Server arguments that all versions have, with resolved values.
_ARGUMENTS: dict[str, Any] = {
    "model_path": "models/target",
    "tokenizer_path": "models/target",
    "served_model_name": "models/target",
    "dtype": "bfloat16",
    "quantization": "fp8",
    "kv_cache_dtype": "auto",
    "tp_size": 8,
    "dp_size": 1,
    "nnodes": 1,
    "enable_dp_attention": False,
    "random_seed": 12345,
    "api_key": "sk-engine-key-123456",
    "enable_metrics": True,
    "decode_log_interval": 40,
    "speculative_algorithm": "EAGLE3",
    "speculative_draft_model_path": "models/draft",
    "speculative_num_steps": 5,
    "speculative_eagle_topk": 4,
    "speculative_num_draft_tokens": 8,
    "speculative_accept_threshold_single": 1.0,
    "speculative_accept_threshold_acc": 1.0,
    "status": "ready",
    "max_total_num_tokens": 500_000,
    "max_req_input_len": 4090,
}


def captured(name: str) -> dict[str, Any]:
    info: dict[str, Any] = json.loads((FIXTURES / f"server_info-{name}.json").read_text())
    return info


def v0_4_6() -> dict[str, Any]:
    """Small internal state, sizes named as in 0.4.6 (no pp_size yet)."""
    state = {"attention_backend": "fa3", "last_gen_throughput": 812.5, "avg_spec_accept_length": 2.1}
    return {**_ARGUMENTS, "internal_states": [state], "version": "0.4.6.post5"}


def v0_5_2() -> dict[str, Any]:
    """As 0.4.6, with memory and load in the internal state."""
    memory = {"weight": 74.2, "kvcache": 40.1, "token_capacity": 500_000, "graph": 3.2}
    state = {"last_gen_throughput": 812.5, "memory_usage": memory, "load": 17, "avg_spec_accept_length": 2.1}
    sizes = {"pp_size": 1, "ep_size": 1}
    return {**_ARGUMENTS, **sizes, "internal_states": [state], "version": "0.5.2"}


def v0_5_15() -> dict[str, Any]:
    """Adaptive speculation over two data-parallel ranks: the schedulers hold the tier in force."""
    arguments = {
        **_ARGUMENTS, "pp_size": 1, "ep_size": 8, "dp_size": 2, "speculative_adaptive": True,
        "speculative_eagle_topk": 1, "speculative_num_steps": 3, "speculative_num_draft_tokens": 4,
    }  # fmt: skip
    live = {"speculative_num_steps": 7, "speculative_num_draft_tokens": 8, "last_gen_throughput": 900.0}
    states = [{**arguments, **live, "avg_spec_accept_length": 2.5}, {**arguments, **live}]
    return {**arguments, "internal_states": states, "kv_events": None, "version": "0.5.15"}


def all_versions() -> dict[str, dict[str, Any]]:
    return {
        "0.4.6.post5": v0_4_6(),
        "0.5.2": v0_5_2(),
        "0.5.8": captured("0.5.8"),
        "0.5.15": v0_5_15(),
        "0.5.23": captured("0.5.23"),
    }


def later(info: dict[str, Any]) -> dict[str, Any]:
    """The same launch some time later: everything volatile has moved, ranks reply in another order."""
    moved = copy.deepcopy(info)
    moved["status"] = "busy"
    moved["kv_events"] = {"sequence": 7}
    for state in moved["internal_states"]:
        state["last_gen_throughput"] = state.get("last_gen_throughput", 0) + 17.25
        state["avg_spec_accept_length"] = 1.7
        state["load"] = 4711
        state["step_time_dict"] = {"8": [0.01, 0.02]}
        if "memory_usage" in state:
            state["memory_usage"]["token_capacity"] += 1
    if moved.get("speculative_adaptive"):
        moved["internal_states"][0]["speculative_num_steps"] = 1
        moved["internal_states"][0]["speculative_num_draft_tokens"] = 2
    moved["internal_states"].reverse()
    return moved


def restarted(info: dict[str, Any]) -> dict[str, Any]:
    """Another start with the same flags."""
    again = copy.deepcopy(info)
    for holder in (again, *again["internal_states"]):
        if "random_seed" in holder:
            holder["random_seed"] += 1
        if "startup_time" in holder:
            holder["startup_time"]["scheduler_e2e"] += 0.125
    return again


def encoded(info: dict[str, Any]) -> bytes:
    return json.dumps(info).encode()
