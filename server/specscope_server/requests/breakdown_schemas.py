"""What the endpoint about parts of the requests returns."""

from __future__ import annotations

from pydantic import BaseModel, Field


class PartPosition(BaseModel):
    """One draft position k among the requests of a part. null = nothing was offered there."""

    position: int = Field(description="k, from 1 to K")
    offered: int = Field(description="Cycles in which every draft before k was accepted")
    accepted: int = Field(description="Cycles in which draft k was accepted too")
    conditional: float | None = Field(description="α_k = accepted / offered")
    conditional_low: float | None = Field(description="Bounds of the 95 % interval, requests as clusters")
    conditional_high: float | None
    is_few: bool


class Part(BaseModel):
    """Requests that have something in common."""

    name: str = Field(description="The label's value, or the tokens from and to; text from outside")
    kind: str = Field(description="`value`, `range`, `other` (all further values) or `unknown`")
    low: int | None = Field(description="Least tokens of a range")
    high: int | None = Field(description="Most tokens of a range")
    requests: int
    cycles: int
    accepted_drafts: int
    accept_length: float = Field(description="τ pooled: 1 + Σ accepted drafts / Σ cycles")
    accept_length_low: float | None = Field(description="Bounds of the 95 % interval, requests as clusters")
    accept_length_high: float | None
    request_mean_accept_length: float = Field(description="Mean of the requests' own τ")
    draft_acceptance: float | None = Field(
        description="Accepted / proposed, where all said what was proposed"
    )
    depths: list[int | None] = Field(description="Each K among them; null = it may have varied")
    positions: list[PartPosition]
    is_few: bool = Field(description="Too few cycles to say much: draw it grey")


class Breakdown(BaseModel):
    """Acceptance by a label or a length."""

    server: str
    from_: str = Field(alias="from", serialization_alias="from")
    to: str
    is_demo: bool
    by: str
    title: str
    labels: list[str] = Field(description="Names of labels that these requests have, the commonest first")
    parts: list[Part]
    note: str
