"""What the endpoint about one request returns."""

from __future__ import annotations

from pydantic import BaseModel, Field

from specscope_server.requests.schemas import RequestItem


class HistogramBar(BaseModel):
    """Cycles that accepted exactly so many drafts. null = this request reported no histogram."""

    accepted_drafts: int
    cycles: int | None
    share: float | None
    peer_cycles: int = Field(description="Of all peers together, this request included")
    peer_share: float


class PeerGroup(BaseModel):
    """Requests of the same launch and K that finished within 30 minutes of it."""

    requests: int
    cycles: int
    accept_length: float = Field(description="τ pooled")
    histogram: list[HistogramBar]
    verdict: str = Field(
        description="`ordinary`, `low`, `high` (stands apart), `not_judged` (too few cycles or peers), "
        "`unread` (a sample of many requests left it out), `canary` (asked by a canary, so not a user's)"
    )
    note: str


class RequestDetail(BaseModel):
    """One request beside its peers."""

    server: str
    from_: str = Field(alias="from", serialization_alias="from", description="Peers finished in this range")
    to: str
    is_demo: bool
    request: RequestItem
    num_steps: int | None = Field(description="K of its cycles; null = it may have varied, or is not known")
    peers: PeerGroup | None
    note: str
