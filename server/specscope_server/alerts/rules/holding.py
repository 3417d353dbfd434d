"""One alert whose baseline stands still: its rule judged for its label set alone, beside all the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from specscope_server.alerts.rules.judge_rules import JOINS, Reads, sample_of
from specscope_server.alerts.rules.judging import Sample, codes_of
from specscope_server.alerts.rules.matching import Matcher
from specscope_server.alerts.rules.reading import LabelKey
from specscope_server.alerts.rules.reads import Grid, Need
from specscope_server.alerts.rules.still import Still
from specscope_server.alerts.rules.views import CombinedView, Group, LeafView, RuleView, View

Holds: TypeAlias = Mapping[str, Mapping[LabelKey, int]]
"""Rule → label set of an alert that is pending or fires → as of when its baseline stands still (epoch ms)."""


def moves(condition: Any) -> bool:
    """Tell whether a condition, or one in it, has a baseline that moves."""
    if condition.kind in JOINS:
        return any(moves(child) for child in condition.conditions)
    return condition.held(0) is not None


def held_needs(condition: Any, at_ms: int) -> tuple[Need, ...]:
    """Return what a condition, with all in it, reads while its baselines stand still as they were then."""
    if condition.kind in JOINS:
        return tuple(need for child in condition.conditions for need in held_needs(child, at_ms))
    needs: tuple[Need, ...] = condition.held(at_ms) or condition.needs()
    return needs


@dataclass
class HeldReads:
    """Reads of single servers, beside those of all; each is made once."""

    whole: Reads
    of_server: dict[str, Reads] = field(default_factory=dict)

    @property
    def problems(self) -> list[str]:
        """Return why some could not be made."""
        return [text for reads in self.of_server.values() for text in reads.problems]

    def of(self, key: LabelKey) -> Reads:
        """Return the reads of an alert's server; of all, if it is about more than one."""
        name = dict(key).get("server")
        target = next((one for one in self.whole.frame.servers if one.name == name), None)
        if name is None or target is None:
            return self.whole
        if name not in self.of_server:
            self.of_server[name] = Reads(self.whole.session, self.whole.frame.only(target))
        return self.of_server[name]


def held_views(found: Sequence[RuleView], reads: Reads, holds: Holds) -> Iterator[tuple[LabelKey, RuleView]]:
    """Yield each alert with a baseline that stands still, and its rule's verdicts on it alone."""
    if not holds:
        return
    own = HeldReads(reads)
    for view in found:
        if (keys := holds.get(view.stored.rule.name)) and moves(view.stored.rule.condition):
            for key, at_ms in keys.items():
                yield key, held_view(view, own, key, at_ms)


def held_view(view: RuleView, reads: HeldReads, key: LabelKey, at_ms: int) -> RuleView:
    """Return a rule's verdicts on one label set, compared with what was the baseline at ``at_ms``.

    The view has no row if nothing is there to judge any more.
    """
    own = reads.of(key)
    narrow = _Narrow(own, key, at_ms, sample_of(view.stored.rule))
    inner = narrow.view(view.view, None)
    return RuleView(view.stored, inner, view.frame, {**view.errors, **narrow.errors()})


@dataclass
class _Narrow:
    reads: Reads
    key: LabelKey
    at_ms: int
    sample: Sample
    needs: list[Need] = field(default_factory=list)

    def view(self, view: View, by: frozenset[str] | None) -> View:
        """Return the part of a view that the label set is made of; ``by``: labels that joins leave of it."""
        if isinstance(view, CombinedView):
            left = view.by if by is None else by & view.by
            children = [self.view(child, left) for child in view.children]
            return CombinedView(view.is_all, view.by, children, view.size)
        assert isinstance(view, LeafView)
        return self._leaf(view, by)

    def _leaf(self, leaf: LeafView, by: frozenset[str] | None) -> LeafView:
        condition, group = leaf.condition, leaf.group
        grids = [self._mine(grid, by) for grid in self._read(condition, group.reads)]
        judged = group.module.judge(grids, [condition])
        flags = Matcher(judged.grid.keys).flags(condition.match)  # type: ignore[attr-defined]
        codes = codes_of(judged, [self.sample], np.asarray(flags).reshape(1, -1))
        return LeafView(condition, Group(group.module, grids, judged, codes), 0)

    def _read(self, condition: Any, known: Sequence[Grid]) -> list[Grid]:
        own = condition.needs()
        held = condition.held(self.at_ms) or own
        self.needs += held
        pairs = zip(held, own, known, strict=True)
        return [grid if need == usual else self._held(need, grid) for need, usual, grid in pairs]

    def _held(self, need: Need, usual: Grid) -> Grid:
        times_ms = self.reads.frame.times_ms
        found = need.among(usual, times_ms) if isinstance(need, Still) and len(times_ms) > 1 else None
        return self.reads.get(need) if found is None else found

    def _mine(self, grid: Grid, by: frozenset[str] | None) -> Grid:
        return grid.only([row for row, key in enumerate(grid.keys) if _left(key, by) == self.key])

    def errors(self) -> dict[str, str]:
        """Return server name → why what stands still could not be read."""
        found: dict[str, str] = {}
        for need in self.needs:
            found.update(self.reads.errors.get(need, {}))
        return found


def _left(key: LabelKey, by: frozenset[str] | None) -> LabelKey:
    return key if by is None else tuple(pair for pair in key if pair[0] in by)
