"""What the endpoint about draft positions returns."""

from __future__ import annotations

from pydantic import BaseModel, Field

from specscope_server.acceptance.schemas import LaunchBrief


class PositionPoint(BaseModel):
    """One draft position k. null = nothing was offered there."""

    position: int = Field(description="k, from 1 to K")
    offered: int = Field(description="Cycles in which every draft before k was accepted")
    accepted: int = Field(description="Cycles in which draft k was accepted too")
    survival: float | None = Field(description="S_k = accepted / cycles")
    survival_low: float | None = Field(
        description="Bounds of 95 % intervals: requests as clusters, or of counters a block bootstrap"
    )
    survival_high: float | None
    conditional: float | None = Field(description="α_k = accepted / offered")
    conditional_low: float | None
    conditional_high: float | None
    is_few: bool = Field(description="Too few cycles were offered to say much: draw it grey")


class PositionGroup(BaseModel):
    """Cycles of one launch with one depth K: others are never mixed in."""

    launch: LaunchBrief
    num_steps: int | None = Field(description="K; null = it may have varied between cycles, or is not known")
    evidence: str = Field(
        default="request_histograms", description="`draft_counters` (every cycle) or `request_histograms`"
    )
    requests: int | None = Field(description="Finished requests; null where counters do not tell them apart")
    cycles: int
    accepted_drafts: int
    accept_length: float = Field(description="τ pooled: 1 + Σ accepted drafts / Σ cycles")
    request_mean_accept_length: float | None = Field(
        description="Mean of the requests' own τ, each counting once; null where they are not told apart"
    )
    sums_to_accept_length: bool = Field(description="Self-check: τ = 1 + Σ S_k")
    positions: list[PositionPoint]
    length_bounds: list[float] = Field(description="Lower bounds of classes of the requests' own τ")
    length_requests: list[int] = Field(description="Requests in each class")
    note: str


class AcceptancePositions(BaseModel):
    """Acceptance by draft position, from counters of drafts or histograms of finished requests."""

    server: str
    from_: str = Field(alias="from", serialization_alias="from")
    to: str
    is_demo: bool
    groups: list[PositionGroup] = Field(description="Oldest launch first")
    requests_without_histogram: int
    is_limited: bool = Field(description="There were more requests than one answer is computed from")
    note: str
