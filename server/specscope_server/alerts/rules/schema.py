"""What a rule is: strict, the same in YAML files, over REST and in the store."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from specscope_server.alerts.rules.condition import ConditionBase, Pattern
from specscope_server.alerts.rules.durations import Duration

MAX_WAIT_MS = 7 * 86_400_000
MAX_HOLD_MS = 30 * 86_400_000
MAX_LABELS = 20

Name: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,79}$")]
LabelName: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[a-zA-Z_][a-zA-Z0-9_]{0,59}$")]
Text: TypeAlias = Annotated[str, StringConstraints(max_length=2_000)]


def _check_wait(length_ms: int) -> int:
    if length_ms > MAX_WAIT_MS:
        raise ValueError("at most 7d")
    return length_ms


Wait: TypeAlias = Annotated[Duration, AfterValidator(_check_wait)]


def _check_hold(length_ms: int) -> int:
    if length_ms > MAX_HOLD_MS:
        raise ValueError("at most 30d")
    return length_ms


def _check_page(path: str) -> str:
    """Let no rule lead elsewhere: what it names becomes a link on the pages and in messages."""
    if path and (not path.startswith("/") or path.startswith(("//", "/\\")) or not path.isprintable()):
        raise ValueError("a path of this dashboard is expected, beginning with one /, e.g. /acceptance")
    return path


def _check_runbook(address: str) -> str:
    if address and not (address.startswith(("https://", "http://")) and address.isprintable()):
        raise ValueError("an address that begins with https:// or http:// is expected")
    return address


class Severity(StrEnum):
    """How much it matters."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


class Category(StrEnum):
    """What a rule is about; rules of the first kind mute the others by default."""

    SOURCES = "sources"
    ACCEPTANCE = "acceptance"
    TIMING = "timing"
    DRIFT = "drift"
    RANKS = "ranks"
    PROBE = "probe"
    CONFIGURATION = "configuration"
    OTHER = "other"


class NoData(StrEnum):
    """What becomes of an alert while nothing can be said."""

    KEEP = "keep"
    """It stays as it is: neither progress nor recovery."""
    OK = "ok"
    """Nothing to see is nothing wrong."""
    ALERT = "alert"
    """That nothing is known is itself an alert."""


class Inhibition(BaseModel):
    """While this rule fires, alerts that match are muted if they share these labels."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    target: dict[LabelName, Pattern] = Field(
        min_length=1, max_length=MAX_LABELS,
        description="Labels of the alerts to mute (`rule`, `category`, `severity` too); `*` and `?` as usual",
        examples=[{"category": "acceptance"}],
    )  # fmt: skip
    equal: list[LabelName] = Field(
        default_factory=lambda: ["server"], max_length=MAX_LABELS,
        description="Labels that both must have alike, by default `server`",
    )  # fmt: skip


if TYPE_CHECKING:
    AnyCondition: TypeAlias = ConditionBase
else:
    from specscope_server.alerts.rules.kinds import AnyCondition


class Rule(BaseModel):
    """One rule. Each label set that its condition speaks of has an alert of its own."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Name = Field(description="Unique; lower case, digits, `-` and `_`", examples=["low-acceptance"])
    title: str = Field(min_length=1, max_length=200, examples=["Acceptance is low"])
    category: Category = Category.OTHER
    severity: Severity = Severity.WARNING
    enabled: bool = True
    condition: AnyCondition
    for_: Wait = Field(0, alias="for", description="How long it must hold before it fires", examples=["5m"])
    keep_firing_for: Wait = Field(0, description="How long it must be over before it resolves")
    baseline_hold: Annotated[Duration, AfterValidator(_check_hold)] = Field(
        7 * 86_400_000,
        description="For how long, from the first breach on, what the rule compares with stands still, so "
        "that a change that lasts does not become its own yardstick. After that it counts as what is normal "
        "now, and the alert ends. At most 30d; `0s`: the baseline moves on at once",
        examples=["7d"],
    )
    min_n: float | None = Field(
        None, ge=0, le=1e12,
        description="Least sample, in the unit in which the signal counts; by default the signal judges",
    )  # fmt: skip
    min_requests: float | None = Field(
        None, ge=0, le=1e12, description="Least number of requests, where they are known"
    )
    no_data: NoData = NoData.KEEP
    labels: dict[LabelName, Text] = Field(
        default_factory=dict, max_length=MAX_LABELS, description="Added to the labels of every alert"
    )
    annotations: dict[LabelName, Text] = Field(
        default_factory=dict, max_length=MAX_LABELS, description="Said beside every alert"
    )
    description: str = Field("", max_length=4_000, description="What it means and why this threshold")
    advice: str = Field("", max_length=4_000, description="What to do")
    runbook: Annotated[str, AfterValidator(_check_runbook)] = Field(
        "", max_length=2_000, description="Address of a page about it (https)"
    )
    page: Annotated[str, AfterValidator(_check_page)] = Field(
        "", max_length=500,
        description="Path of the page that the alert opens, e.g. `/acceptance`; by default the signal's",
    )  # fmt: skip
    inhibits: list[Inhibition] = Field(default_factory=list, max_length=20)

    @property
    def for_seconds(self) -> float:
        """Return ``for`` in seconds."""
        return self.for_ / 1_000

    @property
    def keep_firing_for_seconds(self) -> float:
        """Return ``keep_firing_for`` in seconds."""
        return self.keep_firing_for / 1_000

    def document(self) -> dict[str, Any]:
        """Return the rule as it is written in a file: JSON-able, defaults left out."""
        body = self.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        return {**body, "condition": _document_of(self.condition)}


def _document_of(condition: ConditionBase) -> dict[str, Any]:
    """Return a condition without its defaults, but with its kind, and so all conditions in it."""
    body = condition.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    inner = getattr(condition, "conditions", None)
    if inner is not None:
        body["conditions"] = [_document_of(child) for child in inner]
    return {**body, "kind": condition.kind}


class Origin(StrEnum):
    """Where a rule comes from."""

    PACK = "pack"
    FILE = "file"
    API = "api"


class StoredRule(BaseModel):
    """A rule with what the store knows of it: what is evaluated."""

    model_config = ConfigDict(frozen=True)

    rule: Rule
    version: int
    origin: Origin
    enabled: bool
    unreadable: str = ""
    """Why this version cannot evaluate it; '' = it can. Its alerts then stay as they are."""
