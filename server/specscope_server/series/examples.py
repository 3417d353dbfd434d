"""Examples shown in the API description."""

from __future__ import annotations

from typing import Any

CATALOGUE: dict[str, Any] = {
    "metrics": [
        {
            "name": "spec.verify_calls",
            "kind": "increment",
            "unit": "cycles",
            "across": "sum",
            "labels": [],
            "meaning": "Verify steps of finished requests (a request's count is added when it finishes).",
        }
    ]
}
SERIES: dict[str, Any] = {
    "series": [
        {
            "id": 12,
            "server": "gpu1:30000",
            "launch_id": 7,
            "metric": "requests.running",
            "labels": {"tp_rank": "0"},
        }
    ],
    "next_cursor": None,
}
QUERY: dict[str, Any] = {
    "from": "2026-03-01T11:00:00.000Z",
    "to": "2026-03-01T11:00:30.000Z",
    "step_seconds": 10.0,
    "time_ms": [1772362800000, 1772362810000, 1772362820000],
    "series": [
        {
            "metric": "throughput.generated",
            "unit": "tokens/s",
            "stat": "mean",
            "server": "gpu1:30000",
            "launch_id": 7,
            "labels": {"model_name": "llama"},
            "members": 1,
            "values": [88.8, None, 94.0],
            "n": [2, 0, 2],
        }
    ],
}
LATEST: dict[str, Any] = {
    "latest": [
        {
            "server": "gpu1:30000",
            "launch_id": 7,
            "metric": "requests.running",
            "kind": "level",
            "unit": "requests",
            "labels": {"tp_rank": "0"},
            "time": "2026-03-01T12:00:00.000Z",
            "age_seconds": 1.2,
            "value": 8.0,
            "span_seconds": None,
        }
    ]
}
EVENTS: dict[str, Any] = {
    "events": [
        {
            "id": 3,
            "server": "gpu1:30000",
            "launch_id": 7,
            "time": "2026-03-01T11:58:00.000Z",
            "kind": "launch",
            "message": "configuration changed",
            "detail": {},
        }
    ],
    "next_cursor": None,
}
