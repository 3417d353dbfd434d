"""Examples shown in the API description."""

from __future__ import annotations

from typing import Any

BODY: dict[str, Any] = {
    "name": "low-acceptance", "title": "Acceptance is low", "category": "acceptance",
    "condition": {
        "kind": "threshold", "signal": "acceptance.accept_length", "window": "10m", "below": 1.8,
        "on": "interval", "match": {"server": "gpu*"},
    },
    "for": "10m", "runbook": "https://wiki.example.org/low-acceptance",
}  # fmt: skip
ITEM: dict[str, Any] = {
    "name": "low-acceptance", "title": "Acceptance is low", "category": "acceptance", "severity": "warning",
    "origin": "api", "enabled": True, "version": 1, "is_overridden": False,
    "updated": "2026-03-01T12:00:00.000Z", "rule": BODY,
}  # fmt: skip
LIST: dict[str, Any] = {"rules": [ITEM]}
VALIDATION: dict[str, Any] = {
    "is_valid": False,
    "problems": [
        {
            "field": "condition.belw",
            "reason": "'belw' is not known here. Did you mean 'below'? Known: above, below, kind, match, on, "
            "signal, window",
        }
    ],
    "rule": None, "now": [], "is_limited": False,
}  # fmt: skip
VERSIONS: dict[str, Any] = {
    "name": "low-acceptance",
    "versions": [{"version": 1, "made": "2026-03-01T12:00:00.000Z", "actor": "local", "rule": BODY}],
}
BACKTEST: dict[str, Any] = {
    "words": "It would have fired 1 time in these 7 days",
    "from": "2026-02-22T12:00:00.000Z", "to": "2026-03-01T12:00:00.000Z", "step_seconds": 404.0,
    "instants": 1497, "fired": 1, "pending_only": 2, "counts": {"ok": 1400, "breach": 37, "no_data": 60},
    "covered_from": "2026-02-22T12:00:00.000Z", "is_limited": False, "problems": [],
    "fires": [
        {
            "labels": {"server": "gpu1:30000"}, "pending": "2026-02-27T08:10:00.000Z",
            "from": "2026-02-27T08:20:00.000Z", "to": "2026-02-27T11:02:00.000Z", "peak": 1.21,
            "peak_at": "2026-02-27T09:31:00.000Z", "lower": 1.19, "upper": 1.23, "n": 61200,
            "unit": "tokens/cycle", "n_unit": "cycles",
            "reason": "1.21 tokens/cycle (95 % interval 1.19 to 1.23), below 1.8 tokens/cycle with its "
            "whole interval",
            "page": "/acceptance?server=gpu1%3A30000&from=2026-02-27T08%3A00%3A00.000Z"
            "&to=2026-02-27T11%3A12%3A00.000Z",
        }
    ],
}  # fmt: skip
SIGNALS: dict[str, Any] = {
    "signals": [
        {
            "name": "acceptance.accept_length", "unit": "tokens/cycle",
            "meaning": "Accept length τ from the best evidence, bonus included.", "labels": [],
            "n_unit": "cycles", "has_interval": True,
        }
    ]
}  # fmt: skip
KINDS: dict[str, Any] = {
    "kinds": [
        {
            "kind": "threshold",
            "meaning": "The value, or its whole interval, lies above or below a limit.",
            "fields": {"below": {"anyOf": [{"type": "number"}, {"type": "null"}], "default": None}},
        }
    ]
}
