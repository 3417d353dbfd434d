"""Examples shown in the API description."""

from __future__ import annotations

from typing import Any

LAUNCH: dict[str, Any] = {
    "id": 7,
    "server": "gpu1:30000",
    "key": "9f2c41d07b53e6aa",
    "first_seen": "2026-03-01T09:12:04.120Z",
    "last_seen": "2026-03-01T12:00:00.000Z",
    "reason": "configuration changed",
    "engine": "sglang",
    "engine_version": "0.5.8",
    "version_source": "server_info",
    "model": "meta-llama/Llama-3.1-8B-Instruct",
    "served_model_name": "llama",
    "dtype": "bfloat16",
    "quantization": None,
    "kv_cache_dtype": "auto",
    "algorithm": "EAGLE3",
    "num_steps": 5,
    "eagle_topk": 1,
    "num_draft_tokens": 6,
    "draft_model": "drafts/eagle3",
    "adaptive": None,
    "tp_size": 8,
    "dp_size": 1,
    "pp_size": 1,
    "ep_size": 1,
    "nnodes": 1,
    "enable_dp_attention": False,
    "is_demo": False,
}
SERVER: dict[str, Any] = {
    "name": "gpu1:30000",
    "base_url": "http://gpu1:30000",
    "created": "2026-02-27T08:00:00.000Z",
    "last_seen": "2026-03-01T12:00:00.000Z",
    "age_seconds": 1.2,
    "state": "ok",
    "launches": 3,
    "newest_launch": LAUNCH,
    "is_demo": False,
}
SERVERS: dict[str, Any] = {"servers": [SERVER], "next_cursor": None}
LAUNCHES: dict[str, Any] = {"server": "gpu1:30000", "launches": [LAUNCH], "next_cursor": None}
LAUNCH_DETAIL: dict[str, Any] = {
    "launch": LAUNCH,
    "environment": {"NCCL_NVLS_ENABLE": "0"},
    "config": {"tp_size": 8, "speculative_num_steps": 5},
    "diff": {
        "previous_id": 6,
        "added": [],
        "removed": [],
        "changed": [{"key": "speculative_num_steps", "before": 3, "after": 5}],
    },
}
