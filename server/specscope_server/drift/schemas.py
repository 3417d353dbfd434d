"""What the endpoints about drift return: words first, then every number with its rows and requests."""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, Field

from specscope_collectors.states.rules import Fault
from specscope_server.acceptance.schemas import LaunchMarker, Verdict


class CellState(StrEnum):
    """What a slot in a phase looks like. Shown as a shape with a word."""

    SAME = "same"
    SUSPECTED = "suspected"
    """A rule spoke in a window, and is not confirmed yet."""
    WRONG = "wrong"
    """A rule spoke in two of the last three windows, or in two phases at once, or it is an invariant."""
    NOT_ENOUGH = "not_enough"
    """Too few rows, requests, or rows on common token ids; `missing` says which."""
    NOT_COMPARABLE = "not_comparable"
    """No reference fits: another hidden size, another projection, no reference at all."""
    NO_DATA = "no_data"
    """No rows of this slot and phase."""


class Resolution(StrEnum):
    """How finely a boundary can be told."""

    BOUNDARIES = "boundaries"
    """Against all boundaries: an off-by-one is seen."""
    SLOTS = "slots"
    """Against the slots of training and the last state: swaps and slot shifts, not ±1."""
    NONE = "none"


class UsedReference(BaseModel):
    """A reference that the answer was made with."""

    id: int
    name: str
    version: int
    kind: str = Field(description="`slots` (of a training dump) or `boundaries` (of all boundaries)")
    model: str
    hidden_size: int
    boundaries: list[int | None] = Field(description="Of each slot, or all that it has; null = nobody says")
    boundary_rule: str
    boundary_source: str = Field(default="", description="Where the boundaries were told; empty = nowhere")
    tool: str = Field(default="", description="Which tool wrote the dump, as far as it can be told")
    fingerprint: str = Field(default="", description="Of the files that it was read from")
    requests: int
    rows: int
    made: str
    answers_only: bool = Field(
        description="Serving rows of verification are compared with rows that have loss_mask = 1"
    )


class Nearest(BaseModel):
    """Which boundary a statistic finds nearest, in the newest window."""

    boundary: int | None = Field(description="null = of the last state, or of a slot nobody gave a boundary")
    place: str = Field(description="In words, e.g. `boundary 3`, `training slot 1`, `last state`")
    distance: float = Field(
        description="vcos: 1 − cos per token id, a geometric mean over ids; dnll: nats per row and channel "
        "above the nearest"
    )
    claimed_distance: float | None = Field(description="The same to the boundary that was trained on")
    runner_up: int | None
    runner_up_ratio: float | None = Field(
        description="Distance to the claimed boundary over that to the nearest; where the claimed one is "
        "nearest, that to the runner-up over it; distances below 0.001 count as that. dnll: difference in "
        "nats per row"
    )


class Invariant(BaseModel):
    """Something that cannot be in healthy states."""

    kind: str
    title: str
    passed: bool | None = Field(description="null = cannot be said here")
    count: int | None = Field(description="How often it was met")
    looked_at: int | None = Field(description="Among how many rows, pairs or windows")
    message: str


class WindowItem(BaseModel):
    """One window of a slot and phase: enough rows of enough requests, of one launch, over all ranks."""

    from_: str = Field(alias="from", serialization_alias="from")
    to: str
    launch_id: int | None
    rows: int
    requests: int = Field(description="At least: a request that spans profiles counts once")
    common_rows: int = Field(description="Rows on token ids that the reference knows too")
    common_ids: int
    is_full: bool = Field(description="256 rows of 32 requests or more; from 64 of 8 on a window may speak")
    nearest_vcos: int | None = Field(description="Boundary; null = not enough")
    nearest_dnll: int | None
    own_variances: bool = Field(
        default=False, description="`nearest_dnll` is by the window's own variances, not the reference's"
    )
    names: str = Field(description="Where both agree, in words; empty where not")
    gross_norm: float | None = Field(description="W₁ of ln‖h‖ to the claimed profile, nats")
    gross_direction: float | None = Field(description="1 − cos of mean directions")
    fault: Fault
    missing: list[str]


