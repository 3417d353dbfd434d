"""What the endpoint about draft positions over time returns."""

from __future__ import annotations

from pydantic import BaseModel, Field

from specscope_server.acceptance.schemas import LaunchBrief


class PositionCell(BaseModel):
    """One draft position k in one bucket of time."""

    time: str = Field(description="Start of the bucket")
    position: int = Field(description="k, from 1 to K")
    cycles: int = Field(description="Cycles whose depth K reaches k")
    offered: int = Field(description="Of those: cycles in which every draft before k was accepted")
    accepted: int = Field(description="Of those: cycles in which draft k was accepted too")
    survival: float = Field(description="S_k = accepted / cycles")
    conditional: float | None = Field(description="α_k = accepted / offered; null = never offered")
    is_few: bool = Field(description="Too few cycles for the survival to say much: draw it grey")
    is_few_offered: bool = Field(description="Too few cycles for the conditional to say much")


class PositionTrend(BaseModel):
    """Acceptance by draft position over time. A bucket without cells was not observed: a gap, not zero."""

    server: str
    from_: str = Field(alias="from", serialization_alias="from")
    to: str
    step_seconds: float
    is_demo: bool
    launches: list[LaunchBrief] = Field(description="Launches in the range, oldest first")
    evidence: str = Field(description="What the counts were read from; empty = there are none")
    times: list[str] = Field(description="Start of every bucket, observed or not")
    positions: int = Field(description="Deepest position that was offered")
    cells: list[PositionCell]
    note: str
