"""Examples shown in the API description."""

from __future__ import annotations

from typing import Any

SOURCE: dict[str, Any] = {
    "server": "gpu1:30000",
    "source": "sglang_metrics",
    "state": "disabled",
    "since": "2026-03-01T11:58:00.000Z",
    "time": "2026-03-01T12:00:00.000Z",
    "age_seconds": 1.2,
    "last_good": None,
    "url": "http://gpu1:30000/metrics",
    "http_status": 404,
    "duration_seconds": 0.004,
    "body_bytes": 22,
    "series": None,
    "refused": 0,
    "detail": "http://gpu1:30000/metrics answers 404",
    "remedy": "start SGLang with --enable-metrics",
    "missing": {},
}
PROBE: dict[str, Any] = {
    "rank": "pp 0, tp 0",
    "version": "0.1.0",
    "engine_version": "0.5.23",
    "worker": "EAGLEWorkerV2",
    "clock": "device",
    "parts": {"timing": "on", "accepts": "on", "output": "on"},
    "is_well": True,
    "time_every": 1,
    "cost_share": 0.0011,
    "measured_seconds": 3411.2,
}

SOURCES: dict[str, Any] = {
    "servers": [
        {
            "server": "gpu1:30000",
            "base_url": "http://gpu1:30000",
            "state": "partial",
            "is_demo": False,
            "is_collector": False,
            "ranks": {
                "reporting": 6,
                "expected": 8,
                "missing": ["dp 3", "dp 5"],
                "text": "6/8 ranks: missing dp 3, 5",
                "note": "",
            },
            "sources": [SOURCE],
            "probes": [PROBE],
            "states": {
                "rows": 41_204,
                "compared_ranks": 8,
                "waiting": None,
                "findings": [
                    {
                        "kind": "embedding",
                        "words": "one slot was the embedding, no layer's output, in 3 windows",
                        "ranks": ["pp 0, tp 0"],
                        "count": 3,
                    }
                ],
            },
        }
    ]
}
