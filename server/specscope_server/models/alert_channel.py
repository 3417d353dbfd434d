"""Channels of alerts, what is to be delivered to them, and each attempt to."""

from __future__ import annotations

from sqlalchemy import ForeignKey, Index
from sqlalchemy.orm import Mapped, mapped_column

from specscope_server.models.base import Base, BigInt, Bytes, Id, Ms, Str


class Channel(Base):
    """Where alerts are told."""

    __tablename__ = "channel"

    id: Mapped[Id]
    name: Mapped[Str] = mapped_column(unique=True)
    kind: Mapped[Str]
    origin: Mapped[Str]
    """``file`` or ``api``."""
    enabled: Mapped[bool]
    config: Mapped[Str]
    """JSON object without secrets."""
    secrets: Mapped[Bytes | None]
    """JSON object of the secrets, sealed with the operator's key."""
    disabled_reason: Mapped[Str]
    """Why the product turned it off by itself; '' = it did not."""
    breaker: Mapped[Str]
    """JSON object: the circuit breaker's state."""
    updated_ms: Mapped[Ms]
    revision: Mapped[int]


class Delivery(Base):
    """One notification to one channel: the outbox, and later the log."""

    __tablename__ = "delivery"
    __table_args__ = (
        Index("ix_delivery_status_next_attempt_ms", "status", "next_attempt_ms"),
        Index("ix_delivery_channel_group_key", "channel", "group_key"),
        Index("ix_delivery_created_ms", "created_ms"),
    )

    id: Mapped[Id]
    webhook_id: Mapped[Str] = mapped_column(unique=True)
    """The same over all attempts: receivers tell repetitions by it."""
    channel: Mapped[Str]
    group_key: Mapped[Str]
    cause: Mapped[Str]
    notification: Mapped[Str]
    """JSON object."""
    status: Mapped[Str]
    """``pending``, ``claimed``, ``sent``, ``failed``, ``expired`` or ``collapsed``."""
    reason: Mapped[Str]
    """Why it was decided, and at the end why it went as it did."""
    attempts: Mapped[int]
    next_attempt_ms: Mapped[Ms]
    claimed_by: Mapped[Str | None]
    claimed_until_ms: Mapped[Ms | None]
    created_ms: Mapped[Ms]
    expires_ms: Mapped[Ms]
    finished_ms: Mapped[Ms | None]
    body_sha256: Mapped[Str | None]


class DeliveryAlert(Base):
    """Which alerts a delivery told of, and as what."""

    __tablename__ = "delivery_alert"
    __table_args__ = (Index("ix_delivery_alert_alert_id", "alert_id"),)

    delivery_id: Mapped[int] = mapped_column(
        BigInt, ForeignKey("delivery.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    alert_id: Mapped[Str] = mapped_column(primary_key=True)
    status: Mapped[Str]
    """``firing`` or ``resolved``."""


class DeliveryAttempt(Base):
    """One attempt to deliver."""

    __tablename__ = "delivery_attempt"
    __table_args__ = (
        Index("ix_delivery_attempt_delivery_id", "delivery_id"),
        Index("ix_delivery_attempt_at_ms", "at_ms"),
    )

    id: Mapped[Id]
    delivery_id: Mapped[int] = mapped_column(BigInt, ForeignKey("delivery.id", ondelete="CASCADE"))
    at_ms: Mapped[Ms]
    outcome: Mapped[Str]
    status_code: Mapped[int | None]
    latency_ms: Mapped[int | None]
    reason: Mapped[Str]
