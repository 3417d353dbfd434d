"""What the acceptance endpoints return: every ratio beside its counts, every number with its definition."""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, Field


class Evidence(StrEnum):
    """What a number was computed from, best first."""

    DRAFT_COUNTERS = "draft_counters"
    """Growth of cycles, proposed and accepted drafts, counted as they happen by the engine or by the probe in
    it: exact, of every request."""
    REQUEST_HISTOGRAMS = "request_histograms"
    """Per-request counts of accepted drafts: exact, with request clusters."""
    COUNTERS = "counters"
    """Growth of tokens and verify calls over finished requests: exact counts, accepted drafts are derived."""
    GAUGES = "gauges"
    """The engine's own window means, sampled at scrapes: what fell between two windows is not seen."""
    NONE = "none"


class NumberState(StrEnum):
    """Whether a number may be believed right now."""

    OK = "ok"
    IDLE = "idle"
    """The engine has nothing to do; the number is of the last active stretch in the window."""
    STALE = "stale"
    """Nothing was read lately (scrapes fail)."""
    FEW = "few"
    """Too few cycles to say: draw it grey."""
    UNDETERMINED = "undetermined"
    """The numbers contradict the definition of this engine version."""
    NO_DATA = "no_data"


class Number(BaseModel):
    """One number with everything that a reader needs in order to believe it."""

    value: float | None = Field(description="None = not known; never 0 for unknown")
    unit: str
    state: NumberState
    definition: str = Field(description="Formula or rule, in one sentence")
    source: str = Field(
        description="Source metrics and engine version, e.g. 'sglang:spec_accept_length, SGLang 0.5.8'"
    )
    n: float | None = Field(default=None, description="Sample size")
    n_unit: str = Field(default="", description="What n counts: cycles, requests, windows")
    low: float | None = Field(default=None, description="Lower bound of the 95 % interval")
    high: float | None = Field(default=None, description="Upper bound of the 95 % interval")
    interval_method: str = Field(default="", description="How the interval was made; empty = none")
    as_of: str | None = Field(default=None, description="ISO 8601 time of the newest observation used")
    age_seconds: float | None = Field(
        default=None, description="Age of that observation when the answer was made"
    )
    note: str = ""


class EngineRate(BaseModel):
    """The rate that the engine printed, under the definition that it printed it with."""

    number: Number
    formula: str = Field(description="'τ/D', '(τ−1)/(D−1)' or 'undetermined'")
    includes_bonus: bool | None
    floor: float | None = Field(
        description="1/D: what a draft with nothing accepted prints under τ/D; None if not applicable"
    )
    strict_equivalent: float | None = Field(description="The same windows as strict draft acceptance")


class Counts(BaseModel):
    """Raw counts of the window behind the ratios. None = this engine version does not count it."""

    accepted_drafts: float | None
    accepted_drafts_kind: str = Field(
        description="'counted' (by the engine, cycle by cycle), 'reported' (Σ of requests), 'derived' "
        "(tokens − requests − verify calls) or ''"
    )
    proposed_drafts: float | None
    verify_calls: float | None
    generated_tokens: float | None
    finished_requests: float | None
    decoded_tokens: float | None = Field(description="Live decode counter, includes unfinished requests")
    explanation: str = Field(description="Why derived counts can differ from Σ accepted")


class Check(BaseModel):
    """One self-check: does a number agree with another that must equal it?"""

    name: str
    passed: bool | None = Field(description="None = cannot be checked here")
    message: str


class Verdict(BaseModel):
    """Is speculation working, in words."""

    state: str = Field(description="ok | warn | bad | idle | unknown")
    headline: str
    reasons: list[str]


class LaunchBrief(BaseModel):
    """A launch in one line."""

    id: int
    key: str
    first_seen: str
    last_seen: str
    reason: str
    engine: str
    engine_version: str | None
    version_source: str | None = Field(
        default=None,
        description="`server_info`, `metric_names` (the oldest version that fits) or `log_lines` (a range)",
    )
    algorithm: str | None
    num_steps: int | None
    eagle_topk: int | None
    num_draft_tokens: int | None
    model: str | None
    draft_model: str | None
    is_demo: bool


class AcceptanceSummary(BaseModel):
    """Acceptance of one server (all its launches in the window, or one)."""

    server: str
    launch: LaunchBrief | None = Field(description="The launch asked for, else the newest in the window")
    from_: str = Field(alias="from", serialization_alias="from")
    to: str
    is_demo: bool
    evidence: Evidence
    evidence_note: str
    accept_length: Number
    draft_acceptance: Number
    engine_reported_rate: EngineRate
    num_steps: Number
    num_draft_tokens: Number
    verify_calls_per_second: Number
    generated_tokens_per_second: Number
    requests_running: Number
    requests_queued: Number
    counts: Counts
    checks: list[Check]
    verdict: Verdict


class ActivityState(StrEnum):
    """What the engine was doing in one bucket."""

    ACTIVE = "active"
    IDLE = "idle"
    GAP = "gap"
    """Nothing was observed."""


class TrendPoint(BaseModel):
    """One bucket of the trend."""

    time: str
    state: ActivityState
    evidence: Evidence
    accept_length: float | None
    draft_acceptance: float | None
    engine_reported_rate: float | None
    engine_rate_floor: float | None
    rate_formula: str = Field(
        default="", description="Definition of `engine_reported_rate`; empty where no rate was printed"
    )
    rate_engine_version: str = Field(default="", description="Version that printed it, as it is shown")
    num_steps: float | None
    num_draft_tokens: float | None
    verify_calls: float | None
    generated_tokens: float | None
    generated_tokens_per_second: float | None
    requests_running: float | None
    requests_queued: float | None


class LaunchMarker(BaseModel):
    """A launch that began inside the window."""

    time: str
    launch_id: int
    label: str
    reason: str


class RateDefinition(BaseModel):
    """One definition that the engine's printed rate had in the window: formula and version."""

    formula: str = Field(description="'τ/D', '(τ−1)/(D−1)', 'accepted / proposed' or 'undetermined'")
    engine: str = Field(default="SGLang", description="Who printed it")
    engine_version: str = Field(description="As it is shown, e.g. '0.5.8 or later (from the metric names)'")
    reason: str = Field(description="Why this is the definition, or why it is undetermined")
    from_: str = Field(alias="from", serialization_alias="from", description="Start of its first point")
    to: str = Field(description="End of its last point; the points say where it holds in between")
    launch_ids: list[int]


class AcceptanceTrend(BaseModel):
    """Acceptance over time."""

    server: str
    from_: str = Field(alias="from", serialization_alias="from")
    to: str
    step_seconds: float
    is_demo: bool
    engine_version: str | None = Field(description="Of the newest launch in the window")
    rate_formula: str = Field(
        description="Definition of the newest launch that printed a rate, which may be an earlier one than "
        "that of `engine_version`; `rate_definitions` has all"
    )
    rate_definitions: list[RateDefinition] = Field(
        default_factory=list, description="Every definition of a printed rate in the window, oldest first"
    )
    points: list[TrendPoint]
    launches: list[LaunchMarker]
