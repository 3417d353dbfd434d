"""The arithmetic in the docstring of the cycle model holds, and the sampled cycles follow it."""

from __future__ import annotations

import random
import statistics
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specscope_server.demo.model import DEAD, HEALTHY, Cycle, CycleModel, accept_length, survival


def tokens_per_second(model: CycleModel) -> float:
    return 1000 * model.accept_length / model.mean_cycle(1).total


def test_accept_lengths_are_those_of_the_story() -> None:
    assert accept_length(HEALTHY, 5) == pytest.approx(2.82, abs=0.0005)
    assert accept_length(DEAD, 5) == pytest.approx(1.12, abs=0.0005)
    assert [round(accept_length(HEALTHY, k), 3) for k in range(1, 5)] == [1.76, 2.277, 2.571, 2.733]


def test_printed_rates_are_those_of_the_story() -> None:
    assert round(100 * accept_length(HEALTHY, 5) / 6) == 47
    assert round(100 * accept_length(DEAD, 5) / 6) == 19
    assert (accept_length(DEAD, 5) - 1) / 5 == pytest.approx(0.024, abs=0.0001)


def test_throughput_of_one_request_by_depth() -> None:
    rates = {k: round(tokens_per_second(CycleModel(k)), 1) for k in range(6)}
    assert rates == {0: 88.8, 1: 86.3, 2: 94.0, 3: 91.7, 4: 85.8, 5: 79.0}
    assert max(rates, key=lambda k: rates[k]) == 2


def test_verify_share_and_cut() -> None:
    slow, tuned = (CycleModel(5, network_tuned=tuned).mean_cycle(1) for tuned in (False, True))
    assert slow.verify / slow.total == pytest.approx(0.95)
    assert tuned.verify / slow.verify == pytest.approx(1 - 0.27)


@pytest.mark.parametrize("batch", [2, 4, 8])
def test_verify_stays_about_95_percent_in_a_batch(batch: int) -> None:
    cycle = CycleModel(5, network_tuned=False).mean_cycle(batch)
    assert cycle.verify / cycle.total == pytest.approx(0.95, abs=0.01)


def test_without_speculation_there_is_only_a_plain_step() -> None:
    cycle = CycleModel(0).mean_cycle(1)
    assert (cycle.draft, cycle.verify, cycle.extend) == (0, 0, 0)
    assert cycle.plain > 0


def test_one_step_of_depth_needs_no_draft_step() -> None:
    assert CycleModel(1).mean_cycle(4).draft == 0
    assert CycleModel(2).mean_cycle(4).draft > 0


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_survival_never_rises(alphas: list[float]) -> None:
    chances = survival(alphas, len(alphas))
    assert all(later <= earlier for earlier, later in pairwise(chances))
    assert 1 <= accept_length(alphas, len(alphas)) <= len(alphas) + 1


def test_sampled_acceptance_follows_alpha_by_position() -> None:
    rng, model = random.Random(1), CycleModel(5)
    drawn = [model.sample_accepted(rng) for _ in range(60_000)]
    for k, chance in enumerate(survival(HEALTHY, 5), start=1):
        share = sum(d >= k for d in drawn) / len(drawn)
        assert share == pytest.approx(chance, abs=5 * (chance * (1 - chance) / len(drawn)) ** 0.5), k
    assert max(drawn) == 5


def test_sampled_times_have_the_mean_of_the_model() -> None:
    rng, model = random.Random(2), CycleModel(3)
    drawn = [model.sample_cycle(rng, 4) for _ in range(8_000)]
    mean = model.mean_cycle(4)
    for phase in ("draft", "verify", "extend", "rest"):
        values = [getattr(cycle, phase) for cycle in drawn]
        assert statistics.fmean(values) == pytest.approx(getattr(mean, phase), rel=0.002)
        assert statistics.stdev(values) > 0


def test_cycle_adds_up() -> None:
    cycle = Cycle(draft=1, verify=2, extend=3, plain=4, rest=5)
    assert (cycle.device, cycle.total) == (10, 15)
