"""Rules of alerts, each version of them, silences, and who changed what."""

from __future__ import annotations

from sqlalchemy import Index
from sqlalchemy.orm import Mapped, mapped_column

from specscope_server.models.base import Base, Id, Ms, Str


class AlertRule(Base):
    """One rule as it is in force."""

    __tablename__ = "alert_rule"

    id: Mapped[Id]
    name: Mapped[Str] = mapped_column(unique=True)
    origin: Mapped[Str]
    """``pack``, ``file`` or ``api``."""
    enabled: Mapped[bool]
    version: Mapped[int]
    body: Mapped[Str]
    """JSON object: the whole rule."""
    updated_ms: Mapped[Ms]


class AlertRuleVersion(Base):
    """A rule as it was from ``made_ms`` on; rows are never changed."""

    __tablename__ = "alert_rule_version"
    __table_args__ = (Index("uq_alert_rule_version_name_version", "name", "version", unique=True),)

    id: Mapped[Id]
    name: Mapped[Str]
    version: Mapped[int]
    body: Mapped[Str]
    made_ms: Mapped[Ms]
    actor: Mapped[Str]


class Silence(Base):
    """Nobody is told of alerts with these labels for a while; they are evaluated and shown all the same."""

    __tablename__ = "silence"
    __table_args__ = (Index("ix_silence_ends_ms", "ends_ms"),)

    id: Mapped[Id]
    matchers: Mapped[Str]
    """JSON array of ``{label, operator, value}``; all must match."""
    owner: Mapped[Str]
    reason: Mapped[Str]
    starts_ms: Mapped[Ms]
    ends_ms: Mapped[Ms]
    created_ms: Mapped[Ms]
    expired_by: Mapped[Str | None]
    """Who ended it before its time."""


class Audit(Base):
    """One change of what alerts do, by a person or a file."""

    __tablename__ = "audit"
    __table_args__ = (Index("ix_audit_at_ms", "at_ms"),)

    id: Mapped[Id]
    at_ms: Mapped[Ms]
    actor: Mapped[Str]
    action: Mapped[Str]
    """What was done to what kind of thing, e.g. ``silence.create``."""
    target: Mapped[Str]
    before: Mapped[Str | None]
    """JSON of what was there; never a secret."""
    after: Mapped[Str | None]
