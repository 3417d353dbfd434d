"""What the endpoints about rules take and return."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from specscope_server.alerts.rules.schema import Origin, Severity


class RuleItem(BaseModel):
    """One rule as it is in force."""

    name: str
    title: str
    category: str
    severity: Severity
    origin: Origin = Field(description="`pack` (shipped), `file` (the alerts' file; read-only here) or `api`")
    enabled: bool
    version: int = Field(description="Say it when you change the rule, so that nobody's change is lost")
    is_overridden: bool = Field(description="A pack rule that was changed here")
    updated: str
    rule: dict[str, Any] = Field(description="As it is written in a file; defaults are left out")


class RuleList(BaseModel):
    """Rules by name."""

    rules: list[RuleItem]


class ChangedRule(BaseModel):
    """A rule's next version."""

    model_config = ConfigDict(extra="forbid")

    version: int = Field(description="The version that you read")
    rule: dict[str, Any]


class NewRule(BaseModel):
    """A rule to be made or checked."""

    model_config = ConfigDict(extra="forbid")

    rule: dict[str, Any] = Field(description="As it is written in a file")


class ProblemItem(BaseModel):
    """One thing that must be changed."""

    field: str = Field(description="e.g. `condition.above`; '' = the rule as a whole")
    reason: str


class Preview(BaseModel):
    """What a rule says now of one label set."""

    labels: dict[str, str]
    status: str
    cause: str
    value: float | None
    lower: float | None
    upper: float | None
    n: float | None
    unit: str
    n_unit: str
    reason: str


class Validation(BaseModel):
    """Whether a rule can be used, and what it says now."""

    is_valid: bool
    problems: list[ProblemItem]
    rule: dict[str, Any] | None = Field(description="As it would be stored")
    now: list[Preview] = Field(description="What it says at this moment")
    is_limited: bool = Field(description="There are more label sets than are shown")


class VersionItem(BaseModel):
    """A rule as it was."""

    version: int
    made: str
    actor: str
    rule: dict[str, Any]


class VersionList(BaseModel):
    """Versions, the newest first."""

    name: str
    versions: list[VersionItem]


class BacktestQuestion(BaseModel):
    """What to replay."""

    model_config = ConfigDict(extra="forbid")

    rule: dict[str, Any] | None = Field(None, description="A rule as in a file; or else `name`")
    name: str | None = Field(None, description="A rule of the store")
    from_: str = Field("now-7d", alias="from", description="As in every query")
    to: str = "now"
    server: str | None = Field(None, description="Only this server")


class FireItem(BaseModel):
    """One time that it would have fired."""

    labels: dict[str, str]
    pending: str = Field(description="When it began to breach")
    from_: str = Field(alias="from", serialization_alias="from", description="When it would have fired")
    to: str | None = Field(description="When it would have resolved; null = it would still fire")
    peak: float | None = Field(description="The most extreme value meanwhile")
    peak_at: str
    lower: float | None
    upper: float | None
    n: float | None
    unit: str
    n_unit: str
    reason: str
    page: str = Field(description="Where to look, with this time")


class BacktestAnswer(BaseModel):
    """When a rule would have fired."""

    words: str
    from_: str = Field(alias="from", serialization_alias="from")
    to: str
    step_seconds: float = Field(
        description="Distance of the instants that were judged: shorter fires are missed"
    )
    instants: int
    fires: list[FireItem]
    fired: int
    pending_only: int = Field(description="How often it breached for less than `for`")
    counts: dict[str, int] = Field(description="Verdicts by status, label sets × instants")
    covered_from: str = Field(description="Where the answer begins; later than `from` when it took too long")
    is_limited: bool
    problems: list[str]


class SignalItem(BaseModel):
    """One thing that rules can watch."""

    name: str
    unit: str
    meaning: str
    labels: list[str] = Field(description="Besides `server`")
    n_unit: str
    has_interval: bool


class SignalList(BaseModel):
    """Signals by name."""

    signals: list[SignalItem]


class KindItem(BaseModel):
    """One kind of condition."""

    kind: str
    meaning: str
    fields: dict[str, Any] = Field(description="JSON Schema of its fields")


class KindList(BaseModel):
    """Kinds of conditions by name."""

    kinds: list[KindItem]


EXAMPLE_RULE: dict[str, Any] = {
    "name": "low-acceptance", "title": "Acceptance is low", "category": "acceptance", "severity": "warning",
    "condition": {
        "kind": "threshold", "signal": "acceptance.accept_length", "window": "10m", "below": 1.8,
        "on": "interval", "match": {"server": "gpu*"},
    },
    "for": "10m", "runbook": "https://wiki.example.org/low-acceptance",
}  # fmt: skip
