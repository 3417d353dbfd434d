"""The verdicts of one rule on all its label sets and points, and how a verdict becomes a reading."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import ModuleType
from typing import Any, Protocol

import numpy as np

from specscope_server.alerts.numbers import interval, number
from specscope_server.alerts.rules.condition import ConditionBase
from specscope_server.alerts.rules.judging import (
    ABSENT,
    BREACH,
    CAUSES,
    GONE,
    OK,
    UNKNOWN,
    Codes,
    Judged,
)
from specscope_server.alerts.rules.reading import Cause, LabelKey, Reading, Status
from specscope_server.alerts.rules.reads import Frame, Grid
from specscope_server.alerts.rules.schema import StoredRule
from specscope_server.kit.signal import Why


class View(Protocol):
    """Verdicts of a condition."""

    @property
    def keys(self) -> list[LabelKey]:
        """Return the label sets."""
        ...

    @property
    def codes(self) -> Codes:
        """Return what was found, shape (label sets, points)."""
        ...

    def facts(self, place: tuple[int, int]) -> Facts:
        """Return what a reading shows of one verdict."""
        ...


@dataclass(frozen=True, slots=True)
class Facts:
    """What a reading shows besides its status."""

    value: float | None
    lower: float | None
    upper: float | None
    n: float | None
    unit: str
    n_unit: str
    window_ms: int
    reason: str
    evidence: Mapping[str, Any]
    page: str = ""


@dataclass
class Group:
    """Conditions of one kind on the same reads, judged together."""

    module: ModuleType
    reads: Sequence[Grid]
    judged: Judged
    codes: Codes
    """Shape (conditions, series, points)."""

    @cached_property
    def places(self) -> dict[LabelKey, int]:
        """Return label key → row."""
        return {key: place for place, key in enumerate(self.judged.grid.keys)}

    @cached_property
    def breaching(self) -> list[bool]:
        """Return for each condition whether any series breaches at the newest point."""
        found: list[bool] = (self.codes[:, :, -1] == BREACH).any(axis=1).tolist()
        return found


def _with_note(reason: str, note: str, unit: str) -> str:
    """Return the comparison and the series' own words; of a flag, which is 0 or 1, the words alone."""
    if not note or note in reason:
        return reason
    return note if unit == "flag" else f"{reason}; {note}"


@dataclass(frozen=True, slots=True)
class LeafView:
    """One condition of a group."""

    condition: ConditionBase
    group: Group
    row: int

    @property
    def keys(self) -> list[LabelKey]:
        """Return the label sets."""
        return self.group.judged.grid.keys

    @property
    def codes(self) -> Codes:
        """Return the verdicts."""
        return np.asarray(self.group.codes[self.row])

    @property
    def is_breaching(self) -> bool:
        """Tell whether any series breaches at the newest point."""
        return self.group.breaching[self.row]

    def facts(self, place: tuple[int, int]) -> Facts:
        """Return values, and the comparison in words."""
        grid = self.group.judged.grid
        code = int(self.group.codes[(self.row, *place)])
        series = grid.series[place[0]]
        lower, upper = grid.bounds
        reason, evidence = self._explained(place, code)
        if place[1] == grid.size - 1:  # the words of a series are of its newest point
            evidence = {**series.evidence, **evidence}
            reason = _with_note(reason, series.note, grid.unit)
        return Facts(
            known(grid.value[place]), known(lower[place]), known(upper[place]), known(grid.n[place]),
            grid.unit, grid.n_unit, getattr(self.condition, "window", 0), reason[:1_000], cleaned(evidence),
            self.group.reads[0].page,
        )  # fmt: skip

    def _explained(self, place: tuple[int, int], code: int) -> tuple[str, dict[str, Any]]:
        if code >= UNKNOWN:
            return self._unknown(place, Why(code - UNKNOWN)), {}
        is_breach = code == BREACH
        words, evidence = self.group.module.explain(self.condition, self.group.reads, place, is_breach)
        return words, evidence

    def _unknown(self, place: tuple[int, int], why: Why) -> str:
        grid = self.group.judged.grid
        n = known(grid.n[place])
        few = f"too little to judge: {number(n or 0.0, grid.n_unit)}" + (
            f", {number(float(grid.value[place]), grid.unit)}"
            + interval(float(grid.bounds[0][place]), float(grid.bounds[1][place]), grid.unit)
        )
        return {
            Why.IDLE: "idle: there was nothing to do", Why.STALE: "nothing was read lately",
            Why.REFUSED: "what was read contradicts itself", Why.FEW: few,
            Why.GONE: "there is nothing to judge any more",
        }.get(why, "no data in this window, or nothing to compare it with")  # fmt: skip


