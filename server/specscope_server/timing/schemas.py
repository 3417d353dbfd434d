"""What the endpoints about time return: seconds and cycles beside ratios, evidence beside numbers."""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, Field

from specscope_server.acceptance.schemas import ActivityState, Check, LaunchMarker, Number, Verdict


class Level(StrEnum):
    """What a time was measured by, best first. One answer uses one level."""

    PROBE = "probe"
    """The probe inside the engine: phases of single cycles."""
    DEVICE_TIMER = "device_timer"
    """SGLang's device timer, its scheduler stages and its idle counter."""
    GAUGES = "gauges"
    """Rates: running × τ / throughput. The length of a cycle, not its parts."""
    NONE = "none"


class TimedLaunch(BaseModel):
    """A launch in a few words."""

    id: int
    words: str = Field(description="Engine version, algorithm and depth")
    first_seen: str
    last_seen: str
    num_steps: int | None
    num_draft_tokens: int | None
    is_plain: bool = Field(description="Known to decode without speculation")


class EvidenceLevel(BaseModel):
    """One level of evidence: whether it is there, and what it says by itself."""

    level: Level
    letter: str = Field(description="a (rates), b (device timer) or c (probe)")
    title: str
    state: str = Field(description="`used`, `present`, `refused` (it contradicts itself) or `absent`")
    clock: str = Field(description="`device`, `host`, `wall`, or '' where absent")
    overlap: str = Field(description="Whether the scheduler overlaps: `on`, `off` or '' (not said)")
    cycles: float | None = Field(description="Cycles that it speaks of")
    active_ms: float | None = Field(description="Active time per cycle, prefills between cycles included")
    active_low: float | None
    active_high: float | None
    verify_ms: float | None = Field(description="null = not told apart")
    note: str
    remedy: str = Field(description="How to turn it on; empty where it is")


class PhaseRow(BaseModel):
    """One phase of the window. null = not known, never 0 for unknown."""

    phase: str
    title: str
    meaning: str
    is_in_cycle: bool = Field(description="Part of decode cycles; else it lies between them")
    seconds: float = Field(description="Of all schedulers together")
    share_of_wall: float | None
    share_of_cycle: float | None
    ms_per_cycle: float | None
    low: float | None = Field(description="Bounds of the 95 % interval of ms_per_cycle")
    high: float | None
    ms_per_accepted_token: float | None = Field(description="Per accepted draft, no bonus tokens")
    ms_per_emitted_token: float | None


class Waste(BaseModel):
    """What rejected drafts cost, each verified token charged alike (the marginal cost is lower)."""

    rejected_share: Number
    gpu_seconds: Number
    acceptance_ceiling: Number


class Sensitivity(BaseModel):
    """What one change would give. Extrapolated: everything else is taken to stay as it is."""

    name: str = Field(description="A phase, or `alpha`")
    title: str
    change: str = Field(description="E.g. '1 ms less per cycle'")
    tokens_per_second: float | None = Field(description="Gain in tokens/s")
    relative: float | None
    most: float | None = Field(description="Relative gain if the phase took no time at all")
    formula: str
    is_extrapolated: bool = True


class BlindSpot(BaseModel):
    """What cannot be seen in this window, and what would change that."""

    what: str
    remedy: str


class TimingSummary(BaseModel):
    """Where the time of one server went."""

    server: str
    launch: TimedLaunch | None = Field(description="The launch asked for, else the newest in the window")
    launches: int = Field(description="Launches that the numbers are of")
    from_: str = Field(alias="from", serialization_alias="from")
    to: str
    is_demo: bool
    evidence: Level
    evidence_note: str
    levels: list[EvidenceLevel]
    cycle_time: Number
    verify_time: Number
    verify_share: Number
    plain_time: Number
    break_even: Number
    speed_up: Number
    accept_length: Number
    tokens_per_second: Number
    requests_per_cycle: Number
    cycles: float | None
    wall_seconds: float | None = Field(description="Observed time of all schedulers together")
    emitted_tokens: float | None
    accepted_drafts: float | None
    warm_up_cycles: float = Field(description="First cycles kept out of every mean")
    phases: list[PhaseRow]
    waste: Waste
    sensitivity: list[Sensitivity]
    blind_spots: list[BlindSpot]
    checks: list[Check]
    verdict: Verdict


