"""Cycle timing: marks at the seams, on the host's clock and on the device's where there is one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from specscope_probe.clocks import DeviceClock, Event
from specscope_probe.parts import Part
from specscope_probe.phases import (
    CYCLE_IN,
    CYCLE_OUT,
    DRAFT_IN,
    EXTEND_IN,
    FORWARD_IN,
    FORWARD_OUT,
    GAP,
    PREFILL_EXTEND_IN,
    SPECULATIVE,
    VERIFY_IN,
    ImpossibleError,
    kind_of,
    timing_of,
)
from specscope_probe.tallies import Shape, TimeTally
from specscope_probe.wrapping import Seam

MAX_PENDING = 64
"""Cycles whose device events are not done yet; more are dropped and counted."""

DEVICE_TOLERANCE_MS = 0.01
"""Readings of events are rounded to about half a microsecond each."""

NS = 1e-9
MS = 1e-3

MARKS = {
    "draft": DRAFT_IN,
    "verify": VERIFY_IN,
    "forward": FORWARD_IN,
    "draft_extend": EXTEND_IN,
    "prefill_draft_extend": PREFILL_EXTEND_IN,
}
"""Seam → mark of entering it; leaving is the next one."""


@dataclass(slots=True)
class Cycle:
    """One cycle in the making, or waiting for the device."""

    requests: int
    marks: list[int] = field(default_factory=list)
    times: list[int] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    mode: str = ""
    """Name of the target's forward mode."""
    kind: str = ""
    num_draft_tokens: int = 0
    previous_out: Event | None = None
    """The last event of the cycle before, when the engine went straight on."""
    is_followed: bool = False
    """The next cycle reads this one's last event too, and gives it back."""


