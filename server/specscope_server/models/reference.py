"""References: profiles of training dumps."""

from __future__ import annotations

from sqlalchemy import Index
from sqlalchemy.orm import Mapped, mapped_column

from specscope_server.models.base import Base, BigInt, Bytes, Id, Ms, Str


class Reference(Base):
    """One version of a reference; the columns beside ``body`` are what lists show."""

    __tablename__ = "reference"
    __table_args__ = (
        Index("uq_reference_name_version", "name", "version", unique=True),
        Index("uq_reference_name_key", "name", "key", unique=True),
    )

    id: Mapped[Id]
    name: Mapped[Str]
    version: Mapped[int] = mapped_column(BigInt)
    """From 1, by name; another content under a name is its next version."""
    key: Mapped[Str]
    """Hash of the content."""
    tool: Mapped[Str]
    model: Mapped[Str]
    hidden_size: Mapped[int]
    slots: Mapped[int]
    requests: Mapped[int]
    rows: Mapped[int]
    made_ms: Mapped[Ms]
    created_ms: Mapped[Ms]
    body: Mapped[Bytes]
    """The file, as it is downloaded."""
