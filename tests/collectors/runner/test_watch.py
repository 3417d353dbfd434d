"""The limits of the rule for counters that fall although the server was not away."""

from __future__ import annotations

import pytest

from specscope_collectors.alternation import FLAPPING_SECONDS, HELD_SCRAPES, Doubt, Watch, fell_together
from specscope_collectors.increments import SeriesKey


def counters(*values: float) -> dict[SeriesKey, float]:
    return {(f"c{index}", ()): value for index, value in enumerate(values)}


@pytest.mark.parametrize(
    ("after", "fell"),
    [((1, 9, 9, 9), True), ((9, 9, 9, 9), False), ((1, 9, 9, 9, 9), False), ((0, 0, 0, 0), True)],
)
def test_a_quarter_of_the_counters_must_fall_together(after: tuple[float, ...], fell: bool) -> None:
    assert fell_together(counters(*([5] * len(after))), counters(*after)) is fell


def test_counters_that_were_zero_or_are_new_say_nothing() -> None:
    assert fell_together(counters(0, 0, 5), counters(0, 0, 1, 7)) is True
    assert fell_together(counters(0), counters(0, 7)) is False


@pytest.mark.parametrize(
    ("seconds", "second"), [(FLAPPING_SECONDS - 1, Doubt.SEVERAL), (FLAPPING_SECONDS, Doubt.HELD)]
)
def test_a_second_fall_is_a_restart_again_after_ten_minutes(seconds: float, second: Doubt) -> None:
    now = 0.0
    watch = Watch(lambda: now)
    watch.judge(counters(9), gap=True)
    assert watch.judge(counters(1), gap=False) is Doubt.HELD
    judged = [watch.judge(counters(1), gap=False) for _ in range(HELD_SCRAPES)]
    assert judged == [*[Doubt.HELD] * (HELD_SCRAPES - 1), Doubt.RELEASED]
    now = seconds
    assert watch.judge(counters(0.5), gap=False) is second


def test_a_gap_ends_the_wait_since_it_explains_the_fall() -> None:
    watch = Watch(lambda: 0.0)
    watch.judge(counters(9), gap=True)
    assert watch.judge(counters(1), gap=False) is Doubt.HELD
    assert watch.judge(counters(2), gap=True) is Doubt.RELEASED
    assert watch.judge(counters(3), gap=False) is Doubt.NONE
