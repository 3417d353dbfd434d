"""Profiles of hidden states."""

from __future__ import annotations

from sqlalchemy import ForeignKey, Index
from sqlalchemy.orm import Mapped, mapped_column

from specscope_server.models.base import Base, BigInt, Bytes, Id, Ms, Str


class StateProfile(Base):
    """Sums over hidden states of one place, phase and class of rows; profiles of a place add up."""

    __tablename__ = "state_profile"
    __table_args__ = (
        Index("ix_state_profile_server_id_time_ms", "server_id", "time_ms"),
        Index("uq_state_profile_identity_time_ms", "identity", "time_ms", unique=True),
    )

    id: Mapped[Id]
    server_id: Mapped[int] = mapped_column(BigInt, ForeignKey("server.id", ondelete="CASCADE"))
    launch_id: Mapped[int | None] = mapped_column(
        BigInt, ForeignKey("launch.id", ondelete="CASCADE"), index=True
    )
    identity: Mapped[Str]
    """Hash of server, launch, labels and place, as `Series.identity`."""
    time_ms: Mapped[Ms]
    span_ms: Mapped[Ms]
    phase: Mapped[Str]
    row_class: Mapped[Str]
    slot: Mapped[int | None]
    boundary: Mapped[int | None]
    labels: Mapped[Str]
    """JSON object with sorted keys."""
    hidden_size: Mapped[int]
    rows: Mapped[int]
    requests: Mapped[int]
    body: Mapped[Bytes]
    """The whole record: MessagePack, compressed with zstd."""
