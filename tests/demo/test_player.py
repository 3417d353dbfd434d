"""Equal seeds play equally, however often they are asked; each launch is a new process."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.demo.playing import STARTED_MS, player, running


def body_after(stops_ms: Sequence[int], seed: int = 7) -> str:
    subject = player(seed=seed)
    for elapsed_ms in stops_ms:
        subject.advance(STARTED_MS + elapsed_ms)
    return subject.metrics(running(subject))


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(0, 90_000), max_size=12))
def test_the_moment_decides_not_the_number_of_scrapes(stops_ms: list[int]) -> None:
    assert body_after([*sorted(stops_ms), 90_000]) == body_after([90_000])


def test_seeds_differ() -> None:
    assert body_after([60_000], seed=1) != body_after([60_000], seed=2)


def test_a_clock_that_goes_back_changes_nothing() -> None:
    assert body_after([60_000, 10_000]) == body_after([60_000])


def test_the_engine_is_away_during_a_restart_and_starts_from_nothing() -> None:
    subject = player()
    first = subject.story.launches()[0]
    subject.advance(STARTED_MS + int(first.down_ms) - 1)
    assert running(subject).launch.index == 0
    subject.advance(STARTED_MS + int(first.down_ms) + 1)
    assert subject.current is None
    subject.advance(STARTED_MS + int(subject.story.launches()[1].up_ms))
    assert running(subject).launch.index == 1
    assert running(subject).telemetry.decode_steps == 0


def test_each_launch_is_a_new_process() -> None:
    subject = player()
    launches = subject.story.launches()
    assert len({subject.process_id(launch) for launch in launches}) == len(launches)
    assert len({subject.random_seed(launch) for launch in launches}) == len(launches)
    assert len({subject.startup(launch)["scheduler_e2e"] for launch in launches}) == len(launches)


def test_a_second_run_is_not_taken_for_the_first() -> None:
    first, second = player(), player()
    second.started_ms += 1
    launch = first.story.launches()[0]
    assert first.random_seed(launch) != second.random_seed(launch)
