"""The requests of a range as a whole: both means, self-checks, coverage, and those that stand apart."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select
from sqlalchemy.orm import Session

from specscope_server.acceptance.statistics import Ratio, clustered_ratio
from specscope_server.kit.timeparse import to_iso
from specscope_server.kit.timerange import Window
from specscope_server.models import Request
from specscope_server.requests.checks import checks_of
from specscope_server.requests.coverage import Coverage, read_coverage
from specscope_server.requests.filters import Scope
from specscope_server.requests.listing import item_of
from specscope_server.requests.outliers import RULE, Judgement, judge
from specscope_server.requests.parts import label_names
from specscope_server.requests.population import Population, read_population
from specscope_server.requests.summary_schemas import Outlier, Outliers, RequestCoverage, RequestSummary

MAX_OUTLIERS = 20
"""Outliers listed on each side."""
SMALL_GAP = 0.02


def read_summary(session: Session, server: str, scope: Scope, window: Window) -> RequestSummary:
    """Return the summary of the requests in scope."""
    return summary_of(
        session, server, scope, read_population(session, scope), read_coverage(session, scope, window)
    )


def summary_of(
    session: Session, server: str, scope: Scope, population: Population, coverage: Coverage
) -> RequestSummary:
    """Return the summary of a population that was read already."""
    proposed = [row.proposed for row in population.rows]
    known = None if None in proposed else sum(filter(None, proposed))
    length, mean = _pooled(population), _mean(population)
    accepted = int(population.accepted.sum())
    gap = None if length.value is None or mean is None else length.value - mean
    return RequestSummary.model_validate(
        {
            "server": server, "from": to_iso(scope.from_ms), "to": to_iso(scope.to_ms),
            "is_demo": any(launch.is_demo for launch in scope.launches.values()),
            "total": population.total, "sampled_every": population.every, "requests": len(population.rows),
            "without_counts": population.without_counts,
            "without_histogram": sum(row.histogram is None for row in population.rows),
            "cycles": int(population.cycles.sum()), "accepted_drafts": accepted, "proposed_drafts": known,
            "accept_length": length.value, "accept_length_low": length.low, "accept_length_high": length.high,
            "request_mean_accept_length": mean, "gap": gap, "gap_note": gap_words(gap),
            "draft_acceptance": accepted / known if known else None,
            "coverage": RequestCoverage(
                request_cycles=coverage.of_requests, engine_cycles=coverage.of_engine, share=coverage.share
            ),
            "checks": checks_of(population, coverage), "outliers": _outliers(session, population),
            "labels": label_names(population.rows), "note": population.note(),
        }
    )  # fmt: skip


def _pooled(population: Population) -> Ratio:
    x, y = population.cycles, population.accepted
    sums = (float(x.sum()), float(y.sum()), float(x @ x), float(x @ y), float(y @ y))
    return clustered_ratio(len(x), sums).shifted(1.0)


def _mean(population: Population) -> float | None:
    return float(population.lengths.mean()) if len(population.rows) else None


def gap_words(gap: float | None) -> str:
    """Return why pooled τ and the mean of requests differ."""
    if gap is None:
        return ""
    if abs(gap) < SMALL_GAP:
        return "Long and short requests accept alike: both means agree."
    more, less = ("more", "above") if gap > 0 else ("less", "below")
    return (
        f"Pooled τ counts each cycle once, so long requests weigh more; it is {abs(gap):.2f} {less} the "
        f"mean, in which each request weighs the same: requests with many cycles accept {more} per cycle. "
        "Throughput follows the pooled one, what a typical user sees the mean."
    )


def _outliers(session: Session, population: Population) -> Outliers:
    judgement = judge(population)
    low, high = judgement.low(population.lengths), judgement.high(population.lengths)
    n = int(judgement.judged.sum())
    return Outliers(
        judged=n, not_judged=len(population.rows) - n, low=int(low.sum()), high=int(high.sum()), rule=RULE,
        requests=[
            *_listed(session, population, judgement, low, "low"),
            *_listed(session, population, judgement, high, "high"),
        ],
    )  # fmt: skip


def _listed(
    session: Session, population: Population, judgement: Judgement, side: NDArray[np.bool_], name: str
) -> list[Outlier]:
    found = np.flatnonzero(side)
    places = found[np.argsort(judgement.log_chances[found], kind="stable")][:MAX_OUTLIERS].tolist()
    numbers = [population.rows[place].number for place in places]
    rows: dict[int, Any] = {
        row.id: row for row in session.scalars(select(Request).where(Request.id.in_(numbers)))
    }
    everyone = np.log(max(int(judgement.judged.sum()), 1))
    return [
        Outlier(
            request=item_of(rows[number]),
            side=name,
            expected_accept_length=float(judgement.expected[place]),
            log10_chance=float((judgement.log_chances[place] + everyone) / np.log(10)),
        )
        for place, number in zip(places, numbers, strict=True)
        if number in rows
    ]