class Cell(BaseModel):
    """One slot in one phase. Numbers are of the newest window; `votes` are over the last three."""

    slot: int
    phase: str = Field(description="`prefill`, `verify_accepted` or `verify_rejected`")
    state: CellState
    fault: Fault
    words: str
    trained_boundary: int | None = Field(description="Of this slot in the training reference")
    captured_boundary: int | None = Field(description="As the probe read it from the running model")
    rows: int
    requests: int
    common_rows: int
    row_class: str = Field(description="Always `other`: sinks and the first four positions are apart")
    vcos: Nearest | None
    dnll: Nearest | None
    gross_norm: float | None
    gross_norm_limit: float
    gross_direction: float | None
    gross_direction_limit: float
    votes_for: int = Field(description="Of the last windows, how many name this fault")
    votes: int = Field(description="Windows that could speak, at most three")
    windows: list[WindowItem] = Field(description="The last three, newest last")
    invariants: list[Invariant]
    missing: list[str] = Field(description="What would be needed to say more")


class SlotVerdict(BaseModel):
    """One slot over all phases."""

    slot: int
    state: CellState
    fault: Fault
    headline: str
    trained_boundary: int | None
    captured_boundary: int | None
    measured_boundary: int | None = Field(description="That both statistics name; null = none")
    evidence: list[str] = Field(description="What it rests on, strongest first")


class CurvePoint(BaseModel):
    """Distance of a slot and phase to one boundary."""

    slot: int
    phase: str
    boundary: int | None
    place: str
    vcos: float | None
    dnll: float | None = Field(description="Nats per row and channel above the nearest boundary")
    norm: float | None = Field(description="W₁ of ln‖h‖, nats; shown, never decided on")
    is_trained: bool
    is_captured: bool


class Pairing(BaseModel):
    """Which place of training a serving slot is."""

    slot: int
    training_slot: int | None = Field(description="null = none of these")
    boundary: int | None
    place: str
    votes: float = Field(description="Share of bootstrap rounds that agree on this slot")
    margin: float | None = Field(description="(runner-up − best) / best of the whole assignment")


class Assignment(BaseModel):
    """Serving slots matched to places of training, in depth order, with `none of these`."""

    speaks: bool = Field(description="`votes` is above 95 %")
    votes: float = Field(description="Share of bootstrap rounds that give this assignment as a whole")
    words: str
    pairs: list[Pairing]
    resampled: str = Field(description="What the bootstrap drew from: `windows` or `token ids`, and how many")
    phase: str
    rounds: int


class FalseAlarms(BaseModel):
    """What the rules cost in false alarms."""

    budget_per_month: float
    expected_per_month: float | None = Field(
        description="At most, by the measured bound and this server's windows; null = too few windows to say"
    )
    windows_per_month: float | None = Field(description="By the newest windows; null = too few to say")
    words: str


class Drift(BaseModel):
    """Does the draft see in serving what it was trained on?"""

    server: str
    from_: str = Field(alias="from", serialization_alias="from")
    to: str
    is_demo: bool
    launch: LaunchMarker | None = Field(description="Whose windows are judged; null = no profile in range")
    launches: list[LaunchMarker] = Field(description="With profiles in range, oldest first")
    verdict: Verdict
    resolution: Resolution
    resolution_note: str
    reference: UsedReference | None
    boundaries_reference: UsedReference | None
    phases: list[str]
    slots: list[SlotVerdict]
    cells: list[Cell]
    curve: list[CurvePoint]
    assignment: Assignment | None
    findings: list[Invariant] = Field(description="Of the launch as a whole: ranks, phases, claims")
    false_alarms: FalseAlarms
    missing: list[str] = Field(description="What would be needed to say more, for the page as a whole")
    unusable: list[str] = Field(
        default=[],
        description="Stored references and profiles that cannot be used, and why; all else goes on",
    )


