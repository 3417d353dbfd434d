"""What the endpoints about boundaries and totals answer."""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, Field

from specscope_collectors.layer_ids import System as System
from specscope_server.acceptance.schemas import LaunchMarker, Verdict


class Role(StrEnum):
    """What a row of the table stands for."""

    TRAINED = "trained"
    """What the draft was trained on, as a reference says."""
    ASKED = "asked"
    """What the engine makes of the draft's configuration, or of none."""
    GRAPHS = "graphs"
    """What graphs of verification hold in versions that capture them before the ids are set."""
    CAPTURED = "captured"
    """What the probe read from the running model."""
    PREVIOUS = "previous"
    """The same of an earlier launch."""
    UPGRADE = "upgrade"
    """What the same ids mean in a newer engine."""
    WHAT_IF = "what_if"
    """What the query asks for."""


class BoundaryRow(BaseModel):
    """One list of layer ids, and what it means."""

    role: Role
    title: str
    source: str = Field(description="Where the ids were found")
    launch_id: int | None
    engine_version: str | None
    ids: list[int] | None = Field(description="As they are written; null = none are named, or not known")
    rule: str
    rule_source: str
    boundaries: list[int | None] | None = Field(
        description="By slot, ascending; null = it cannot be told (see `reason`); [] = nothing is captured"
    )
    reason: str
    notes: list[str]
    is_default: bool = Field(description="Nobody named ids: the engine guesses")
    candidates: list[list[int]] = Field(description="What it may be where it cannot be told")


class Disagreement(BaseModel):
    """Two rows that ought to mean the same, and do not; or one that loses what it asks for."""

    kind: str = Field(
        description="`trained_captured`, `trained_asked`, `asked_captured`, `graphs`, `upgrade`, "
        "`next_upgrade`, `lost`, `embedding` or `what_if`"
    )
    is_fault: bool = Field(description="False: worth knowing, nothing is wrong yet")
    message: str
    rows: list[int] = Field(description="Places in `rows`")


class BoundaryTable(BaseModel):
    """Every layer id in play."""

    server: str | None
    is_demo: bool
    launch: LaunchMarker | None
    engine: str | None
    engine_version: str | None = Field(description="With how it is known, where the server did not say it")
    model_class: str | None = Field(description="Class of the target; the rule of SGLang depends on it")
    layers: int | None = Field(description="Decoder layers n of the target")
    verdict: Verdict
    rows: list[BoundaryRow]
    disagreements: list[Disagreement]
    missing: list[str] = Field(description="What would be needed to say more, and how to get it")


class TotalsSide(BaseModel):
    """What one Frobenius total says."""

    name: str
    total: float = Field(description="‖X‖_F over all rows")
    tokens: int
    rms_norm: float = Field(description="‖X‖_F / √n: the RMS of row norms, no mean and no median")
    largest_norm: float = Field(description="No row can be longer than the total")
    all_but_one_at_most: float = Field(
        description="Where one row has norm r, the RMS of the others is √((F² − r²)/(n − 1)): at most this"
    )
    per_channel_rms: float | None = Field(description="‖X‖_F / √(n·H); null = no hidden size was given")
    notes: list[str]


class Totals(BaseModel):
    """What two totals can and cannot mean."""

    verdict: str
    a: TotalsSide
    b: TotalsSide
    hidden_size: int | None
    total_ratio: float = Field(description="b / a as the totals stand")
    rms_ratio: float = Field(description="b / a per token, as RMS")
    lengths_alone: float = Field(description="Ratio of totals that unequal lengths alone make: √(n_b / n_a)")
    one_row: str = Field(description="The one row that would explain the whole difference, in words")
    sink_norm: float | None = Field(
        description="Norm of that row: with it, all other rows of that side are as long as those of the other"
    )
    sink_factor: float | None = Field(description="How many times longer it is than the others")
    sink_share: float | None = Field(description="Its share of that side's Σ‖h‖²")
    cannot: list[str] = Field(description="What two totals never say")
    ask_instead: list[str]
