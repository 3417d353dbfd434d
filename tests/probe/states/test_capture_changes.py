"""Which layers are captured is read with the first rows of a window and at its end."""

from __future__ import annotations

import contextlib
import queue
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from specscope_probe.states.buffers import Sums
from specscope_probe.states.capture import CHANGED_RULE, RULE, Capture
from specscope_probe.states.counts import StateCounts
from specscope_probe.states.options import StateOptions
from specscope_probe.states.pipeline import NS_PER_SECOND, Pipeline

RIGHT = Capture((1, 2), (1, 2), RULE, 8, 16)
DEEPER = Capture((2, 3), (2, 3), RULE, 8, 16)
OPENED: Any = SimpleNamespace(buffer=SimpleNamespace(thresholds=SimpleNamespace(numpy=lambda: np.zeros(2))))


class Engine:
    """What captures now, and the pipeline that looks."""

    def __init__(self) -> None:
        self.capture = RIGHT
        buffer = SimpleNamespace(began=None, done=None)
        reducer: Any = SimpleNamespace(
            finish=lambda opened: buffer,
            take_sums=lambda: Sums(None, None),
            torch=SimpleNamespace(inference_mode=contextlib.nullcontext),
        )
        self.finisher: Any = SimpleNamespace(entries=queue.SimpleQueue())
        options = StateOptions(first_window_seconds=1, window_seconds=1)
        self.pipeline = Pipeline(
            reducer, self.finisher, options, StateCounts(), lambda: False, lambda: self.capture
        )
        self._second = 1
        self.pipeline.poll(self._second * NS_PER_SECOND)

    def window(self, *captures: Capture) -> Capture | None:
        """Sample a forward under each capture; return what is told of the window that they end in."""
        for capture in captures:
            self.capture = capture
            self.pipeline.finish(OPENED, np.zeros(1, np.int64), None)
        self._second += 2
        for _ in range(2):  # sums are handed on when the device is done with them
            self.pipeline.poll(self._second * NS_PER_SECOND)
        entries = [self.finisher.entries.get() for _ in range(self.finisher.entries.qsize())]
        [told] = [entry.capture for entry in entries if isinstance(entry, Sums)]
        return told


@pytest.mark.parametrize("captures", [(RIGHT,), (DEEPER,), (DEEPER, DEEPER)])
def test_a_window_of_one_capture_is_of_that(captures: tuple[Capture, ...]) -> None:
    engine = Engine()
    engine.window(RIGHT)
    assert engine.window(*captures) == captures[0]


def test_of_rows_of_two_captures_it_is_not_known_which_is_which() -> None:
    engine = Engine()
    told = engine.window(RIGHT, DEEPER)
    assert told is not None
    assert (told.layers, told.boundaries, told.rule) == (DEEPER.layers, None, CHANGED_RULE)
    assert engine.window(DEEPER) == DEEPER
