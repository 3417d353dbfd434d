"""Examples shown in the API description."""

from __future__ import annotations

from typing import Any

RUNS: dict[str, Any] = {
    "server": "gpu1:30000",
    "is_demo": False,
    "is_limited": False,
    "runs": [
        {
            "run": 1772366400000,
            "time": "2026-03-01T12:00:00.000Z",
            "launch_id": 7,
            "prompt_set": "5b1c0d7e9f32",
            "prompts": 24,
            "cycles": 640,
            "accepted_drafts": 896,
            "accept_length": 2.4,
            "request_mean_accept_length": 2.43,
            "e2e_seconds": 0.81,
            "outputs_changed": 0,
        }
    ],
}
COMPARISON: dict[str, Any] = {
    "server": "gpu1:30000",
    "prompt_set": "5b1c0d7e9f32",
    "is_demo": False,
    "verdict": "The accept length fell by 3.6 % "
    "(95 % interval −4.9 % … −2.3 %; 20 of 24 prompts fell, 2 rose)",
    "state": "bad",
    "a": {"words": "launch 6", "launch_ids": [6], "runs": 12, "prompts": 24, "accept_length": 2.49},
    "b": {"words": "launch 7", "launch_ids": [7], "runs": 3, "prompts": 24, "accept_length": 2.4},
    "changes": [
        {
            "name": "accept_length",
            "pairs": 24,
            "change": -0.036,
            "low": -0.049,
            "high": -0.023,
            "p_value": 0.00005,
            "lower": 20,
            "higher": 2,
            "is_shown": True,
        }
    ],
    "outputs_changed": 0,
    "pairs": [
        {
            "prompt": "code-lru",
            "a_accept_length": 2.91,
            "b_accept_length": 2.78,
            "a_cycles": 264,
            "b_cycles": 69,
            "a_e2e_seconds": 0.71,
            "b_e2e_seconds": 0.74,
            "same_output": True,
        }
    ],
}
