"""What is common to all ways of sampling: buffers on their way, windows, and limits. Scheduler's thread only.

All calls to the device are made by this thread: another thread's could break a graph that is being captured.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specscope_probe.states.buffers import Buffer, Sums, is_done
from specscope_probe.states.capture import CHANGED_RULE, Capture
from specscope_probe.states.counts import StateCounts
from specscope_probe.states.device import Open, Reducer
from specscope_probe.states.finishing import Finisher, Taken
from specscope_probe.states.options import StateOptions
from specscope_probe.states.samples import Origin

NS_PER_SECOND = 1_000_000_000


class Pipeline:
    """From sampled rows to the finishing thread."""

    def __init__(
        self, reducer: Reducer, finisher: Finisher, options: StateOptions, counts: StateCounts,
        is_capturing: Callable[[], bool], look: Callable[[], Capture | None] = lambda: None,
    ) -> None:  # fmt: skip
        """``look`` says what the engine captures now."""
        self.reducer = reducer
        self._finisher = finisher
        self._options = options
        self._counts = counts
        self._is_capturing = is_capturing
        self._look = look
        self._captured: Capture | None = None
        """By the first rows of the window."""
        self._waiting: deque[Taken | Sums] = deque()
        self._ids_in_force: tuple[int, ...] = ()
        self._has_rows = False
        self._window_ends_ns = 0

    def begin(
        self, chosen: NDArray[np.int64], phases: tuple[int, ...], ids: Any, positions: Any,
        phase_of: Any = None,
    ) -> Open | None:  # fmt: skip
        """Start to reduce rows; None: too many are on their way, or there are none."""
        reason = self._why_not(chosen, [each for each in (ids, positions, phase_of) if each is not None])
        if reason is not None:
            self._counts.dropped[reason] += 1
            return None
        learnt = self._finisher.learnt
        if learnt.token_ids and not self._ids_in_force:
            self._ids_in_force = learnt.token_ids
            self.reducer.set_token_ids(learnt.token_ids)
        return self.reducer.begin(chosen, learnt.limits, phases, ids, positions, phase_of)

    def _why_not(self, chosen: NDArray[np.int64], tensors: list[Any]) -> str | None:
        """A row that is not there would stop the device: nothing is left to chance."""
        if not len(chosen):
            return "no_rows"
        last = int(chosen.max())
        if any(tensor.dim() != 1 or tensor.shape[0] <= last for tensor in tensors):
            return "not_all_rows"
        return None if self.reducer.can_begin() else "no_buffer"

    def finish(self, opened: Open, requests: NDArray[np.int64], check: int | None) -> None:
        """Send off what was reduced."""
        limits = np.array(opened.buffer.thresholds.numpy())
        origin = Origin(int(time.time() * 1000), requests, limits, self._ids_in_force, check)
        self._waiting.append(Taken(self.reducer.finish(opened), origin))
        if not self._has_rows:
            self._captured = self._look()
        self._has_rows = True

    def poll(self, now_ns: int) -> None:
        """Hand on what the device is done with, and end the window when its time is over."""
        is_over = now_ns >= self._window_ends_ns and (self._has_rows or not self._window_ends_ns)
        if not (self._waiting or is_over) or self._is_capturing():
            return
        while self._waiting and is_done(_event(self._waiting[0])):
            entry = self._waiting.popleft()
            if isinstance(entry, Taken):
                self._add_device_time(entry.buffer)
            self._finisher.entries.put(entry)
        if not self._window_ends_ns:
            self._window_ends_ns = now_ns + int(self._options.first_window_seconds * NS_PER_SECOND)
        elif is_over:
            self._has_rows = False
            self._window_ends_ns = now_ns + int(self._options.window_seconds * NS_PER_SECOND)
            with self.reducer.torch.inference_mode():
                sums = self.reducer.take_sums()
            sums.capture = self._capture_of_window()
            self._waiting.append(sums)

    def _capture_of_window(self) -> Capture | None:
        """Return what the window's rows are; of rows of two kinds it is not known which is which."""
        now = self._look()
        return (
            now if now is None or now == self._captured else replace(now, boundaries=None, rule=CHANGED_RULE)
        )

    def _add_device_time(self, buffer: Buffer) -> None:
        if buffer.began is not None and buffer.done is not None:
            seconds = float(buffer.began.elapsed_time(buffer.done)) / 1_000
            self._counts.device_seconds = (self._counts.device_seconds or 0.0) + seconds


def _event(entry: Taken | Sums) -> Any:
    return entry.done if isinstance(entry, Sums) else entry.buffer.done
