"""An alert that fires, as the stages pass it on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from specscope_server.alerts.channels.notification import Card


@dataclass(frozen=True, slots=True)
class Alert:
    """One fire that is not over."""

    fingerprint: str
    alert_id: str
    rule: str
    labels: Mapping[str, str]
    """Of the series and of the rule, and ``rule``, ``severity``, ``category``, ``model``. Untrusted."""
    fired_ms: int
    card: Card
    is_idle: bool = False
    """The engine does no work, so that nothing new can be said."""
    acked_by: str = ""
    muted_by: str = ""
    """As the row says: what the last pass found."""
