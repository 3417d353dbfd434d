"""Events, source health, collectors and finished requests."""

from __future__ import annotations

from sqlalchemy import ForeignKey, Index
from sqlalchemy.orm import Mapped, mapped_column

from specscope_server.models.base import Base, BigInt, Bytes, Id, Ms, Real, Str


class Event(Base):
    """Something that happened once."""

    __tablename__ = "event"
    __table_args__ = (Index("ix_event_server_id_time_ms", "server_id", "time_ms"),)

    id: Mapped[Id]
    server_id: Mapped[int] = mapped_column(BigInt, ForeignKey("server.id", ondelete="CASCADE"))
    launch_id: Mapped[int | None] = mapped_column(BigInt, ForeignKey("launch.id", ondelete="CASCADE"))
    time_ms: Mapped[Ms]
    kind: Mapped[Str]
    message: Mapped[Str]
    detail: Mapped[Str]
    """JSON object."""


class SourceStatus(Base):
    """Newest outcome of one source of one server, with the last time that it was good."""

    __tablename__ = "source_status"

    server_id: Mapped[int] = mapped_column(
        BigInt, ForeignKey("server.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    source: Mapped[Str] = mapped_column(primary_key=True)
    time_ms: Mapped[Ms]
    state: Mapped[Str]
    since_ms: Mapped[Ms]
    """Since when the state is what it is."""
    last_good_ms: Mapped[Ms | None]
    url: Mapped[Str]
    duration_seconds: Mapped[float] = mapped_column(Real)
    http_status: Mapped[int | None]
    body_bytes: Mapped[int | None] = mapped_column(BigInt)
    series: Mapped[int | None]
    refused: Mapped[int]
    detail: Mapped[Str]
    remedy: Mapped[Str]
    missing: Mapped[Str]
    """JSON object: what cannot be seen → how to turn it on."""


class Collector(Base):
    """Last applied sequence of each collector, and its checkpoint, kept in the batch's own transaction."""

    __tablename__ = "collector"

    id: Mapped[Str] = mapped_column(primary_key=True)
    sequence: Mapped[int] = mapped_column(BigInt)
    launch_key: Mapped[Str | None]
    checkpoint: Mapped[Bytes | None]
    updated_ms: Mapped[Ms]


class Request(Base):
    """One finished request: counts only, no prompt or output text."""

    __tablename__ = "request"
    __table_args__ = (
        Index("ix_request_server_id_time_ms", "server_id", "time_ms"),
        Index("uq_request_server_id_request_id", "server_id", "request_id", unique=True),
    )

    id: Mapped[Id]
    server_id: Mapped[int] = mapped_column(BigInt, ForeignKey("server.id", ondelete="CASCADE"))
    launch_id: Mapped[int | None] = mapped_column(
        BigInt, ForeignKey("launch.id", ondelete="CASCADE"), index=True
    )
    request_id: Mapped[Str]
    time_ms: Mapped[Ms]
    prompt_tokens: Mapped[int | None]
    completion_tokens: Mapped[int | None]
    cached_tokens: Mapped[int | None]
    verify_calls: Mapped[int | None]
    accepted_drafts: Mapped[int | None]
    proposed_drafts: Mapped[int | None]
    accepted_histogram: Mapped[Str | None]
    """JSON array h, h[j] = verify steps that accepted j drafts."""
    e2e_seconds: Mapped[float | None] = mapped_column(Real)
    labels: Mapped[Str]
    """JSON object."""
