"""What a kind of channel is: its settings, how a notification is written for it, what its answers mean.

A kind is a folder `alerts/channels/<kind>/` whose ``kind.py`` has ``KIND``; nothing else names it. Kinds do
no network and no disk: `alerts/delivery` sends what they write.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from specscope_server.alerts.channels.notification import Notification


class ChannelConfig(BaseModel):
    """Settings of a channel. Fields of ``SecretStr`` (or lists or maps of them) are secrets: write-only,
    sealed in the store, never shown. Each may be ``${env:NAME}`` or ``file:PATH`` instead.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    allow_private: bool = Field(
        False,
        description="Let this channel connect to private addresses (10.0.0.0/8, loopback …). Only in the "
        "alerts file, unless the operator sets `alerts_allow_private`.",
    )
    send_resolved: bool = Field(True, description="Tell this channel when alerts are over.")
    per_minute: int = Field(60, ge=1, le=10_000, description="Most notifications that are sent in a minute.")
    timeout_seconds: float = Field(15.0, gt=0, le=120, description="Longest time that one attempt may take.")


@dataclass(frozen=True, slots=True)
class Context:
    """What a kind may need besides the notification. Of one attempt."""

    channel: str
    webhook_id: str
    """Of the delivery: the same over all attempts."""
    now_ms: int
    attempt: int = 1
    picture: bytes | None = None
    """PNG of the panel, where the kind can carry one."""


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One request to be sent as it is."""

    url: str = field(repr=False)
    """May hold a secret: never logged."""
    body: bytes = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    method: str = "POST"


@dataclass(frozen=True, slots=True)
class Mail:
    """One message for a mail server."""

    host: str
    port: int
    security: str
    """``tls`` (from the first byte), ``starttls`` or ``none``."""
    sender: str
    recipients: tuple[str, ...]
    message: bytes = field(repr=False)
    user: str | None = None
    password: str | None = field(default=None, repr=False)


Message: TypeAlias = HttpRequest | Mail


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """What came back: the status, headers in lower case, and the first bytes of the body (never shown)."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class Delivered:
    """It was taken."""


@dataclass(frozen=True, slots=True)
class Retry:
    """It was not taken, and may be later."""

    reason: str
    after_seconds: float | None = None
    """Not before this, when the receiver said so."""


@dataclass(frozen=True, slots=True)
class Gone:
    """The receiver wants nothing any more: the channel is disabled."""

    reason: str


@dataclass(frozen=True, slots=True)
class Permanent:
    """This one will never be taken."""

    reason: str
    is_of_channel: bool = False
    """Nor will others be, as the channel is set up: a wrong address, wrong credentials."""


Verdict: TypeAlias = Delivered | Retry | Gone | Permanent
Others: TypeAlias = Literal["fill", "repeat", "always"]
"""When alerts that fire as before are told beside what is new: as far as there is room; only by a repeat, and
then all; always all."""


@dataclass(frozen=True, slots=True)
class ChannelKind:
    """One kind, as its folder offers it."""

    name: str
    title: str
    meaning: str
    """One sentence for the documentation and the page."""
    config: type[ChannelConfig]
    render: Callable[[Any, Notification, Context], list[Message]]
    """(config with its secrets, notification, context) → what to send, in order. Pure."""
    judge: Callable[[HttpAnswer, int], Verdict] | None = None
    """(answer, now_ms) → what it means, where that is not as `delivery.answers.judge` says."""
    most_cards: int = 10
    """Alerts that one message tells of, whatever they say: texts are cut, alerts never. What is new beyond
    that goes into further notifications, each with its own ``webhook-id``."""
    most_cards_setting: str = ""
    """Name of a setting that may lower it (0 = it does not)."""
    others: Others = "fill"
    valid_setting: str = ""
    """Name of the setting with the seconds after which it forgets an alert that it is not told of again."""
    carries_picture: bool = False
    takes_acknowledgement: bool = False
    """Whether a notification with the cause ``acknowledged`` means something to it; else it is not sent."""
