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
            "number": 41,
        }
    ],
    "next_cursor": None,
}
_ITEM: dict[str, Any] = REQUESTS["requests"][0]
_RANGE = {"server": "gpu1:30000", "from": "2026-03-01T11:30:00.250Z", "to": "2026-03-01T12:30:00.250Z"}
SUMMARY: dict[str, Any] = {
    **_RANGE,
    "is_demo": False,
    "total": 1,
    "sampled_every": 1,
    "requests": 1,
    "without_counts": 0,
    "without_histogram": 0,
    "cycles": 13,
    "accepted_drafts": 18,
    "proposed_drafts": 39,
    "accept_length": 2.3846153846153846,
    "accept_length_low": None,
    "accept_length_high": None,
    "request_mean_accept_length": 2.3846153846153846,
    "gap": 0.0,
    "gap_note": "Long and short requests accept alike: both means agree.",
    "draft_acceptance": 0.46153846153846156,
    "coverage": {"request_cycles": 13, "engine_cycles": 13.0, "share": 1.0},
    "checks": [
        {"name": "Σh = verify calls", "passed": True, "message": "Holds for 1 of 1 requests."},
    ],
    "outliers": {
        "judged": 0, "not_judged": 1, "low": 0, "high": 0,
        "rule": "A request stands apart when …", "requests": [],
    },
    "labels": ["tenant"],
    "note": "",
}  # fmt: skip
BREAKDOWN: dict[str, Any] = {
    **_RANGE,
    "is_demo": False,
    "by": "label:tenant",
    "title": "label tenant",
    "labels": ["tenant"],
    "parts": [
        {
            "name": "search", "kind": "value", "low": None, "high": None, "requests": 1, "cycles": 13,
            "accepted_drafts": 18, "accept_length": 2.3846153846153846, "accept_length_low": None,
            "accept_length_high": None, "request_mean_accept_length": 2.3846153846153846,
            "draft_acceptance": 0.46153846153846156, "depths": [3],
            "positions": [
                {
                    "position": 1, "offered": 13, "accepted": 7, "conditional": 0.5384615384615384,
                    "conditional_low": None, "conditional_high": None, "is_few": True,
                }
            ],
            "is_few": True,
        }
    ],
    "note": "",
}  # fmt: skip
DETAIL: dict[str, Any] = {
    **_RANGE,
    "is_demo": False,
    "request": _ITEM,
    "num_steps": 3,
    "peers": {
        "requests": 1,
        "cycles": 13,
        "accept_length": 2.3846153846153846,
        "histogram": [
            {"accepted_drafts": j, "cycles": h, "share": h / 13, "peer_cycles": h, "peer_share": h / 13}
            for j, h in enumerate((6, 0, 3, 4))
        ],
        "verdict": "not_judged",
        "note": "",
    },
    "note": "",
}
