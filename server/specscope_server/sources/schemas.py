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
    """Which ranks report: of each tensor-parallel group the leader, or all with
    `--enable-metrics-for-all-schedulers`.
    """

    reporting: int = Field(description="Ranks that should report and do")
    expected: int | None = Field(description="None = cannot be known; `note` says why")
    missing: list[str] = Field(description="Ranks that should report and do not, e.g. `dp 3`")
    text: str = Field(description="In words, e.g. `6/8 ranks: missing dp 3, 5`")
    note: str


class ProbeItem(BaseModel):
    """The probe inside one scheduler process of the engine."""

    rank: str = Field(description="e.g. `dp 0, tp 3`")
    version: str | None = Field(description="None = this rank only reports times")
    engine_version: str | None
    worker: str | None = Field(description="Class of the engine's speculative worker")
    clock: str | None = Field(description="device or host: where its times come from")
    parts: dict[str, str] = Field(
        description="Part → on, missing, failed, over_budget, simulated, not_here or removed"
    )
    is_well: bool = Field(description="Every part is on, or left to another rank")
    time_every: int | None = Field(description="Every how manieth cycle is timed")
    cost_share: float | None = Field(
        description="Host time of the probe as a share of the cycles' wall time, over the last hour"
    )
    measured_seconds: float = Field(description="Wall time of the cycles that this is a share of")


class StateFinding(BaseModel):
    """Something that cannot be in healthy hidden states."""

    kind: str = Field(description="As in `states.invariants`, or `ranks_disagree`")
    words: str
    ranks: list[str] = Field(description="Which ranks say so; of ranks that disagree the odd ones")
    count: int = Field(
        description="How often in the last hour; of ranks that disagree, how many were compared"
    )


class StatesItem(BaseModel):
    """What the probes found of hidden states."""

    rows: int = Field(description="Rows profiled in the last hour")
    compared_ranks: int = Field(description="Ranks whose states of the same rows were compared")
    waiting: int | None = Field(description="Windows that wait to be pushed; null = the probe pushes nothing")
    findings: list[StateFinding] = Field(description="Empty: nothing that cannot be")


class ServerSources(BaseModel):
    """All sources of one server."""

    server: str
    base_url: str
    state: str = Field(description="ok, partial, stale, failing or unknown")
    is_demo: bool
    is_collector: bool = Field(description="True: what a collector says of itself, no server")
    ranks: RanksItem
    sources: list[SourceItem]
    probes: list[ProbeItem] = Field(description="Empty without a probe in the engine")
    states: StatesItem | None = Field(description="null = no probe profiles hidden states")


class SourceList(BaseModel):
    """Sources of all servers asked for."""

    servers: list[ServerSources]
