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
LIST: dict[str, Any] = {"silences": [ITEM]}
