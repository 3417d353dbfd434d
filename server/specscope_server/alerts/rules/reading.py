"""What a rule says of one label set at one instant: the contract between evaluation and states."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias

LabelKey: TypeAlias = tuple[tuple[str, str], ...]
"""Labels, sorted by name."""


class Status(StrEnum):
    """What was found."""

    OK = "ok"
    BREACH = "breach"
    NO_DATA = "no_data"
    """Nothing can be said: ``cause`` tells why."""
    ERROR = "error"
    """The rule could not be evaluated: ``reason`` tells why."""
    GONE = "gone"
    """There is no such series any more, and ``reason`` tells why: like one that vanished, with words."""


class Cause(StrEnum):
    """Why there is no verdict."""

    NONE = ""
    NO_DATA = "no_data"
    IDLE = "idle"
    STALE = "stale"
    REFUSED = "refused"
    FEW = "few"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One rule, one label set, one instant."""

    rule: str
    rule_version: int
    labels: Mapping[str, str]
    status: Status
    value: float | None = None
    lower: float | None = None
    upper: float | None = None
    n: float | None = None
    unit: str = ""
    n_unit: str = ""
    window_from_ms: int
    window_to_ms: int
    cause: Cause = Cause.NONE
    reason: str = ""
    """In words, with numbers and units: what was compared with what."""
    evidence: Mapping[str, Any] = field(default_factory=dict)
    """JSON-able: the threshold, the baseline, sub-conditions …"""

    @property
    def key(self) -> tuple[str, LabelKey]:
        """Return (rule, labels): what an alert's state belongs to."""
        return self.rule, label_key(self.labels)


def label_key(labels: Mapping[str, str]) -> LabelKey:
    """Return labels as a hashable key."""
    return tuple(sorted(labels.items()))