class DriftPoint(BaseModel):
    """One window in the trend. Plain distances follow the text served: they are shown, never alarmed on."""

    time: str = Field(description="End of the window")
    from_: str = Field(alias="from", serialization_alias="from")
    launch_id: int | None
    slot: int
    phase: str
    rows: int
    requests: int
    state: CellState
    fault: Fault
    nearest: int | None = Field(description="Boundary that both statistics name")
    w1: float | None = Field(description="W₁ of ln‖h‖, nats")
    psi: float | None
    ks: float | None
    channel_rms: float | None = Field(description="RMS difference of centred ln channel RMS")
    mean_direction: float | None = Field(description="1 − cos of mean unit vectors")
    vcos: float | None = Field(description="To the claimed boundary")
    claimed_excess: float | None = Field(
        description="vcos to the claimed boundary less that to the nearest: 0 = it is the nearest"
    )
    q05: float | None = Field(description="Quantile of ln‖h‖, nats")
    q25: float | None
    q50: float | None
    q75: float | None
    q95: float | None
    accept_length: float | None = Field(description="τ over the window; null = not known")


class NoiseFloor(BaseModel):
    """What a distance reads between windows of the same launch: below it nothing can be seen."""

    slot: int
    phase: str
    statistic: str
    value: float | None = Field(description="95 % point over pairs of neighbouring windows; null = too few")
    pairs: int


class DriftTrend(BaseModel):
    """Distances to the claimed profile over time."""

    server: str
    from_: str = Field(alias="from", serialization_alias="from")
    to: str
    is_demo: bool
    reference: UsedReference | None
    points: list[DriftPoint]
    floors: list[NoiseFloor]
    launches: list[LaunchMarker]
    is_thinned: bool = Field(description="Not every window is shown: the range holds more than the page can")
    note: str


class Quantiles(BaseModel):
    """Of ln‖h‖ in nats."""

    q01: float | None
    q05: float | None
    q25: float | None
    q50: float | None
    q75: float | None
    q95: float | None
    q99: float | None


class ProfileRow(BaseModel):
    """Rows of one place, phase and class, of serving or of a reference."""

    side: str = Field(description="`serving`, `training` or `boundaries`")
    slot: int | None = Field(description="null = the last state, or a boundary that is no slot")
    boundary: int | None
    phase: str
    row_class: str
    profiles: int = Field(description="How many were merged")
    rows: int
    requests: int
    hidden_size: int
    mean_ln_norm: float | None
    sd_ln_norm: float | None
    quantiles: Quantiles
    mean_resultant: float | None = Field(description="‖mean of unit vectors‖: 1 = all rows point alike")
    common_ids: int
    common_rows: int
    top_channels: list[int] = Field(description="Channels with most energy")
    top_share: float | None = Field(description="Their share of Σh²")
    invariants: dict[str, int]


class SampledRow(BaseModel):
    """One raw row as the probe saw it, or as it stands in the training dump."""

    side: str = Field(default="serving", description="`serving` or `training`")
    time: str = Field(description="When the probe wrote it, or the reference was built")
    phase: str
    slot: int | None = Field(description="null = the last state")
    position: int
    norm: float | None
    first_values: list[float | None]
    token_id: int | None = Field(default=None, description="null = the probe keeps none")
    row_class: str | None = Field(default=None, description="null = the probe does not say")


class DriftProfiles(BaseModel):
    """What the comparison is made of: for the inspector."""

    server: str
    from_: str = Field(alias="from", serialization_alias="from")
    to: str
    is_demo: bool
    launch: LaunchMarker | None
    reference: UsedReference | None
    boundaries_reference: UsedReference | None
    profiles: list[ProfileRow]
    rows: list[SampledRow]
    capture: dict[str, object] | None = Field(description="As the probe read it from the running model")
