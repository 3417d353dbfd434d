"""Acceptance by draft position from counters of accepted drafts: every cycle, as it happens.

``spec.drafts_accepted`` by position counts the cycles that accepted draft k (and all before it),
``spec.cycles`` all of them, so that S_k and α_k are quotients of sums. Where proposals are counted by
position too, only cycles that proposed a k-th draft are held against position k.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from sqlalchemy.orm import Session

from specscope_server.acceptance.gather import DRAFTS, LACKS, target_series
from specscope_server.acceptance.position_counts import Counts, PositionGrid
from specscope_server.acceptance.statistics import Floats, bootstrapped_ratio
from specscope_server.acceptance.survival import Position
from specscope_server.kit.ranks import leaders
from specscope_server.kit.timerange import Window
from specscope_server.models import Launch
from specscope_server.store.series_reader import Buckets, SeriesRef, find_series, read_buckets

EVIDENCE = "counters of accepted drafts by position"
CYCLES, PROPOSED, ACCEPTED = DRAFTS
MAX_POSITION = 1_000
ROUNDING = 1e-6


@dataclass(frozen=True, slots=True)
class Counted:
    """One launch; arrays of shape (buckets, K), the last axis from position 1 on. NaN = not observed."""

    launch: Launch
    cycles: Floats
    """Cycles that proposed a k-th draft (all cycles where proposals are not counted by position)."""
    offered: Floats
    accepted: Floats
    contradictions: int
    """Buckets left out because the counts contradict each other: a value came late."""

    @property
    def depth(self) -> int:
        """K, the deepest position that is counted."""
        return int(self.accepted.shape[1])

    def positions(self) -> list[Position]:
        """Return every position over all buckets, with intervals from a block bootstrap over buckets."""
        return [
            Position(
                k + 1,
                round(float(np.nansum(self.cycles[:, k]))),
                round(float(np.nansum(self.offered[:, k]))),
                round(float(np.nansum(self.accepted[:, k]))),
                bootstrapped_ratio(self.accepted[:, k], self.cycles[:, k]),
                bootstrapped_ratio(self.accepted[:, k], self.offered[:, k]),
            )
            for k in range(self.depth)
        ]


def counted_launches(session: Session, launches: Mapping[int, Launch], window: Window) -> list[Counted]:
    """Return the launches whose accepted drafts are counted by position, in the order given."""
    found = find_series(session, metrics=DRAFTS, launch_ids=list(launches)) if launches else []
    found = [ref for ref in found if LACKS not in ref.labels]
    chosen = {key: target_series(session, launch, found)[0] for key, launch in launches.items()}
    positioned = {key: refs for key, refs in chosen.items() if any(map(_position, refs))}
    used = [ref for refs in positioned.values() for ref in refs]
    buckets = read_buckets(session, used, window) if used else {}
    counted = (_counted(launches[key], refs, buckets, window) for key, refs in positioned.items())
    return [one for one in counted if one is not None]


def of_counters(
    session: Session, server_id: int, launches: Mapping[int, Launch], window: Window
) -> PositionGrid | None:
    """Return the counts by bucket and position; None when no launch counts by position."""
    found = counted_launches(session, launches, window)
    if not found:
        return None
    shape = (window.buckets, max(one.depth for one in found))
    cycles, offered, accepted = (np.zeros(shape) for _ in range(3))
    for one in found:
        for grid, part in ((cycles, one.cycles), (offered, one.offered), (accepted, one.accepted)):
            grid[:, : one.depth] += np.nan_to_num(part)
    left_out = sum(one.contradictions for one in found)
    notes = (f"Left out, because a count came late: {left_out} intervals.",) if left_out else ()
    covers = frozenset(one.launch.id for one in found)
    return PositionGrid(_whole(cycles), _whole(offered), _whole(accepted), EVIDENCE, notes, covers)


def _whole(values: Floats) -> Counts:
    return np.asarray(np.rint(values), dtype=np.int64)


def _position(ref: SeriesRef) -> int:
    """Return the draft position of a series; 0 = none, or text that is no position."""
    text = ref.labels.get("position", "0")
    is_number = text.isascii() and text.isdigit() and len(text) < 6
    return int(text) if is_number and int(text) <= MAX_POSITION else 0


def _counted(
    launch: Launch, refs: Sequence[SeriesRef], buckets: Mapping[int, Buckets], window: Window
) -> Counted | None:
    def grown(metric: str, position: int) -> Floats:
        group = [ref for ref in refs if ref.metric == metric and ref.id in buckets]
        kept = leaders((ref, ref.labels) for ref in group if _position(ref) == position)
        total = np.full(window.buckets, np.nan)
        for part in (buckets[ref.id] for ref in kept):
            total = np.where(part.n > 0, np.nan_to_num(total) + part.sum, total)
        return total

    depth = max((_position(ref) for ref in refs if ref.metric == ACCEPTED and ref.id in buckets), default=0)
    cycles = grown(CYCLES, 0)
    if not depth or not np.nansum(cycles):
        return None
    accepted = np.stack([grown(ACCEPTED, k) for k in range(1, depth + 1)], axis=1)
    proposed = np.stack([grown(PROPOSED, k) for k in range(1, depth + 1)], axis=1)
    reaching = np.where(np.isnan(proposed), cycles[:, None], proposed)
    before = np.concatenate((cycles[:, None], accepted[:, :-1]), axis=1)
    offered = np.fmin(before, reaching)
    late = (accepted > offered * (1 + ROUNDING) + ROUNDING).any(axis=1)
    for array in (reaching, offered, accepted):
        array[late | np.isnan(cycles)] = np.nan
    return Counted(launch, reaching, offered, accepted, int(late.sum()))
