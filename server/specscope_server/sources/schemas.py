"""What the sources endpoint returns: scrape health is data too."""

from __future__ import annotations

from pydantic import BaseModel, Field


class SourceItem(BaseModel):
    """Newest outcome of one source of one server."""

    server: str
    source: str
    state: str = Field(description="ok, partial, unreachable, timeout, tls_error, unauthorized, disabled, …")
    since: str = Field(description="Since when the state is what it is")
    time: str = Field(description="Newest attempt")
    age_seconds: float
    last_good: str | None = Field(description="Newest attempt that was read and understood; None = never")
    url: str
    http_status: int | None
    duration_seconds: float
    body_bytes: int | None
    series: int | None
    refused: int
    detail: str
    remedy: str
    missing: dict[str, str] = Field(description="What cannot be seen → how to turn it on")


class RanksItem(BaseModel):
    """How many rank groups (data-parallel × pipeline) report."""

    reporting: int
    expected: int | None = Field(description="None = the engine did not say its parallel sizes")
    note: str


class ServerSources(BaseModel):
    """All sources of one server."""

    server: str
    base_url: str
    state: str = Field(description="ok, partial, stale, failing or unknown")
    is_demo: bool
    ranks: RanksItem
    sources: list[SourceItem]


class SourceList(BaseModel):
    """Sources of all servers asked for."""

    servers: list[ServerSources]
