"""Examples shown in the API description."""

from __future__ import annotations

from typing import Any

_ROW: dict[str, Any] = {
    "role": "asked",
    "title": "Asked for by the draft",
    "source": "configuration of the draft",
    "launch_id": 7,
    "engine_version": "0.5.15",
    "ids": [2, 30, 58],
    "rule": "SGLang 0.5.15, DeepSeek, Kimi K2 and K2.5: b = X + 1 if the first id is 1, else b = X",
    "rule_source": "SGLang's set_eagle3_layers_to_capture",
    "boundaries": [2, 30, 58],
    "reason": "",
    "notes": [],
    "is_default": False,
    "candidates": [],
}
_MESSAGE = (
    "[2, 30, 58] means [3, 31, 59] in 0.5.8 and [2, 30, 58] in 0.5.15 for DeepseekV3ForCausalLM: this "
    "upgrade moved what your draft sees (every slot is one boundary shallower)."
)
TABLE: dict[str, Any] = {
    "server": "gpu1:30000",
    "is_demo": False,
    "launch": {
        "time": "2026-03-01T12:00:00.000Z", "launch_id": 7, "label": "K=5 D=6 · 0.5.15",
        "reason": "restarted",
    },
    "engine": "sglang",
    "engine_version": "0.5.15",
    "model_class": "DeepseekV3ForCausalLM",
    "layers": 61,
    "verdict": {"state": "bad", "headline": "Layer ids disagree", "reasons": [_MESSAGE]},
    "rows": [
        _ROW,
        {
            **_ROW, "role": "previous", "title": "Earlier launch", "launch_id": 6, "engine_version": "0.5.8",
            "rule": "SGLang 0.5.8, DeepSeek, Kimi K2 and K2.5: b = X + 1 (what layer X puts out)",
            "boundaries": [3, 31, 59],
        },
    ],
    "disagreements": [{"kind": "upgrade", "is_fault": True, "message": _MESSAGE, "rows": [1, 0]}],
    "missing": ["What the running model captures: start SGLang with SPECSCOPE_PROBE=1 …"],
}  # fmt: skip
_SIDE: dict[str, Any] = {
    "name": "serving", "total": 76.7, "tokens": 6, "rms_norm": 31.31, "largest_norm": 76.7,
    "all_but_one_at_most": 34.3, "per_channel_rms": 0.37,
    "notes": ["6 rows: one unusual row moves this number"],
}  # fmt: skip
TOTALS: dict[str, Any] = {
    "verdict": "Per token the RMS differs 23.2 times, and one single row would explain all of it: this says "
    "nothing about which layer was captured.",
    "a": _SIDE,
    "b": {**_SIDE, "name": "training", "total": 3334, "tokens": 21, "rms_norm": 727.5, "largest_norm": 3334},
    "hidden_size": 7168,
    "total_ratio": 43.5,
    "rms_ratio": 23.2,
    "lengths_alone": 1.87,
    "one_row": "One row of norm 3331 beside 20 rows of 31.31 gives the whole total of training, 3334.",
    "sink_norm": 3331.1,
    "sink_factor": 106.4,
    "sink_share": 0.998,
    "cannot": ["which slot or layer the states are of"],
    "ask_instead": ["the table of layer ids, which needs no states at all"],
}
