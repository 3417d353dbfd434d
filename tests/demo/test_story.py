"""The timeline: phases in order, launches with gaps, speed compresses time but never the traffic."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest

from specscope_server.demo.story import PHASES, RIGHT_LAYERS, WRONG_LAYERS, Load, Story

DEPTHS = [5, 5, 5, 5, 4, 3, 1, 0, 2]


def test_launches_follow_the_story() -> None:
    plans = [launch.plan for launch in Story().launches()]
    assert [plan.model.num_steps for plan in plans] == DEPTHS
    assert [plan.aux_layers for plan in plans] == [WRONG_LAYERS, *[RIGHT_LAYERS] * 8]
    assert [plan.model.network_tuned for plan in plans] == [False, False, *[True] * 7]
    assert plans[1].environment != plans[2].environment


def test_told_at_speed_30_it_takes_a_few_minutes() -> None:
    last_start_ms = Story(30).starts_ms()[-1]
    assert 3 * 60_000 < last_start_ms < 7 * 60_000


def test_engine_is_away_for_a_few_seconds_at_each_restart() -> None:
    launches = Story(30).launches()
    away = [later.up_ms - earlier.down_ms for earlier, later in pairwise(launches)]
    assert away == [6000.0] * (len(launches) - 1)  # longer than the default interval between two scrapes
    assert launches[0].up_ms == 0
    assert launches[-1].down_ms == math.inf


def test_a_fast_story_does_not_spend_its_phases_away() -> None:
    launches = Story(300).launches()
    for earlier, launch in pairwise(launches):
        assert 0 < launch.up_ms - earlier.down_ms <= 0.31 * (launch.down_ms - earlier.down_ms)


@pytest.mark.parametrize("speed", [1.0, 30.0, 300.0])
def test_speed_scales_every_phase(speed: float) -> None:
    starts = Story(speed).starts_ms()
    assert starts == pytest.approx([start / speed for start in Story(1.0).starts_ms()])
    names = [Story(speed).phase_at(start + 0.001)[0].name for start in starts]
    assert names == [phase.name for phase in PHASES]


def test_speed_leaves_the_traffic_alone() -> None:
    assert Story(1.0).rate_at(1.0) == Story(300.0).rate_at(1.0) > 0


def test_idle_phase_brings_nothing() -> None:
    story = Story(30)
    idle = next(index for index, phase in enumerate(PHASES) if phase.name == "idle")
    assert story.rate_at(story.starts_ms()[idle] + 1) == 0
    assert not story.benchmark_at(story.starts_ms()[idle] + 1)


def test_the_day_has_a_busy_noon_and_a_quiet_night() -> None:
    load = Load(rate=2.0, daily=True)
    hours = [load.rate_at(hour * 600) for hour in range(24)]
    assert max(hours) == 2.0
    assert hours.count(0.0) >= 3
    assert all(0 <= rate <= 2.0 for rate in hours)


def test_last_phase_never_ends() -> None:
    assert Story(30).phase_at(1e12)[0] is PHASES[-1]
