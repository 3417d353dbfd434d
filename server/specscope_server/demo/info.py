"""The JSON answers of the demo engine: ``/server_info``, ``/v1/loads``, ``/model_info``, ``/v1/models``.

Each says so: ``specscope_demo`` is true, and the served model name ends with `` (demo)``.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from specscope_server.demo.exposition import TP_SIZE
from specscope_server.demo.player import CONTEXT_LENGTH, KV_TOKENS, Player
from specscope_server.demo.scheduler import MAX_RUNNING, Scheduler
from specscope_server.demo.telemetry import LOG_INTERVAL

MODEL_CLASS, LAYERS = "KimiK25ForConditionalGeneration", 61
MODEL_PATH, DRAFT_PATH = "demo/Kimi-K2.5", "demo/Kimi-K2.5-EAGLE3"
IS_NEW = "0.5.23"
DEVICE_TIMER = {"SGLANG_ENABLE_METRICS_DEVICE_TIMER": "1"}

_ARGUMENTS: dict[str, Any] = {
    "tokenizer_mode": "auto",
    "load_format": "auto",
    "trust_remote_code": True,
    "context_length": None,
    "json_model_override_args": "{}",
    "dtype": "bfloat16",
    "quantization": "compressed-tensors",
    "kv_cache_dtype": "auto",
    "mem_fraction_static": 0.85,
    "max_running_requests": MAX_RUNNING,
    "max_total_tokens": None,
    "chunked_prefill_size": 16384,
    "max_prefill_tokens": 16384,
    "schedule_policy": "fcfs",
    "schedule_conservativeness": 1.0,
    "page_size": 1,
    "disable_radix_cache": False,
    "disable_overlap_schedule": True,
    "num_continuous_decode_steps": 1,
    "stream_interval": 1,
    "device": "cuda",
    "tp_size": TP_SIZE,
    "pp_size": 1,
    "dp_size": 1,
    "ep_size": 1,
    "nnodes": 1,
    "node_rank": 0,
    "enable_dp_attention": False,
    "moe_a2a_backend": "none",
    "moe_runner_backend": "auto",
    "attention_backend": "flashinfer",
    "sampling_backend": "flashinfer",
    "grammar_backend": "xgrammar",
    "watchdog_timeout": 300,
    "log_level": "info",
    "enable_metrics": True,
    "enable_metrics_for_all_schedulers": False,
    "decode_log_interval": LOG_INTERVAL,
    "enable_priority_scheduling": False,
    "api_key": None,
    "admin_api_key": None,
    "weight_version": "default",
    "disable_cuda_graph": False,
    "disable_custom_all_reduce": False,
    "enable_nccl_nvls": False,
    "enable_mscclpp": False,
    "enable_symm_mem": False,
    "speculative_draft_model_revision": "main",
    "speculative_accept_threshold_single": 1.0,
    "speculative_accept_threshold_acc": 1.0,
    "speculative_token_map": None,
    "speculative_attention_mode": "prefill",
    "speculative_draft_attention_backend": None,
    "speculative_moe_runner_backend": "auto",
    "speculative_moe_a2a_backend": None,
    "speculative_draft_model_quantization": None,
    "enable_multi_layer_eagle": False,
    "disaggregation_mode": "null",
}


def _speculative(player: Player, scheduler: Scheduler) -> dict[str, Any]:
    plan = scheduler.launch.plan
    if not plan.model.num_steps:
        names = ("algorithm", "draft_model_path", "num_steps", "eagle_topk", "num_draft_tokens")
        return {f"speculative_{name}": None for name in names}
    eagle = {
        "use_aux_hidden_state": True,
        "eagle_aux_hidden_state_layer_ids": list(player.version.draft_ids(plan.aux_layers)),
    }
    return {
        "speculative_algorithm": "EAGLE3",
        "speculative_draft_model_path": DRAFT_PATH,
        "speculative_num_steps": plan.model.num_steps,
        "speculative_eagle_topk": 1,
        "speculative_num_draft_tokens": plan.model.num_draft_tokens,
        # SGLang reads these layers from the draft's config.json and does not show them; the demo does.
        "speculative_demo_draft_config": {"eagle_config": eagle},
    }


def _launch_command(scheduler: Scheduler) -> str:
    plan = scheduler.launch.plan
    words = ["--model-path", MODEL_PATH, "--tp-size", str(TP_SIZE), "--trust-remote-code", "--enable-metrics"]
    if plan.model.num_steps:
        words += ["--speculative-algorithm", "EAGLE3", "--speculative-draft-model-path", DRAFT_PATH]
        words += ["--speculative-num-steps", str(plan.model.num_steps), "--speculative-eagle-topk", "1"]
        words += ["--speculative-num-draft-tokens", str(plan.model.num_draft_tokens)]
    return " ".join(words)


def _arguments(player: Player, scheduler: Scheduler, host: str, port: int) -> dict[str, Any]:
    return {
        "specscope_demo": True,
        "model_path": MODEL_PATH,
        "tokenizer_path": MODEL_PATH,
        "served_model_name": player.model_name,
        "host": host,
        "port": port,
        "random_seed": player.random_seed(scheduler.launch),
        **_ARGUMENTS,
        **_speculative(player, scheduler),
        # Its graphs would hold other layers than the draft names, which is not what the story is about.
        "disable_cuda_graph": player.version.ids_are_outputs,
        "speculative_demo_model_config": {"architectures": [MODEL_CLASS], "num_hidden_layers": LAYERS},
    }


def _startup_time(player: Player, scheduler: Scheduler) -> dict[str, Any]:
    return {**player.startup(scheduler.launch), "cuda_graph": {"decode": 14.2, "target_verify": 21.7}}


def _internal_state(player: Player, scheduler: Scheduler) -> dict[str, Any]:
    telemetry = scheduler.telemetry
    state: dict[str, Any] = {
        "last_gen_throughput": telemetry.gauges.get("gen_throughput", 0.0),
        "memory_usage": {"weight": 74.2, "kvcache": 41.5, "token_capacity": KV_TOKENS, "graph": 5.4},
        "effective_max_running_requests_per_dp": MAX_RUNNING,
        "env_vars": DEVICE_TIMER | scheduler.launch.plan.environment,
    }
    if telemetry.lifetime.request_steps:
        state["avg_spec_accept_length"] = telemetry.lifetime.tokens / telemetry.lifetime.request_steps
    if player.version.name == IS_NEW:
        state["memory_usage"] |= {"graph": {"decode": 1.9, "target_verify": 2.6}, "token_capacity_swa": None}
        state |= {"world_size": TP_SIZE, "startup_time": _startup_time(player, scheduler)}
    return state


def server_info(player: Player, scheduler: Scheduler, host: str, port: int) -> dict[str, Any]:
    """Return ``/server_info`` of the launch that is up."""
    arguments = _arguments(player, scheduler, host, port)
    answer = {
        **arguments,
        "status": "ready",
        "max_total_num_tokens": KV_TOKENS,
        "max_req_input_len": CONTEXT_LENGTH - 6,
        "internal_states": [{**arguments, **_internal_state(player, scheduler)}],
        "version": player.version.name,
    }
    if player.version.name == IS_NEW:
        answer |= {
            "launch_command": _launch_command(scheduler),
            "startup_time": _startup_time(player, scheduler),
            "kv_events": None,
            "frontend": "python",
        }
    return answer


def _load(player: Player, scheduler: Scheduler) -> dict[str, Any]:
    telemetry, gauges = scheduler.telemetry, scheduler.telemetry.gauges
    used = gauges.get("num_used_tokens", 0)
    load: dict[str, Any] = {
        "dp_rank": 0,
        "num_running_reqs": len(scheduler.running),
        "num_waiting_reqs": len(scheduler.waiting),
        "num_used_tokens": used,
        "max_total_num_tokens": KV_TOKENS,
        "max_running_requests": MAX_RUNNING,
        "token_usage": used / KV_TOKENS,
        "gen_throughput": gauges.get("gen_throughput", 0.0),
        "cache_hit_rate": gauges.get("cache_hit_rate", 0.0),
        "utilization": 0.0,
        "memory": {"weight_gb": 74.2, "kv_cache_gb": 41.5, "graph_gb": 5.4, "token_capacity": KV_TOKENS},
        "queues": {"waiting": len(scheduler.waiting), "grammar": 0, "paused": 0, "retracted": 0},
    }
    if telemetry.lifetime.request_steps:
        lifetime = telemetry.lifetime.tokens / telemetry.lifetime.request_steps
        load["speculative"] = {"accept_length": lifetime, "accept_rate": gauges["spec_accept_rate"]}
    return load


def loads(player: Player, scheduler: Scheduler) -> dict[str, Any]:
    """Return ``/v1/loads``; the moment it carries is that of the story's clock."""
    seconds = (player.started_ms + player.elapsed_ms) / 1000
    load = _load(player, scheduler)
    stamp = datetime.fromtimestamp(seconds, UTC).isoformat()
    answer: dict[str, Any] = {"timestamp": stamp, "version": player.version.name, "specscope_demo": True}
    if player.version.name == IS_NEW:
        used = load["num_used_tokens"]
        load |= {"timestamp": seconds, "num_waiting_uncached_tokens": 0, "num_total_tokens": used}
        return {**answer, "accelerator": "demo", "num_accelerators": TP_SIZE, "loads": [load]}
    load["num_total_reqs"] = load["num_running_reqs"] + load["num_waiting_reqs"]
    aggregate = {
        "total_running_reqs": load["num_running_reqs"],
        "total_waiting_reqs": load["num_waiting_reqs"],
        "total_reqs": load["num_total_reqs"],
        "avg_token_usage": load["token_usage"],
        "avg_throughput": load["gen_throughput"],
        "avg_utilization": 0.0,
    }
    return {**answer, "dp_rank_count": 1, "loads": [load], "aggregate": aggregate}


def model_info(player: Player) -> dict[str, Any]:
    """Return ``/model_info``."""
    answer: dict[str, Any] = {
        "specscope_demo": True,
        "model_path": MODEL_PATH,
        "tokenizer_path": MODEL_PATH,
        "is_generation": True,
        "preferred_sampling_params": None,
        "weight_version": "default",
        "has_image_understanding": True,
        "has_audio_understanding": False,
        "model_type": "kimi_k25",
        "architectures": [MODEL_CLASS],
    }
    if player.version.name == IS_NEW:
        answer |= {
            "served_model_name": player.model_name,
            "load_format": "auto",
            "disaggregation_mode": "null",
        }
    return answer


def models(player: Player) -> dict[str, Any]:
    """Return ``/v1/models``."""
    card = {
        "id": player.model_name,
        "object": "model",
        "created": player.started_ms // 1000,
        "owned_by": "specscope-demo",
        "root": player.model_name,
        "parent": None,
        "max_model_len": CONTEXT_LENGTH,
    }
    return {"object": "list", "data": [card], "specscope_demo": True}
