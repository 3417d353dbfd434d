"""The rule for outliers: false alarms are as rare as it says, and both sides are found."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specscope_server.acceptance.statistics import Floats
from specscope_server.requests.outliers import judge
from specscope_server.requests.population import Population, Row
from specscope_server.requests.statistics import (
    MIN_CYCLES,
    MIN_PEERS,
    Peers,
    is_outlier,
    log_chance,
    rate,
    spread_between,
)

HEALTHY = np.array([0.24, 0.2432, 0.22222, 0.13256, 0.07553, 0.08649])
HEALTHY = HEALTHY / HEALTHY.sum()


def row(number: int, histogram: list[int], *, depth: int | None = 5, launch: int = 1) -> Row:
    """Return a request with this histogram."""
    accepted = sum(d * n for d, n in enumerate(histogram))
    return Row(number, launch, 10, 20, sum(histogram), accepted, None, histogram, depth, "{}")


def drawn(seed: int, requests: int, spread: float = 0.0, cycles: tuple[int, int] = (20, 120)) -> list[Row]:
    """Return requests whose cycles are drawn from one distribution, tilted request by request."""
    rng = np.random.default_rng(seed)
    rows = []
    for number in range(requests):
        tilted = HEALTHY * np.exp(rng.normal(0, spread) * np.arange(6))
        rows.append(row(number, rng.multinomial(rng.integers(*cycles), tilted / tilted.sum()).tolist()))
    return rows


def population(rows: list[Row]) -> Population:
    """Return a population of all these."""
    return Population(len(rows), 1, 0, rows)


def test_rate_is_half_the_likelihood_ratio_of_the_tilted_distribution() -> None:
    half = np.array([0.5, 0.5])
    at = np.array([0.0, 0.1, 0.5, 0.9, 1.0])
    with np.errstate(divide="ignore", invalid="ignore"):
        exact = np.nan_to_num(at * np.log(at / 0.5)) + np.nan_to_num((1 - at) * np.log((1 - at) / 0.5))
    assert rate(half, at) == pytest.approx(exact, abs=2e-4)


@given(st.lists(st.integers(1, 50), min_size=2, max_size=7), st.floats(0, 1))
def test_rate_is_zero_at_the_mean_and_grows_outward(counts: list[int], share: float) -> None:
    shares = np.array(counts) / sum(counts)
    mean = float(shares @ np.arange(len(shares)))
    end = float(len(shares) - 1)
    inner, outer = mean + share * 0.5 * (end - mean), mean + share * (end - mean)
    near, inside, outside = rate(shares, np.array([mean, inner, outer]))
    assert near == pytest.approx(0, abs=1e-5)
    assert inside <= outside + 1e-9


def test_the_bound_holds_against_the_exact_binomial_tail() -> None:
    peers = Peers(np.array([0.7, 0.3]), 0.3, 0.21, 0.0)
    cycles = 40
    chances = np.exp(log_chance(peers, np.arange(13.0, 41), np.full(28, float(cycles))))
    rng = np.random.default_rng(1)
    sums = rng.binomial(cycles, 0.3, 400_000)
    for accepted, chance in zip(range(13, 41), chances, strict=True):
        assert (sums >= accepted).mean() <= chance + 1e-4


def test_spread_is_found_although_some_stand_apart() -> None:
    rng = np.random.default_rng(3)
    variances = rng.uniform(0.01, 0.1, 3_000)
    distances = rng.normal(0, np.sqrt(variances + 0.3**2))
    distances[:60] = 5.0
    assert spread_between(distances, variances) == pytest.approx(0.3, rel=0.1)
    assert spread_between(rng.normal(0, 0.5 * np.sqrt(variances)), variances) == pytest.approx(0, abs=0.01)
    assert spread_between(np.zeros(5), np.zeros(5)) == 0


@pytest.mark.parametrize("spread", [0.0, 0.1, 0.3])
def test_false_alarms_are_rarer_than_it_says(spread: float) -> None:
    windows = 60
    alarms = sum(bool(judge(population(drawn(seed, 200, spread))).outlying.any()) for seed in range(windows))
    assert alarms <= 0.05 * windows + 3


def test_both_sides_are_found_among_requests_that_differ() -> None:
    rows = drawn(5, 400, spread=0.15)
    rows += [row(900, [60, 0, 0, 0, 0, 0]), row(901, [0, 0, 0, 0, 0, 60]), row(902, [19, 0, 0, 0, 0, 0])]
    found = population(rows)
    judgement = judge(found)
    low, high = judgement.low(found.lengths), judgement.high(found.lengths)
    assert [rows[place].number for place in np.flatnonzero(low)] == [900]
    assert [rows[place].number for place in np.flatnonzero(high)] == [901]
    assert not judgement.judged[402]


def test_a_launch_is_judged_by_itself() -> None:
    rows = drawn(6, 100)
    dead = [row(number, [55, 4, 1, 0, 0, 0], launch=2) for number in range(500, 560)]
    judgement = judge(population(rows + dead))
    assert judgement.judged.all()
    assert not judgement.outlying.any()


@pytest.mark.parametrize(
    "rows",
    [
        [],
        drawn(1, MIN_PEERS - 1),
        drawn(1, 100, cycles=(1, MIN_CYCLES)),
        [each._replace(depth=None) for each in drawn(1, 100)],
        [each._replace(histogram=None) for each in drawn(1, 100)],
        [row(number, [0, 0, 0, 0, 0, 50]) for number in range(100)],
    ],
    ids=["none", "few peers", "few cycles", "K varied", "no histogram", "all alike"],
)
def test_what_cannot_be_judged_is_not(rows: list[Row]) -> None:
    assert not judge(population(rows)).outlying.any()


def test_more_judged_at_once_need_more_to_stand_apart() -> None:
    chance: Floats = np.log(np.array([1e-3]))
    assert is_outlier(chance, 10)[0]
    assert not is_outlier(chance, 1_000)[0]
