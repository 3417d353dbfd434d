"""What the endpoints about references answer."""

from __future__ import annotations

from pydantic import BaseModel, Field


class ReferenceItem(BaseModel):
    """One version of a reference in a list."""

    id: int
    name: str
    version: int = Field(description="From 1, by name; the highest is the newest")
    kind: str = Field(
        description="`slots`: of a training dump; `boundaries`: of all boundaries of the target; "
        "`unreadable`: the file is damaged"
    )
    tool: str = Field(description="Which tool wrote the dump, as far as it can be told")
    model: str
    hidden_size: int
    slots: int
    requests: int
    rows: int
    made: str = Field(description="When it was built")
    uploaded: str


class ReferenceList(BaseModel):
    """References, by name, the newest version first."""

    references: list[ReferenceItem]
    next_cursor: str | None


class ProfileItem(BaseModel):
    """Rows of one place and class."""

    slot: int | None = Field(description="null = the last state")
    boundary: int | None = Field(description="Residual stream after this many layers; null = nobody says")
    row_class: str
    answers_only: bool = Field(description="Of rows with loss_mask = 1 only")
    rows: int
    requests: int
    mean_ln_norm: float | None = Field(description="Mean of ln‖h‖, nats")
    sd_ln_norm: float | None
    invariants: dict[str, int]


class LastItem(BaseModel):
    """The state behind the last layer."""

    boundary: int | None
    norm: str = Field(description="`pre_norm`, `post_norm` or `unknown`")
    rule: str
    median_square: float | None = Field(description="Median of mean((h/w)²), 1 if the final norm was applied")


class ReferenceDetail(ReferenceItem):
    """One reference, without its vectors; the file has them."""

    dtype: str
    container: str
    compression: str
    boundaries: list[int | None]
    boundary_rule: str
    boundary_source: str
    last: LastItem | None
    files: int
    tokens: int
    answer_rows: int | None = Field(description="Rows with loss_mask = 1; null = there is no mask")
    budget_rows: int
    seed: int
    fingerprint: str
    sink_limits: list[float | None]
    token_ids: list[int]
    refused: dict[str, int]
    notes: list[str]
    provenance: dict[str, str] = Field(description="What made the states, as far as it is known")
    profiles: list[ProfileItem]
    download: str


class ReferenceReceipt(BaseModel):
    """What became of an upload."""

    id: int
    is_new: bool = Field(description="False: the same content is there already under this name")
    reference: ReferenceItem
