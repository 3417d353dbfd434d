"""Examples shown in the API description."""

from __future__ import annotations

from typing import Any

ITEM: dict[str, Any] = {
    "id": 2,
    "name": "synth-100k",
    "version": 2,
    "kind": "slots",
    "tool": "speculators 0.4.0",
    "model": "org/target",
    "hidden_size": 7168,
    "slots": 3,
    "requests": 1024,
    "rows": 65536,
    "made": "2026-03-01T12:00:00.000Z",
    "uploaded": "2026-03-01T12:05:00.000Z",
}
LIST: dict[str, Any] = {"references": [ITEM], "next_cursor": None}
RECEIPT: dict[str, Any] = {"id": 2, "is_new": True, "reference": ITEM}
DETAIL: dict[str, Any] = {
    **ITEM,
    "dtype": "bfloat16",
    "container": "torch",
    "compression": "none",
    "boundaries": [3, 31, 59],
    "boundary_rule": "b = X + 1 (what layer X puts out), as speculators 0.3–0.4 records it, by depth",
    "boundary_source": "data_config.json",
    "last": {
        "boundary": 61,
        "norm": "pre_norm",
        "rule": "mean((h/w)²) = 1 for every token if the final norm was applied",
        "median_square": 41.7,
    },
    "files": 100000,
    "tokens": 1912031,
    "answer_rows": 40211,
    "budget_rows": 65536,
    "seed": 20260401,
    "fingerprint": "46d9edecae95a332b0e1b21e0ac717998fb1efdb71a73a328af1b3fb706d79c5",
    "sink_limits": [1.9, 4.6, 7.4, 7.9],
    "token_ids": [11, 13, 198],
    "refused": {},
    "notes": [],
    "provenance": {},
    "profiles": [
        {
            "slot": 1,
            "boundary": 31,
            "row_class": "other",
            "answers_only": False,
            "rows": 61440,
            "requests": 1024,
            "mean_ln_norm": 3.44,
            "sd_ln_norm": 0.11,
            "invariants": {"zero_rows": 0, "nonfinite_rows": 0},
        }
    ],
    "download": "/api/v1/references/2/file",
}
