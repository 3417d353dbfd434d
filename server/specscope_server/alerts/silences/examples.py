"""Examples of the answers about silences."""

from __future__ import annotations

from typing import Any

ITEM: dict[str, Any] = {
    "id": 3,
    "state": "active",
    "matchers": [{"label": "server", "operator": "=~", "value": "gpu[0-9]+:30000"}],
    "text": 'server=~"gpu[0-9]+:30000"',
    "reason": "new draft is being rolled out",
    "owner": "ana",
    "starts": "2026-03-01T12:00:00.000Z",
    "ends": "2026-03-01T14:00:00.000Z",
    "created": "2026-03-01T11:59:12.402Z",
    "expired_by": None,
    "alerts": 2,
    "matches": 2,
    "warning": "",
}
PREVIEW: dict[str, Any] = {
    "matches": 1,
    "known": 0,
    "warning": "",
    "alerts": [
        {
            "alert_id": "3f0c9a51b2d64e87-19caa2f8b40",
            "fingerprint": "3f0c9a51b2d64e87a1c5d2e9f0b34a76",
            "rule": "dead-draft",
            "title": "Almost no draft is right",
            "severity": "critical",
            "state": "firing",
            "labels": {
                "category": "acceptance",
                "rule": "dead-draft",
                "server": "gpu1:30000",
                "severity": "critical",
            },
        }
    ],
}
LIST: dict[str, Any] = {"silences": [ITEM]}
