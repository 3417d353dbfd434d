"""What a channel is told: one notification, about the alerts of one group, each as an incident card.

A notification is written once, into the outbox, and is never changed: each attempt sends the same one. All
texts may hold what a watched server said: channels escape and shorten them.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from specscope_server.kit.errors import InvalidInput

Status = Literal["firing", "resolved"]
Severity = Literal["info", "warning", "critical"]
Cause = Literal["new", "changed", "repeat", "resolved", "acknowledged", "test", "channel"]
"""Why it is sent: the first alert of a group, others since, the repeat interval, all over, somebody took it,
somebody pressed the test button, another channel fails."""


class CardValue(msgspec.Struct, frozen=True):
    """One number of a card; None = unknown."""

    name: str
    value: float | None
    unit: str = ""
    """As on screen, e.g. "tokens per cycle"; "ratio" is shown as per cent."""
    lower: float | None = None
    upper: float | None = None
    """95 % interval."""
    bound: float | None = None
    """What it was compared with."""


class CardChange(msgspec.Struct, frozen=True):
    """What changed just before: a launch, a configuration, a restart, a deploy note."""

    at_ms: int
    kind: str
    text: str


class CardLink(msgspec.Struct, frozen=True):
    """A page of the dashboard, with absolute times."""

    title: str
    url: str


class CardFigure(msgspec.Struct, frozen=True):
    """Which panel shows it, for a picture."""

    name: str
    server: str
    from_ms: int
    to_ms: int
    launch: int | None = None


class Card(msgspec.Struct, frozen=True):
    """One alert."""

    alert_id: str
    """Of this fire: the same from the fire to its resolve."""
    fingerprint: str
    """Of rule and labels: the same for each fire of that series."""
    rule: str
    title: str
    severity: Severity
    status: Status
    starts_ms: int
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    ends_ms: int | None = None
    reason: str = ""
    """In words: why it fired, or why it is over."""
    values: list[CardValue] = []
    window_from_ms: int | None = None
    window_to_ms: int | None = None
    n: int | None = None
    """What the value was computed from, e.g. cycles."""
    requests: int | None = None
    changes: list[CardChange] = []
    links: list[CardLink] = []
    """The first one is where the alert opens."""
    runbook: str = ""
    figure: CardFigure | None = None
    is_demo: bool = False
    acked_by: str = ""
    former: list[dict[str, str]] = []
    """Labels that it had earlier in this fire, before its rule was changed."""


class Notification(msgspec.Struct, frozen=True):
    """What is sent to one channel."""

    group_key: str
    group_labels: dict[str, str]
    status: Status
    """``firing`` while an alert of the group fires."""
    cause: Cause
    made_ms: int
    alerts: list[Card]
    """What is new first: fires, then what is over; then what fires as before. At least one."""
    external_url: str = ""
    """Where people reach the dashboard; "" = unknown, so that there are no links."""
    truncated_alerts: int = 0
    """Alerts of the group that fire as before and are left out."""
    known: list[str] = []
    """Ids of those of the alerts of which the channel was told before, as they are: for completeness."""
    part: int = 1
    parts: int = 1
    """Of so many notifications that tell what is new together."""

    @property
    def firing(self) -> list[Card]:
        """Return the alerts that fire."""
        return [card for card in self.alerts if card.status == "firing"]

    @property
    def resolved(self) -> list[Card]:
        """Return the alerts that are over."""
        return [card for card in self.alerts if card.status == "resolved"]

    @property
    def severity(self) -> Severity:
        """Return the worst severity, of those that fire if any does."""
        ranked: tuple[Severity, ...] = ("info", "warning", "critical")
        return max((card.severity for card in self.firing or self.alerts), key=ranked.index, default="info")


def encode(notification: Notification) -> bytes:
    """Return the JSON that the outbox keeps."""
    return msgspec.json.encode(notification)


def decode(text: bytes | str) -> Notification:
    """Return what `encode` wrote. Raises `InvalidInput`."""
    try:
        return msgspec.json.decode(text, type=Notification)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(f"a stored notification cannot be read: {error}; it is not sent") from None
