"""What the endpoint about the requests of a range as a whole returns."""

from __future__ import annotations

from pydantic import BaseModel, Field

from specscope_server.acceptance.schemas import Check
from specscope_server.requests.schemas import RequestItem


class Outlier(BaseModel):
    """One request that stands apart from its launch and depth."""

    request: RequestItem
    side: str = Field(description="`low` (accepts less than its peers) or `high`")
    expected_accept_length: float = Field(description="τ of its peers")
    log10_chance: float = Field(
        description="Bound on the chance of one such request among all judged, as a power of ten"
    )


class Outliers(BaseModel):
    """Requests that stand apart, on both sides."""

    judged: int = Field(description="Requests with enough cycles and enough peers")
    not_judged: int
    low: int
    high: int
    rule: str
    requests: list[Outlier] = Field(description="The least likely first, at most 20 of each side")


class RequestCoverage(BaseModel):
    """The requests' part of all cycles that the engine counted. Labels and search do not narrow it."""

    request_cycles: int
    engine_cycles: float | None = Field(description="null = not counted in this window")
    share: float | None


class RequestSummary(BaseModel):
    """Acceptance of the finished requests in scope, and what keeps it from being believed."""

    server: str
    from_: str = Field(alias="from", serialization_alias="from")
    to: str
    is_demo: bool
    total: int = Field(description="Requests in scope")
    sampled_every: int = Field(description="1 = computed from all of them; n = from one in n")
    requests: int = Field(description="Requests computed from: they say verify calls and accepted drafts")
    without_counts: int = Field(description="Requests left out: they say nothing about speculation")
    without_histogram: int
    cycles: int
    accepted_drafts: int
    proposed_drafts: int | None = Field(description="null = not every request says it")
    accept_length: float | None = Field(description="τ pooled: 1 + Σ accepted drafts / Σ cycles")
    accept_length_low: float | None = Field(description="Bounds of the 95 % interval, requests as clusters")
    accept_length_high: float | None
    request_mean_accept_length: float | None = Field(description="Mean of the requests' own τ")
    gap: float | None = Field(description="Pooled τ − mean of requests")
    gap_note: str
    draft_acceptance: float | None
    coverage: RequestCoverage
    checks: list[Check]
    outliers: Outliers
    labels: list[str] = Field(description="Names of labels that these requests have, the commonest first")
    note: str
