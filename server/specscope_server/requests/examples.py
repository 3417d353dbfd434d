"""Examples shown in the API description."""

from __future__ import annotations

from typing import Any

ANSWER: dict[str, Any] = {
    "meta_info": {
        "id": "ec9bb3cd181e437992bdf3ad42ce77f3",
        "finish_reason": {"type": "length", "length": 32},
        "prompt_tokens": 9,
        "completion_tokens": 32,
        "cached_tokens": 0,
        "e2e_latency": 0.172,
        "request_finished_ts": 1772366400.25,
        "spec_verify_ct": 13,
        "spec_num_correct_drafts": 18,
        "spec_num_proposed_drafts": 39,
        "spec_correct_drafts_histogram": [6, 0, 3, 4],
    },
    "labels": {"tenant": "search"},
}
RECEIPT: dict[str, Any] = {
    "server": "gpu1:30000",
    "accepted": 1,
    "duplicates": 0,
    "health_checks": 0,
    "without_counts": 0,
    "refused_total": 1,
    "refused": [
        {"index": 1, "reason": "the histogram has 12 steps but the engine verified 13 times"},
    ],
}
REQUESTS: dict[str, Any] = {
    "server": "gpu1:30000",
    "requests": [
        {
            "request_id": "ec9bb3cd181e437992bdf3ad42ce77f3",
            "time": "2026-03-01T12:00:00.250Z",
            "launch_id": 7,
            "prompt_tokens": 9,
            "completion_tokens": 32,
            "cached_tokens": 0,
            "verify_calls": 13,
            "accepted_drafts": 18,
            "proposed_drafts": 39,
            "accept_length": 2.3846153846153846,
            "draft_acceptance": 0.46153846153846156,
            "accepted_histogram": [6, 0, 3, 4],
            "e2e_seconds": 0.172,
            "labels": {"tenant": "search"},
        }
    ],
    "next_cursor": None,
}
