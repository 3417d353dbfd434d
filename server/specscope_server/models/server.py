"""Watched servers and their launches."""

from __future__ import annotations

from sqlalchemy import ColumnElement, ForeignKey, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from specscope_server.models.base import Base, BigInt, Id, Ms, Str

COLLECTOR_URL = "collector:"
"""What the base URL of a collector begins with; everything else is a watched server."""


class Server(Base):
    """One watched inference server: one base URL, possibly many ranks."""

    __tablename__ = "server"

    id: Mapped[Id]
    name: Mapped[Str] = mapped_column(unique=True)
    base_url: Mapped[Str]
    created_ms: Mapped[Ms]
    last_seen_ms: Mapped[Ms]
    """Time of the newest observation of any kind, failures included."""


class Launch(Base):
    """One start of a server with one resolved configuration. Everything measured belongs to one."""

    __tablename__ = "launch"
    __table_args__ = (UniqueConstraint("server_id", "key"),)

    id: Mapped[Id]
    server_id: Mapped[int] = mapped_column(BigInt, ForeignKey("server.id", ondelete="CASCADE"), index=True)
    key: Mapped[Str]
    first_seen_ms: Mapped[Ms]
    last_seen_ms: Mapped[Ms]
    reason: Mapped[Str]
    engine: Mapped[Str]
    engine_version: Mapped[Str | None]
    version_source: Mapped[Str | None]
    model: Mapped[Str | None]
    served_model_name: Mapped[Str | None]
    dtype: Mapped[Str | None]
    quantization: Mapped[Str | None]
    kv_cache_dtype: Mapped[Str | None]
    algorithm: Mapped[Str | None]
    num_steps: Mapped[int | None]
    eagle_topk: Mapped[int | None]
    num_draft_tokens: Mapped[int | None]
    draft_model: Mapped[Str | None]
    adaptive: Mapped[bool | None]
    tp_size: Mapped[int | None]
    dp_size: Mapped[int | None]
    pp_size: Mapped[int | None]
    ep_size: Mapped[int | None]
    nnodes: Mapped[int | None]
    enable_dp_attention: Mapped[bool | None]
    environment: Mapped[Str]
    """JSON object."""
    config: Mapped[Str]
    """JSON object: the whole resolved configuration, redacted at the edge."""
    is_demo: Mapped[bool]


def is_collector() -> ColumnElement[bool]:
    """Return the condition that a row of `Server` is a collector, which reports of itself only."""
    return Server.base_url.startswith(COLLECTOR_URL, autoescape=True)