@dataclass
class CombinedView:
    """Several conditions, joined by some labels."""

    is_all: bool
    by: frozenset[str]
    children: Sequence[View]
    size: int

    @cached_property
    def _joined(self) -> tuple[list[LabelKey], Codes, list[list[list[int]]]]:
        rows = [_rows(child, self.by) for child in self.children]
        wanted = set.intersection(*map(set, rows)) if self.is_all else set.union(*map(set, rows))
        keys = sorted(wanted)
        parts = [[found.get(key, []) for found in rows] for key in keys]
        codes = np.array([self._code(part) for part in parts], dtype=np.uint8).reshape(-1, self.size)
        return keys, codes, parts

    @property
    def keys(self) -> list[LabelKey]:
        """Return the joined label sets."""
        return self._joined[0]

    @property
    def codes(self) -> Codes:
        """Return the joined verdicts."""
        return self._joined[1]

    def _code(self, part: Sequence[Sequence[int]]) -> Codes:
        """Join one label set: each child breaches where any of its series does.

        Of "any", a child that has no such series takes no part; of "all", one whose series are gone ends it.
        """
        pairs = zip(self.children, part, strict=True)
        each = np.array([_worst(child, rows, self.size) for child, rows in pairs if rows])
        breach, fine, gone = each == BREACH, each == OK, each == GONE
        unknown = np.where((each >= UNKNOWN) & ~gone, each, 0).max(axis=0)
        hit = breach.all(axis=0) if self.is_all else breach.any(axis=0)
        clear = fine.any(axis=0) if self.is_all else fine.any(axis=0) & (unknown == 0)
        found = np.where(hit, BREACH, np.where(clear | (unknown == 0), OK, unknown))
        is_over = gone.any(axis=0) if self.is_all else gone.all(axis=0)
        return np.where(is_over, GONE, found).astype(np.uint8)

    def facts(self, place: tuple[int, int]) -> Facts:
        """Return the first breaching child's values and all children's words."""
        told = []
        for child, rows in zip(self.children, self._joined[2][place[0]], strict=True):
            ordered = sorted(rows, key=lambda row: child.codes[row, place[1]] != BREACH)
            if ordered:
                row = ordered[0]
                told.append((child.codes[row, place[1]] != BREACH, child.facts((row, place[1]))))
        first = min(told, key=lambda pair: pair[0])[1]
        reason = "; ".join(dict.fromkeys(one.reason for _, one in told))
        evidence = {"conditions": [{**one.evidence, "reason": one.reason} for _, one in told]}
        window_ms = max(one.window_ms for _, one in told)
        return Facts(
            first.value, first.lower, first.upper, first.n, first.unit, first.n_unit, window_ms,
            reason[:1_000], evidence, first.page,
        )  # fmt: skip


def _rows(child: View, by: frozenset[str]) -> dict[LabelKey, list[int]]:
    found: dict[LabelKey, list[int]] = {}
    present = (child.codes != ABSENT).any(axis=1)
    for row, key in enumerate(child.keys):
        if present[row]:
            found.setdefault(tuple(pair for pair in key if pair[0] in by), []).append(row)
    return found


def _worst(child: View, rows: Sequence[int], size: int) -> Codes:
    """Return the verdict of several series of one child: breach before unknown before fine."""
    if not rows:
        return np.full(size, UNKNOWN + Why.NO_DATA, dtype=np.uint8)
    codes = child.codes[list(rows)]
    breach = (codes == BREACH).any(axis=0)
    out = (codes == ABSENT) | (codes == GONE)
    rest = np.where(out, OK, codes).max(axis=0)
    is_over = out.all(axis=0) & (codes == GONE).any(axis=0)
    return np.where(breach, BREACH, np.where(is_over, GONE, rest)).astype(np.uint8)


@dataclass
class RuleView:
    """A rule with its verdicts."""

    stored: StoredRule
    view: View
    frame: Frame
    errors: Mapping[str, str] = field(default_factory=dict)
    """Server name → why it could not be evaluated there."""

    @cached_property
    def places(self) -> dict[LabelKey, int]:
        """Return label key → row."""
        return {key: row for row, key in enumerate(self.view.keys)}

    def rows(self, point: int = -1) -> Iterator[int]:
        """Yield the rows that have a verdict at a point."""
        yield from np.flatnonzero(self.view.codes[:, point] != ABSENT).tolist()

    def reading(self, row: int, point: int = -1) -> Reading:
        """Return the reading of one label set at one point."""
        point = point % len(self.frame.times_ms)
        code = int(self.view.codes[row, point])
        facts = self.view.facts((row, point))
        end_ms = int(self.frame.times_ms[point])
        evidence = {**facts.evidence, "page": facts.page} if facts.page else dict(facts.evidence)
        return Reading(
            rule=self.stored.rule.name, rule_version=self.stored.version, labels=dict(self.view.keys[row]),
            status=status_of(code), value=facts.value, lower=facts.lower, upper=facts.upper, n=facts.n,
            unit=facts.unit, n_unit=facts.n_unit, window_from_ms=end_ms - facts.window_ms,
            window_to_ms=end_ms, cause=cause_of(code), reason=facts.reason, evidence=evidence,
        )  # fmt: skip


def status_of(code: int) -> Status:
    """Return what a code means."""
    return {OK: Status.OK, BREACH: Status.BREACH, GONE: Status.GONE}.get(code, Status.NO_DATA)


def cause_of(code: int) -> Cause:
    """Return why there is no verdict."""
    return CAUSES.get(Why(code - UNKNOWN), Cause.NO_DATA) if code >= UNKNOWN else Cause.NONE


def known(value: float) -> float | None:
    """Return a number, None for NaN and infinity."""
    return float(value) if np.isfinite(value) else None


def cleaned(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return evidence without NaN, which JSON lacks."""
    return {
        name: None if isinstance(value, float) and not np.isfinite(value) else value
        for name, value in values.items()
    }
