"""Profiler captures."""

from __future__ import annotations

from sqlalchemy import ForeignKey, Index
from sqlalchemy.orm import Mapped, mapped_column

from specscope_server.models.base import Base, BigInt, Bytes, Id, Ms, Str


class Trace(Base):
    """One profiler capture of a server, reduced; the columns beside ``body`` are what lists show."""

    __tablename__ = "trace"
    __table_args__ = (
        Index("ix_trace_server_id_time_ms", "server_id", "time_ms"),
        Index("uq_trace_server_id_key", "server_id", "key", unique=True),
    )

    id: Mapped[Id]
    server_id: Mapped[int] = mapped_column(BigInt, ForeignKey("server.id", ondelete="CASCADE"))
    launch_id: Mapped[int | None] = mapped_column(
        BigInt, ForeignKey("launch.id", ondelete="CASCADE"), index=True
    )
    key: Mapped[Str]
    """Fingerprint of the files."""
    time_ms: Mapped[Ms]
    name: Mapped[Str]
    note: Mapped[Str]
    basis: Mapped[Str]
    """How phases were found; of several ranks, the weakest."""
    ranks: Mapped[int]
    cycles: Mapped[int]
    """Of the rank that saw most."""
    created_ms: Mapped[Ms]
    body: Mapped[Bytes]
    """The whole record: MessagePack, compressed with zstd."""
