"""Notifications for the tests of channels and deliveries."""

from __future__ import annotations

from typing import Any

from specscope_server.alerts.channels.notification import (
    Card,
    CardChange,
    CardFigure,
    CardLink,
    CardValue,
    Notification,
)

NOW_MS = 1_772_366_400_000
"""2026-03-01T12:00:00Z."""


def card(number: int = 1, status: str = "firing", **changes: Any) -> Card:
    """Return one alert of a dead draft."""
    at_ms = NOW_MS - 600_000
    fields: dict[str, Any] = {
        "alert_id": f"a{number}",
        "fingerprint": f"f{number:031d}",
        "rule": "dead-draft",
        "title": "The draft is dead",
        "severity": "critical",
        "status": status,
        "starts_ms": at_ms,
        "ends_ms": NOW_MS - 1_000 if status == "resolved" else None,
        "labels": {"server": f"gpu{number}:30000", "model": "qwen"},
        "reason": "τ is 1.02 (at most 1.05) since 10 minutes: nearly no draft is accepted",
        "values": [CardValue("accept length τ", 1.02, "tokens per cycle", 1.01, 1.03, 1.05)],
        "window_from_ms": at_ms - 300_000,
        "window_to_ms": at_ms,
        "n": 48_211,
        "requests": 512,
        "changes": [CardChange(at_ms - 60_000, "launch", "speculative_num_steps 5 → 3")],
        "links": [CardLink("Acceptance", "https://specscope.example/acceptance?server=gpu1&from=1&to=2")],
        "runbook": "https://specscope.example/docs/dead-draft",
        "figure": CardFigure("accept-length", f"gpu{number}:30000", at_ms - 300_000, NOW_MS),
    }
    return Card(**{**fields, **changes})


def notification(*cards: Card, **changes: Any) -> Notification:
    """Return what is sent about these alerts."""
    alerts = list(cards) or [card()]
    status = "firing" if any(each.status == "firing" for each in alerts) else "resolved"
    fields: dict[str, Any] = {
        "group_key": "{}/{server=gpu1}",
        "group_labels": {"server": "gpu1:30000"},
        "status": status,
        "cause": "new" if status == "firing" else "resolved",
        "made_ms": NOW_MS,
        "alerts": alerts,
        "external_url": "https://specscope.example",
    }
    return Notification(**{**fields, **changes})


def hostile(number: int = 1) -> Card:
    """Return an alert whose texts came from somebody who wants to break out of the message."""
    text = (
        "<!channel> @everyone <script>alert(1)</script> *b* `c` [x](https://evil) \u202e\n\r\nBcc: x@evil "
        * 60
    )
    return card(
        number, title=text, reason=text, labels={f"{text}{place}": text for place in range(40)},
        annotations={f"{text}{place}": text for place in range(40)},
        values=[CardValue(text, float("nan"), text)] * 40, runbook="javascript:alert(1)",
        changes=[CardChange(NOW_MS, text, text)] * 40,
        links=[CardLink(text, "javascript:alert(1)"), CardLink(text, "https://ok.example/" + "a" * 5_000)],
    )  # fmt: skip
