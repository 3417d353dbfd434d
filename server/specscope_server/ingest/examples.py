"""Examples for the API's description."""

from __future__ import annotations

from typing import Any

COLLECTOR = "watch:gpu1:30000@http://gpu1:30000#k3v9"

BATCH: dict[str, Any] = {
    "collector_id": COLLECTOR,
    "sequence": 17,
    "target": {"name": "gpu1:30000", "base_url": "http://gpu1:30000"},
    "launch_key": "5f0c2d7f",
    "observations": [
        {
            "type": "increment",
            "metric": "spec.verify_calls",
            "labels": {"tp_rank": "0"},
            "time_ms": 1_772_366_400_000,
            "span_ms": 5_000,
            "value": 412,
        }
    ],
}

RECEIPT: dict[str, Any] = {
    "applied": 1,
    "repeated": 0,
    "batches": [
        {
            "collector_id": COLLECTOR,
            "sequence": 17,
            "outcome": "applied",
            "samples": 1,
            "distributions": 0,
            "refused": {},
            "applied_up_to": None,
            "also_collected_by": [],
        }
    ],
}

POSITION: dict[str, Any] = {"collector_id": COLLECTOR, "sequence": 17}

LAUNCH: dict[str, Any] = {
    "server": "gpu1:30000",
    "base_url": "http://gpu1:30000",
    "launch_key": "5f0c2d7f",
    "first_seen": "2026-03-01T12:00:00.000Z",
    "random_seed": 402_731_112,
}
