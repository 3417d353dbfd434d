"""States of alerts, their transitions, what each channel was told of a group, and who works on it."""

from __future__ import annotations

from sqlalchemy import Index
from sqlalchemy.orm import Mapped, mapped_column

from specscope_server.models.base import Base, Id, Ms, Str


class AlertState(Base):
    """One rule and one label set that is, or was, something else than normal."""

    __tablename__ = "alert_state"
    __table_args__ = (
        Index("ix_alert_state_state", "state"),
        Index("ix_alert_state_rule", "rule"),
        Index("ix_alert_state_alert_id", "alert_id"),
    )

    id: Mapped[Id]
    fingerprint: Mapped[Str] = mapped_column(unique=True)
    """Hash of rule and labels."""
    rule: Mapped[Str]
    rule_version: Mapped[int]
    labels: Mapped[Str]
    """JSON object with sorted keys: of the series."""
    state: Mapped[Str]
    alert_id: Mapped[Str | None]
    """Of the current fire, or of the last one."""
    since_ms: Mapped[Ms]
    """Since when the state is what it is."""
    counting_since_ms: Mapped[Ms | None]
    """From when the time counts that it waits for, to fire or to be over: without what was not observed."""
    seen_ms: Mapped[Ms]
    """When it was last judged."""
    fired_ms: Mapped[Ms | None]
    breach_last_ms: Mapped[Ms | None]
    """When it last breached."""
    breach_since_ms: Mapped[Ms | None]
    """When it began to breach; baselines stand still from then on, until it is over."""
    resolved_ms: Mapped[Ms | None]
    reading: Mapped[Str]
    """JSON object: the newest reading."""
    card: Mapped[Str | None]
    """JSON object: the incident card of the fire as it is now."""
    severity: Mapped[Str]
    acked_by: Mapped[Str | None]
    acked_ms: Mapped[Ms | None]
    ack_until_ms: Mapped[Ms | None]
    """After which nobody has it any more; NULL: when it is over."""
    muted_by: Mapped[Str]
    """Why nobody is told: ``silence:ID``, ``inhibited:RULE`` …; '' = it is not muted."""
    revision: Mapped[int]
    """Grows with each change: whoever writes says which one it read."""


class AlertTransition(Base):
    """One change of state; rows are never changed but for ``notified_ms``."""

    __tablename__ = "alert_transition"
    __table_args__ = (
        Index("ix_alert_transition_at_ms", "at_ms"),
        Index("ix_alert_transition_alert_id", "alert_id"),
        Index("ix_alert_transition_rule_at_ms", "rule", "at_ms"),
    )

    id: Mapped[Id]
    fingerprint: Mapped[Str]
    alert_id: Mapped[Str | None]
    rule: Mapped[Str]
    labels: Mapped[Str]
    severity: Mapped[Str]
    from_state: Mapped[Str]
    to_state: Mapped[Str]
    at_ms: Mapped[Ms]
    reason: Mapped[Str]
    card: Mapped[Str | None]
    notified_ms: Mapped[Ms | None]
    """When a channel was first to be told of it; NULL: nobody was."""


class AlertGroup(Base):
    """What one channel was told of one group of alerts, and when it is to be looked at again."""

    __tablename__ = "alert_group"
    __table_args__ = (Index("uq_alert_group_channel_group_key", "channel", "group_key", unique=True),)

    id: Mapped[Id]
    channel: Mapped[Str]
    group_key: Mapped[Str]
    labels: Mapped[Str]
    """JSON object: what the alerts of the group have in common."""
    next_flush_ms: Mapped[Ms | None]
    """When it will be told what changed; NULL: nothing has."""
    last_sent_ms: Mapped[Ms | None]
    last_digest: Mapped[Str]
    """Of what was last told: who fires, who took it."""
    sent_firing: Mapped[Str]
    """JSON object alert id → card: told as firing, and not yet as over."""
    last_reason: Mapped[Str]
    """Why it was last told, or not told."""
    revision: Mapped[int]


class Lease(Base):
    """Who of several processes does a thing that only one may do."""

    __tablename__ = "lease"

    name: Mapped[Str] = mapped_column(primary_key=True)
    holder: Mapped[Str]
    until_ms: Mapped[Ms]
    """After this anybody may take it."""
