"""What the endpoints about channels and deliveries take and answer."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class ChannelBody(BaseModel):
    """A channel as it is to be."""

    model_config = ConfigDict(extra="forbid")

    kind: str = Field(description="As listed at /alerts/channel-kinds", max_length=60)
    settings: dict[str, Any] = Field(
        description="Of its kind. A secret may be `${env:SPECSCOPE_ALERT_…}` or `file:/PATH` instead. When "
        "changing: secrets that are left out stay."
    )
    enabled: bool = True


class NewChannel(ChannelBody):
    """A channel to be made."""

    name: str = Field(max_length=60)


class BreakerItem(BaseModel):
    """State of the circuit breaker."""

    state: str = Field(description="`closed`, `open` (nothing is tried until `until`) or `half_open`")
    failures: int = Field(description="In a row")
    until: str | None
    failing_since: str | None = Field(description="Since when the other channels know that this one fails")


class ChannelItem(BaseModel):
    """A channel; secrets are never shown."""

    name: str
    kind: str
    origin: str = Field(description="`file` (changed there) or `api`")
    enabled: bool
    disabled_reason: str = Field(
        description='Why it was turned off by the server or a person; "" = it was not'
    )
    settings: dict[str, Any] = Field(description='Secrets read "(secret)", or name where they are')
    breaker: BreakerItem
    waiting: int = Field(description="Deliveries that wait")
    last_sent: str | None
    last_failure: str | None
    last_failure_reason: str
    updated: str


class ChannelList(BaseModel):
    """All channels, by name."""

    channels: list[ChannelItem]


class KindField(BaseModel):
    """One setting of a kind."""

    name: str
    is_secret: bool
    is_required: bool
    default: Any
    meaning: str
    one_of: list[str] | None = Field(description="The only values; null = any")
    type: str = Field(description="`text`, `number`, `truth`, `list` or `map`")


class KindItem(BaseModel):
    """One kind of channel."""

    name: str
    title: str
    meaning: str
    carries_picture: bool
    fields: list[KindField]


class KindList(BaseModel):
    """The kinds, by name."""

    kinds: list[KindItem]


class TestResult(BaseModel):
    """What came of the test button."""

    __test__ = False

    delivery_id: int
    outcome: str = Field(description="`delivered`, `retry`, `unknown` (no answer), `gone` or `permanent`")
    reason: str
    status_code: int | None
    latency_ms: int


class DeliveryItem(BaseModel):
    """One notification to one channel."""

    id: int
    webhook_id: str = Field(description="The same over all attempts: receivers tell repetitions by it")
    channel: str
    group_key: str
    cause: str
    status: str = Field(description="`pending`, `claimed`, `sent`, `failed`, `expired` or `collapsed`")
    reason: str
    title: str = Field(description="The first line of what is sent")
    attempts: int
    created: str
    next_attempt: str | None = Field(description="null = it is over")
    finished: str | None
    body_sha256: str | None = Field(description="Of what the last attempt sent")


class DeliveryList(BaseModel):
    """Deliveries, newest first."""

    deliveries: list[DeliveryItem]
    next_cursor: str | None


class AttemptItem(BaseModel):
    """One attempt."""

    at: str
    outcome: str
    status_code: int | None
    latency_ms: int | None
    reason: str


class DeliveryDetail(DeliveryItem):
    """One delivery with its attempts and what it says; what the receiver answered is not kept."""

    attempt_log: list[AttemptItem]
    notification: dict[str, Any]


class ReplayReceipt(BaseModel):
    """A delivery that is sent again."""

    id: int
    status: str
