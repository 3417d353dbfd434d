"""Rankings as they are shown."""

from __future__ import annotations

import math

from specscope_collectors.states import distances
from specscope_collectors.states.rules import Ranking
from specscope_server.drift.facts import Facts
from specscope_server.drift.schemas import CurvePoint, Nearest
from specscope_server.drift.yardsticks import Yardstick

LEAST = 1e-3
"""Distance below which two directions are the same: a ratio to less would only be a large number."""


def known(value: float | None) -> float | None:
    """Return a number that can be shown; NaN is not known."""
    return None if value is None or math.isnan(value) else value


def nearest_vcos(facts: Facts, yard: Yardstick) -> Nearest | None:
    """Return the nearest place by mean unit vectors per token id."""
    ranking = facts.judged.vcos
    if ranking.best is None:
        return None
    best = ranking.distance(ranking.best) or 0.0
    other = ranking.distance(_compared(ranking, facts.claimed))
    ratio = max(other, LEAST) / max(best, LEAST) if other is not None else None
    return _nearest(ranking, best, ranking.distance(facts.claimed), ratio, yard)


def nearest_dnll(facts: Facts, yard: Yardstick) -> Nearest | None:
    """Return the nearest place by likelihood of unit vectors; distances count from the nearest."""
    ranking = facts.judged.likelihood
    if ranking.best is None:
        return None
    least = ranking.distance(ranking.best) or 0.0
    claimed, other = ranking.distance(facts.claimed), ranking.distance(_compared(ranking, facts.claimed))
    rows = (other - least) * facts.hidden_size if other is not None else None
    return _nearest(ranking, 0.0, None if claimed is None else claimed - least, rows, yard)


def _compared(ranking: Ranking, claimed: int | None) -> int | None:
    """Return the place that the nearest one is held against: the claimed one, or the next."""
    return claimed if claimed is not None and claimed != ranking.best else ranking.runner_up


def _nearest(
    ranking: Ranking, distance: float, claimed: float | None, ratio: float | None, yard: Yardstick
) -> Nearest:
    bank = yard.bank
    assert bank is not None
    assert ranking.best is not None
    place = bank.places[ranking.best]
    next_place = bank.places[ranking.runner_up] if ranking.runner_up is not None else None
    return Nearest(
        boundary=place.boundary, place=place.name, distance=distance, claimed_distance=claimed,
        runner_up=next_place.boundary if next_place else None, runner_up_ratio=ratio,
    )  # fmt: skip


def curve_of(facts: Facts, yard: Yardstick) -> list[CurvePoint]:
    """Return the distances of the newest window to every place."""
    bank = yard.bank
    if bank is None or not facts.is_comparable:
        return []
    judged = facts.judged
    likelihood = judged.likelihood
    least = likelihood.distance(likelihood.best)
    points = []
    for index, place in enumerate(bank.places):
        dnll = likelihood.distance(index)
        points.append(
            CurvePoint(
                slot=facts.plan.slot, phase=facts.plan.phase, boundary=place.boundary, place=place.name,
                vcos=judged.vcos.distance(index),
                dnll=dnll - least if dnll is not None and least is not None else None,
                norm=known(distances.w1(facts.norms, bank.sums[index].norms)),
                is_trained=index == facts.claimed,
                is_captured=place.boundary is not None and place.boundary == facts.plan.boundary,
            )
        )  # fmt: skip
    return points
