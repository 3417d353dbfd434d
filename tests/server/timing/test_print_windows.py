"""T_c from an engine's log windows: exact from lines, and not put off by scrapes, prefills or pauses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from specscope_server.kit.timerange import Window
from specscope_server.timing.print_windows import Seen, Windows, windows_of
from specscope_server.timing.prints import Shown

INTERVAL, LENGTH, START, STEP = 40, 2.5, 1_000_000, 1_000


@dataclass
class Printed:
    """Prints of an engine that runs ``requests`` with cycles of ``cycle_ms``."""

    requests: int = 4
    now_ms: float = START
    time_ms: list[float] = field(default_factory=list)
    throughput: list[float] = field(default_factory=list)
    prefill_ms: list[int] = field(default_factory=list)
    idle: list[tuple[float, float]] = field(default_factory=list)

    def window(self, cycle_ms: float, pause_ms: float = 0.0, *, prefill: bool = False) -> None:
        """Run up to the next print."""
        if prefill:
            self.prefill_ms.append(round(self.now_ms + 1))
        spent_ms = INTERVAL * cycle_ms + pause_ms
        self.now_ms += spent_ms
        self.time_ms.append(self.now_ms)
        self.throughput.append(1_000 * INTERVAL * self.requests * LENGTH / spent_ms)

    def told(self, every_ms: float = 0.0, interval: int | None = INTERVAL) -> Shown:
        """Return its log, or with ``every_ms`` what scrapes see."""
        rates = np.array(self.throughput)
        times: NDArray[np.float64] = np.array(self.time_ms)
        if not self.prefill_ms:  # stamps are whole seconds
            times = np.floor(times / 1_000) * 1_000 + np.arange(len(rates))
        if every_ms:
            times = np.arange(self.time_ms[0], self.now_ms + every_ms, every_ms)
            rates = rates[np.searchsorted(self.time_ms, times, side="right") - 1]
        same = np.ones(len(rates))
        prefills = None if every_ms else np.array(self.prefill_ms, dtype=np.int64)
        return Shown(
            times.astype(np.int64),
            rates,
            self.requests * same,
            LENGTH * same,
            prefills,
            not every_ms,
            interval,
        )

    def seen(self) -> Seen:
        """Return what counters say in buckets."""
        size = int(self.now_ms - START) // STEP + 2
        idle, prefill = np.zeros(size, dtype=bool), np.zeros(size, dtype=bool)
        prefill[(np.array(self.prefill_ms, dtype=np.int64) - START) // STEP] = True
        for begin, end in self.idle:
            idle[int(begin - START) // STEP + 1 : int(end - START) // STEP] = True
        return Seen(Window(START, START + size * STEP, STEP), idle, prefill)


def found(printed: Printed, shown: Shown) -> Windows:
    """Return the windows; there must be some."""
    windows = windows_of(shown, printed.seen(), is_plain=False)
    assert windows is not None
    return windows


def cycle_ms(windows: Windows) -> float:
    """Return T_c."""
    return float(1_000 * windows.inside.sum() / windows.cycles.sum())


@given(st.lists(st.floats(5.0, 60.0), min_size=8, max_size=40))
def test_lines_tell_the_mean_over_cycles_exactly(lengths: Sequence[float]) -> None:
    printed = Printed()
    for length in lengths:
        printed.window(length)
    windows = found(printed, printed.told())
    assert cycle_ms(windows) == pytest.approx(np.mean(lengths[1:]))
    assert windows.cycles.sum() == INTERVAL * (len(lengths) - 1)
    assert windows.tokens.sum() == pytest.approx(INTERVAL * (len(lengths) - 1) * 4 * LENGTH)


def test_a_window_with_a_prefill_is_as_many_cycles_and_more_time() -> None:
    printed = Printed()
    for place in range(60):
        printed.window(30.0 + place / 1e4, 500.0 * (place % 3 == 0), prefill=place % 3 == 0)
    for shown in (printed.told(), printed.told(every_ms=500.0)):
        windows = found(printed, shown)
        assert windows.tells_cycles
        assert cycle_ms(windows) == pytest.approx(30.0, rel=1e-3)
    by_log = found(printed, printed.told())
    between = (by_log.seconds - by_log.inside).sum() / by_log.cycles.sum()
    assert 1_000 * between == pytest.approx(500 / 3 / INTERVAL, rel=0.05)


@pytest.mark.parametrize("every_ms", [400.0, 1_000.0, 5_000.0])
def test_scrapes_see_a_print_often_or_not_at_all(every_ms: float) -> None:
    """The engine becomes slower: a mean over scrapes would count the slow half more often."""
    printed = Printed()
    lengths: NDArray[np.float64] = np.linspace(15.0, 60.0, 200)
    for length in lengths:
        printed.window(float(length))
    windows = found(printed, printed.told(every_ms))
    assert cycle_ms(windows) == pytest.approx(lengths.mean(), rel=0.02)
    assert windows.cycles.sum() == pytest.approx(INTERVAL * 200, rel=0.06)


def test_a_window_that_spans_a_pause_is_left_out() -> None:
    printed = Printed()
    for place in range(30):
        begin = printed.now_ms
        printed.window(30.0, 60_000.0 * (place == 15), prefill=place == 15)
        if place == 15:
            printed.idle.append((begin, begin + 60_000.0))
            printed.prefill_ms[-1] = round(begin + 60_000)
    for shown in (printed.told(), printed.told(every_ms=1_000.0)):
        windows = found(printed, shown)
        assert cycle_ms(windows) == pytest.approx(30.0, rel=1e-6)
        assert windows.seconds.sum() < 40


def test_a_slow_window_without_a_prefill_is_no_pause() -> None:
    printed = Printed()
    for place in range(20):
        printed.window(300.0 if place == 10 else 30.0)
    assert cycle_ms(found(printed, printed.told())) == pytest.approx((18 * 30 + 300) / 19)


def test_where_every_window_has_a_prefill_it_is_from_print_to_print() -> None:
    printed = Printed()
    for place in range(40):
        printed.window(30.0, 200.0 + place % 2, prefill=True)
    windows = found(printed, printed.told(every_ms=500.0))
    assert not windows.tells_cycles
    assert cycle_ms(windows) == pytest.approx(35.0, rel=0.02)


def test_a_log_that_does_not_tell_its_interval() -> None:
    printed = Printed()
    for _ in range(100):
        printed.window(30.0)
    windows = found(printed, printed.told(interval=None))
    assert windows.cycles[0] == pytest.approx(INTERVAL, rel=0.02)
    assert cycle_ms(windows) == pytest.approx(30.0)


def test_one_print_says_nothing() -> None:
    printed = Printed()
    printed.window(30.0)
    assert windows_of(printed.told(), printed.seen(), is_plain=False) is None
