"""Tokens that open a part of the API; of each only a hash is kept."""

from __future__ import annotations

from sqlalchemy.orm import Mapped, mapped_column

from specscope_server.models.base import Base, Id, Ms, Str


class ApiToken(Base):
    """One token: 32 random bytes, so that a plain SHA-256 cannot be turned back by guessing."""

    __tablename__ = "api_token"

    id: Mapped[Id]
    name: Mapped[Str] = mapped_column(unique=True)
    digest: Mapped[Str] = mapped_column(unique=True)
    """SHA-256 of the token, hex."""
    scope: Mapped[Str]
    """``read``, ``ingest`` or ``admin``."""
    created_ms: Mapped[Ms]
    last_used_ms: Mapped[Ms | None]
    """About: written at most once a minute."""
    revoked_ms: Mapped[Ms | None]
