"""From rules and a frame to verdicts: each need is read once, conditions of a kind are judged together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import structlog
from sqlalchemy.orm import Session

from specscope_server.alerts.rules.condition import ConditionBase
from specscope_server.alerts.rules.judging import Sample, codes_of
from specscope_server.alerts.rules.kinds import kinds
from specscope_server.alerts.rules.matching import Matcher
from specscope_server.alerts.rules.reads import Frame, Grid, Need
from specscope_server.alerts.rules.schema import Rule, StoredRule
from specscope_server.alerts.rules.views import CombinedView, Group, LeafView, RuleView, View
from specscope_server.kit.signal import SignalSeries

JOINS = ("all", "any")

_log = structlog.get_logger()


@dataclass
class Reads:
    """What was read, and what could not be."""

    session: Session
    frame: Frame
    grids: dict[Need, Grid] = field(default_factory=dict)
    errors: dict[Need, dict[str, str]] = field(default_factory=dict)
    """Need → server name → reason."""

    @property
    def problems(self) -> list[str]:
        """Return every reason."""
        return [text for errors in self.errors.values() for text in errors.values()]

    def get(self, need: Need) -> Grid:
        """Return the grid of a need. What fails for one server must not take the others along."""
        if need not in self.grids:
            try:
                self.grids[need] = need.read(self.session, self.frame)
            except Exception as error:
                self.grids[need] = self._one_by_one(need, error)
        return self.grids[need]

    def _one_by_one(self, need: Need, error: Exception) -> Grid:
        self.session.rollback()
        found: list[Grid] = []
        for server in self.frame.servers:
            try:
                found.append(need.read(self.session, self.frame.only(server)))
            except Exception as one:
                self.session.rollback()
                _log.warning(
                    "a signal could not be read", need=str(need), server=server.name, error=repr(one)
                )
                self.errors.setdefault(need, {})[server.name] = f"{type(one).__name__}: {one}"[:300]
        return _joined(found, len(self.frame.times_ms))


def _joined(grids: Sequence[Grid], size: int) -> Grid:
    if not grids:
        return Grid([], size)
    series: list[SignalSeries] = [one for grid in grids for one in grid.series]
    first = grids[0]
    return Grid(series, first.size, first.unit, first.n_unit, first.page, first.times_ms)


@dataclass(frozen=True, slots=True)
class _Leaf:
    condition: Any
    sample: Sample
    number: int


def views(session: Session, frame: Frame, rules: Sequence[StoredRule]) -> tuple[list[RuleView], Reads]:
    """Return the verdicts of each rule, in order."""
    reads = Reads(session, frame)
    leaves = [list(_leaves(stored.rule.condition)) for stored in rules]
    numbered: list[_Leaf] = []
    for stored, own in zip(rules, leaves, strict=True):
        sample = sample_of(stored.rule)
        numbered += [_Leaf(leaf, sample, len(numbered) + place) for place, leaf in enumerate(own)]
    judged = _judge(reads, numbered)
    start, found = 0, []
    for stored, own in zip(rules, leaves, strict=True):
        parts = iter(judged[start : start + len(own)])
        start += len(own)
        view = _view(stored.rule.condition, parts, len(frame.times_ms))
        found.append(RuleView(stored, view, frame, _errors(reads, own)))
    return found, reads


def sample_of(rule: Rule) -> Sample:
    """Return how much a rule asks for."""
    return Sample(_limit(rule.min_n), _limit(rule.min_requests))


def _limit(value: float | None) -> float:
    return np.nan if value is None else value


def _leaves(condition: Any) -> Iterator[ConditionBase]:
    if condition.kind in JOINS:
        for child in condition.conditions:
            yield from _leaves(child)
    else:
        yield condition


def _judge(reads: Reads, leaves: Sequence[_Leaf]) -> list[LeafView]:
    groups: dict[Any, list[_Leaf]] = {}
    for leaf in leaves:
        groups.setdefault((leaf.condition.kind, leaf.condition.needs()), []).append(leaf)
    found: dict[int, LeafView] = {}
    for (kind, needs), own in groups.items():
        module = kinds()[kind]
        grids = [reads.get(need) for need in needs]
        judged = module.judge(grids, [leaf.condition for leaf in own])
        matcher = Matcher(judged.grid.keys)
        matches = np.array([matcher.flags(leaf.condition.match) for leaf in own])
        codes = codes_of(judged, [leaf.sample for leaf in own], matches.reshape(len(own), -1))
        group = Group(module, grids, judged, codes)
        for row, leaf in enumerate(own):
            found[leaf.number] = LeafView(leaf.condition, group, row)
    return [found[leaf.number] for leaf in leaves]


def _view(condition: Any, parts: Iterator[LeafView], size: int) -> View:
    if condition.kind not in JOINS:
        return next(parts)
    children = [_view(child, parts, size) for child in condition.conditions]
    return CombinedView(condition.kind == "all", frozenset(condition.by), children, size)


def _errors(reads: Reads, leaves: Sequence[Any]) -> dict[str, str]:
    if not reads.errors:
        return {}
    found: dict[str, str] = {}
    for leaf in leaves:
        for need in leaf.needs():
            found.update(reads.errors.get(need, {}))
    return found
