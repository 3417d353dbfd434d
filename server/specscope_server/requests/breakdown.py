"""Acceptance by a label's value or by a length: which requests gain, and which do not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sqlalchemy.orm import Session

from specscope_server.acceptance.statistics import MIN_CYCLES, Ratio, clustered_ratio
from specscope_server.acceptance.survival import share
from specscope_server.kit.timeparse import to_iso
from specscope_server.requests.breakdown_schemas import Breakdown, Part, PartPosition
from specscope_server.requests.filters import Scope
from specscope_server.requests.parts import Slice, cut, label_names, title_of
from specscope_server.requests.population import Population, Row, matrix_of, read_population


def read_breakdown(session: Session, server: str, scope: Scope, by: str) -> Breakdown:
    """Return the parts of the requests in scope; raises `InvalidInput` for an unknown ``by``."""
    title = title_of(by)
    return breakdown_of(server, scope, by, title, read_population(session, scope))


def breakdown_of(server: str, scope: Scope, by: str, title: str, population: Population) -> Breakdown:
    """Return the parts of a population that was read already."""
    parts = [part_of(population, each) for each in cut(population.rows, by)]
    return Breakdown.model_validate(
        {
            "server": server, "from": to_iso(scope.from_ms), "to": to_iso(scope.to_ms),
            "is_demo": any(launch.is_demo for launch in scope.launches.values()), "by": by, "title": title,
            "labels": label_names(population.rows), "parts": parts, "note": _note(population, parts),
        }
    )  # fmt: skip


def part_of(population: Population, chosen: Slice) -> Part:
    """Return the counts and ratios of one part."""
    rows = [population.rows[place] for place in chosen.places]
    cycles, accepted = population.cycles[chosen.places], population.accepted[chosen.places]
    sums = (cycles.sum(), accepted.sum(), cycles @ cycles, cycles @ accepted, accepted @ accepted)
    length = clustered_ratio(len(rows), tuple(map(float, sums))).shifted(1.0)  # type: ignore[arg-type]
    return Part(
        name=chosen.name, kind=chosen.kind, low=chosen.low, high=chosen.high, requests=len(rows),
        cycles=int(cycles.sum()), accepted_drafts=int(accepted.sum()), accept_length=length.value or 1.0,
        accept_length_low=None if length.low is None else max(length.low, 1.0),
        accept_length_high=_capped(length.high, _depths(rows)),
        request_mean_accept_length=float(population.lengths[chosen.places].mean()),
        draft_acceptance=_strict(rows), depths=_depths(rows), positions=positions_of(rows),
        is_few=bool(cycles.sum() < MIN_CYCLES),
    )  # fmt: skip


def _strict(rows: Sequence[Row]) -> float | None:
    proposed = [row.proposed for row in rows]
    if not rows or None in proposed or not sum(filter(None, proposed)):
        return None
    return sum(row.accepted for row in rows) / sum(filter(None, proposed))


def _capped(high: float | None, depths: Sequence[int | None]) -> float | None:
    """Return the bound, no higher than K + 1: no cycle emits more."""
    known = [depth for depth in depths if depth is not None]
    return high if high is None or len(known) < len(depths) else min(high, max(known) + 1.0)


def _depths(rows: Sequence[Row]) -> list[int | None]:
    return sorted({row.depth for row in rows}, key=lambda depth: (depth is None, depth or 0))


def positions_of(rows: Sequence[Row]) -> list[PartPosition]:
    """Return α_k over the requests whose K reaches k; those without histogram or with varying K say nothing.

    So requests of different K can be taken together: no draft counts that was never proposed.
    """
    told = [row for row in rows if row.histogram is not None and row.depth]
    deepest = max((row.depth or 0 for row in told), default=0)
    if not deepest:
        return []
    depths = np.array([row.depth for row in told])
    reached = np.cumsum(matrix_of(told, deepest)[:, ::-1], axis=1)[:, ::-1].astype(np.float64)
    found = []
    for k in range(1, deepest + 1):
        offered, accepted = reached[depths >= k, k - 1], reached[depths >= k, k]
        found.append(_position(k, int(offered.sum()), int(accepted.sum()), share(accepted, offered)))
    return found


def _position(k: int, offered: int, accepted: int, ratio: Ratio) -> PartPosition:
    return PartPosition(
        position=k, offered=offered, accepted=accepted, conditional=ratio.value,
        conditional_low=ratio.low, conditional_high=ratio.high, is_few=offered < MIN_CYCLES,
    )  # fmt: skip


def _note(population: Population, parts: Sequence[Part]) -> str:
    notes = [population.note()]
    if not parts:
        notes.append("No request of this range reported verify calls and accepted drafts.")
    depths = {depth for part in parts for depth in part.depths}
    if len(depths) > 1:
        named = ", ".join("varying" if depth is None else str(depth) for depth in sorted(depths, key=str))
        notes.append(f"Launches of different K are taken together ({named}): choose one to compare.")
    return " ".join(filter(None, notes))
