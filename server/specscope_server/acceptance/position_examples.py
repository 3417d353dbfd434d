"""The example of acceptance by position in the API description: one request, 13 cycles, h = [6, 0, 3, 4]."""

from __future__ import annotations

from typing import Any

from specscope_server.acceptance.examples import SUMMARY


def _point(position: int, offered: int, accepted: int) -> dict[str, Any]:
    return {
        "position": position,
        "offered": offered,
        "accepted": accepted,
        "survival": accepted / 13,
        "survival_low": None,
        "survival_high": None,
        "conditional": accepted / offered,
        "conditional_low": None,
        "conditional_high": None,
        "is_few": True,
    }


POSITIONS: dict[str, Any] = {
    "server": "gpu1:30000",
    "from": "2026-03-01T11:00:00.000Z",
    "to": "2026-03-01T12:00:00.000Z",
    "is_demo": False,
    "groups": [
        {
            "launch": SUMMARY["launch"],
            "num_steps": 3,
            "evidence": "request_histograms",
            "requests": 1,
            "cycles": 13,
            "accepted_drafts": 18,
            "accept_length": 1 + 18 / 13,
            "request_mean_accept_length": 1 + 18 / 13,
            "sums_to_accept_length": True,
            "positions": [_point(1, 13, 7), _point(2, 7, 7), _point(3, 7, 4)],
            "length_bounds": [1 + 0.25 * step for step in range(13)],
            "length_requests": [0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0],
            "note": "",
        }
    ],
    "requests_without_histogram": 0,
    "is_limited": False,
    "note": "",
}