class CycleTimer:
    """Listens at the seams and adds up; ``is_split``: by batch size and D."""

    def __init__(
        self,
        part: Part,
        scheduler: Any,
        worker: Any,
        clock: DeviceClock | None,
        *,
        every: int = 1,
        is_split: bool = True,
    ) -> None:
        self.part = part
        best = "host" if clock is None else "device"
        self.tally = TimeTally(split_clock=best if is_split else None)
        self.every = every
        self.cycles = 0
        """Cycles seen, timed or not."""
        self.wall_ns = 0
        """Wall time of all cycles seen and of the gaps between them."""
        self.dropped = 0
        self._scheduler = scheduler
        self._worker = worker
        self._clock = clock
        self._open: Cycle | None = None
        self._waiting: deque[Cycle] = deque()
        self._last_out_ns = 0
        self._last_timed: Cycle | None = None
        self._in_ns = 0

    def listen(self, seams: dict[str, Seam]) -> None:
        """Listen at every seam that there is."""
        seams["cycle"].listen(self.part, before=self._enter, after=self._leave, failed=self._forget)
        for name, mark in MARKS.items():
            if name in seams and name != "forward":
                seams[name].listen(self.part, before=self._marker(mark), after=self._marker(mark + 1))
        if "forward" in seams:
            seams["forward"].listen(self.part, before=self._enter_forward, after=self._marker(FORWARD_OUT))

    def _enter(self, now: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.cycles += 1
        self._in_ns = now
        clock = self._clock
        if self.cycles % self.every or (clock is not None and clock.is_capturing()):
            self._open = None
            return
        batch = args[0] if args else next(iter(kwargs.values()))
        cycle = self._open = Cycle(_requests(batch))
        cycle.marks.append(CYCLE_IN)
        cycle.times.append(now)
        if clock is not None:
            cycle.events.append(clock.mark())

    def _marker(self, mark: int) -> Callable[..., None]:
        """Return a listener, for before or after, that leaves ``mark``."""

        def leave_mark(now: int, *_: Any) -> None:
            cycle = self._open
            if cycle is not None:
                cycle.marks.append(mark)
                cycle.times.append(now)
                if self._clock is not None:
                    cycle.events.append(self._clock.mark())

        return leave_mark

    def _enter_forward(self, now: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        cycle = self._open
        if cycle is None:
            return
        forward_batch = args[0] if args else kwargs["forward_batch"]
        cycle.mode = forward_batch.forward_mode.name
        cycle.marks.append(FORWARD_IN)
        cycle.times.append(now)
        if self._clock is not None:
            cycle.events.append(self._clock.mark())

    def _leave(self, now: int, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        went_on = self._last_out_ns and getattr(self._scheduler, "last_batch", None) is not None
        gap_ns = self._in_ns - self._last_out_ns if went_on else 0
        self.wall_ns += now - self._in_ns + gap_ns
        self._last_out_ns = now
        cycle, self._open = self._open, None
        if cycle is not None:
            cycle.marks.append(CYCLE_OUT)
            cycle.times.append(now)
            if self._clock is not None:
                cycle.events.append(self._clock.mark())
            self._close(cycle, result, gap_ns)
        if self._waiting:
            self._read_device()

    def _close(self, cycle: Cycle, result: Any, gap_ns: int) -> None:
        kind = kind_of(cycle.mode)
        previous, self._last_timed = self._last_timed, cycle
        if kind is None or cycle.requests == 0:  # an idle rank takes part without requests
            self._last_timed = None
            self._release(cycle)
            return
        cycle.kind = kind
        cycle.num_draft_tokens = _num_draft_tokens(result, self._worker) if kind == SPECULATIVE else 0
        self._add(cycle, "host", cycle.times, NS, 0.0)
        if gap_ns:
            self._add_gap(cycle, "host", gap_ns * NS)
        if self._clock is None:
            return
        if gap_ns and self.every == 1 and previous is not None and previous.events:
            cycle.previous_out = previous.events[-1]
            previous.is_followed = True
        self._wait(cycle)

    def _wait(self, cycle: Cycle) -> None:
        self._waiting.append(cycle)
        if len(self._waiting) > MAX_PENDING:
            self.dropped += 1
            self._release(self._waiting.popleft())

    def _read_device(self) -> None:
        while self._waiting and self._waiting[0].events[-1].query():
            cycle = self._waiting.popleft()
            start = cycle.events[0]
            times = [0.0, *(start.elapsed_time(event) for event in cycle.events[1:])]
            self._add(cycle, "device", times, MS, DEVICE_TOLERANCE_MS)
            if cycle.previous_out is not None:
                self._add_gap(cycle, "device", cycle.previous_out.elapsed_time(start) * MS)
            self._release(cycle)

    def _add(self, cycle: Cycle, clock: str, times: Sequence[float], unit: float, tolerance: float) -> None:
        try:
            timing = timing_of(cycle.kind, cycle.marks, times, tolerance)
        except ImpossibleError:
            self.part.refused += 1
            return
        self.tally.add(self._shape(cycle, cycle.kind, clock), timing, unit)

    def _add_gap(self, cycle: Cycle, clock: str, seconds: float) -> None:
        if seconds < 0:
            self.part.refused += 1
            return
        self.tally.add(self._shape(cycle, GAP, clock), (seconds, [seconds]), 1.0)

    def _shape(self, cycle: Cycle, kind: str, clock: str) -> Shape:
        return self.tally.shape(kind, cycle.requests, cycle.num_draft_tokens, clock)

    def _release(self, cycle: Cycle) -> None:
        """Give events back, except the last one if the next cycle still reads it."""
        if self._clock is None:
            return
        if cycle.previous_out is not None:
            self._clock.give_back(cycle.previous_out)
            cycle.previous_out = None
        kept = 1 if cycle.is_followed or cycle is self._last_timed else 0
        for event in cycle.events[: len(cycle.events) - kept]:
            self._clock.give_back(event)
        if not kept:
            cycle.events.clear()

    def _forget(self) -> None:
        """The engine raised inside a cycle: its events may never complete, so they are not used again."""
        self._open = None
        self._last_timed = None


def _requests(batch: Any) -> int:
    requests = getattr(batch, "reqs", None)
    return len(requests) if requests is not None else int(batch.seq_lens.shape[0])


def _num_draft_tokens(result: Any, worker: Any) -> int:
    """Return D of this cycle: adaptive workers record it in the result and may have moved on since."""
    recorded = getattr(result, "speculative_num_draft_tokens", None)
    return int(recorded if recorded is not None else getattr(worker, "speculative_num_draft_tokens", 0) or 0)