class PhaseTime(BaseModel):
    """One phase in one bucket of time."""

    time: str
    state: ActivityState
    phase: str
    seconds: float | None
    share_of_wall: float | None
    ms_per_cycle: float | None
    cycles: float | None


class TimingTrend(BaseModel):
    """Where the time went, bucket by bucket."""

    server: str
    from_: str = Field(alias="from", serialization_alias="from")
    to: str
    step_seconds: float
    is_demo: bool
    evidence: Level
    evidence_note: str
    phases: list[str] = Field(description="Phases that are told, in the order of a cycle")
    points: list[PhaseTime]
    launches: list[LaunchMarker]


class SurfaceCell(BaseModel):
    """Cycles of one launch, D and batch bucket."""

    launch_id: int
    num_draft_tokens: str = Field(description="D; `more` holds what the probe did not split")
    batch: str = Field(description="Requests decoded together: 1, 2, 3-4, 5-8, …")
    cycles: float
    is_few: bool
    verify_ms: float | None
    verify_low: float | None
    verify_high: float | None
    cycle_ms: float | None
    plain_ms: float | None = Field(description="T_ar in the same batch bucket, from the baseline")
    verify_ratio: float | None = Field(description="T_v / T_ar")
    expected_experts_ratio: float | None = Field(
        description="Distinct experts of D tokens per request over those of one, routing taken as independent"
    )


class Baseline(BaseModel):
    """Where T_ar comes from."""

    launch: TimedLaunch
    level: Level
    age_seconds: float
    cycles: float
    note: str


class TimingSurface(BaseModel):
    """Verify cost by D and batch size, beside the cost of a plain step."""

    server: str
    from_: str = Field(alias="from", serialization_alias="from")
    to: str
    is_demo: bool
    evidence: Level
    evidence_note: str
    baseline: Baseline | None
    experts_note: str
    cells: list[SurfaceCell]


class RankTime(BaseModel):
    """One scheduler process."""

    rank: str
    dp_rank: int
    pp_rank: int
    tp_rank: int
    cycles: float | None
    cycle_ms: float | None
    verify_ms: float | None
    other_ms: float | None = Field(description="Everything measured of a cycle outside verify")
    verify_against_median: float | None = Field(description="Relative to the median of its group")


class TimingRanks(BaseModel):
    """How evenly the ranks work."""

    server: str
    launch: TimedLaunch | None
    from_: str = Field(alias="from", serialization_alias="from")
    to: str
    is_demo: bool
    evidence: Level
    evidence_note: str
    skew: float | None = Field(description="(highest − lowest) / median verify time over ranks of a group")
    straggler: str | None = Field(description="The rank that the others wait for; null = none stands apart")
    verdict: str
    checks: list[Check]
    ranks: list[RankTime]


class ComparedPhase(BaseModel):
    """One phase on both sides, in ms per cycle."""

    phase: str
    title: str
    a_ms: float | None
    a_low: float | None
    a_high: float | None
    b_ms: float | None
    b_low: float | None
    b_high: float | None
    difference_ms: float | None
    change: float | None
    low: float | None
    high: float | None
    is_certain: bool = Field(description="The interval of the change leaves out zero")


class TimingSide(BaseModel):
    """What is on one side."""

    words: str
    launch: TimedLaunch | None
    evidence: Level
    cycles: float | None
    accept_length: float | None
    requests_per_cycle: float | None
    tokens_per_second: float | None


class TimingComparison(BaseModel):
    """Phases of two launches, or of two windows, against each other."""

    server: str
    is_demo: bool
    state: str = Field(description="ok | warn | unknown")
    verdict: str
    evidence: Level = Field(description="The level that both sides have")
    interval_method: str
    a: TimingSide | None
    b: TimingSide | None
    phases: list[ComparedPhase]
    same_batch: list[ComparedPhase] = Field(
        description="Verify and cycle with both sides at the same mixture of batch sizes"
    )
    note: str
