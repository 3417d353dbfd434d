"""The probe watches its own cost and gives way: first it times fewer cycles, then it stops.
When it has been far below its budget for a while, it times more cycles again.

What profiling of states makes the device compute is judged apart, against the same share of the same time:
above it in two windows in a row states are sampled half as often, and at last not at all.

On a busy host the scheduler's thread may lose its processor in the middle of the probe, and that is none of
the probe's cost. So a window above the budget is a suspicion, and processor time in the next one decides.
"""

from __future__ import annotations

import logging
from typing import Any, Protocol

from specscope_probe.parts import Part, State
from specscope_probe.timing import CycleTimer
from specscope_probe.wrapping import Meter, Seam

log = logging.getLogger("specscope_probe")

WINDOW_CYCLES = 256
BLATANT = 10
"""So many times the budget of wall time is too much, whatever the thread waits for."""
SPARSEST = 64
"""Timing every 64th cycle is the last step before none."""
CHEAP = 0.25
"""Below this part of the budget timing twice as many cycles stays below half of it."""
CHEAP_WINDOWS = 4
"""So many cheap windows in a row bring timing back one step."""


class DeviceWork(Protocol):
    """What computes on the device besides the engine."""

    part: Part

    def device_seconds(self) -> float | None:
        """Return what it has taken so far; None: not known, or there is no device."""

    def thin(self) -> bool:
        """Do half as much; False: it is at its least."""


class Budget:
    """Compares host time spent with the wall time of cycles, window by window."""

    def __init__(
        self, share: float, meter: Meter, timer: CycleTimer, parts: list[Part],
        work: DeviceWork | None = None,
    ) -> None:  # fmt: skip
        self.share = share
        self.spent: float | None = None
        """Share of the last window; None before the first."""
        self._meter, self._timer, self._parts = meter, timer, parts
        self._cycles = self._ns = self._wall_ns = self._cpu_ns = 0
        self._every = timer.every
        self._cheap_windows = 0
        self._work = work
        self._device_seconds = 0.0
        self._is_suspected = False
        """The device had too much to do in the last window."""
        self._own = Part("budget")
        self._own_cycles = self._own_wall_ns = self._in_ns = 0

    def listen(self, seams: dict[str, Seam]) -> None:
        """Count cycles when the timing, which does so otherwise, has failed; gaps are left out."""
        seams["cycle"].listen(self._own, before=self._enter, after=self._leave, failed=self._forget)

    def _enter(self, now: int, *_: Any) -> None:
        self._in_ns = 0 if self._timer.part.is_on else now

    def _leave(self, now: int, *_: Any) -> None:
        if self._in_ns:
            self._own_cycles += 1
            self._own_wall_ns += now - self._in_ns

    def _forget(self) -> None:
        self._in_ns = 0

    def check(self) -> None:
        """Look whether a window is full, and act on it. Called by the exporting thread."""
        cycles = self._timer.cycles + self._own_cycles
        if cycles - self._cycles < WINDOW_CYCLES or not any(part.is_on for part in self._parts):
            return
        all_ns = self._timer.wall_ns + self._own_wall_ns
        wall_ns = all_ns - self._wall_ns
        ns, cpu_ns = self._meter.ns - self._ns, self._meter.cpu_ns - self._cpu_ns
        self._cycles, self._wall_ns, self._ns = cycles, all_ns, self._meter.ns
        self._cpu_ns = self._meter.cpu_ns
        if wall_ns > 0:
            self.spent = ns / wall_ns
            self._judge(cpu_ns / wall_ns)
            self._come_back()
            self._judge_device(wall_ns / 1e9)

    def _judge(self, spent_of_processor: float) -> None:
        if self.spent is None or self.spent <= self.share:
            self._meter.is_checking = False
        elif not self._meter.is_checking:
            self._meter.is_checking = True
        elif spent_of_processor > self.share or self.spent > BLATANT * self.share:
            self._meter.is_checking = False
            self._give_way()

    def _judge_device(self, wall_seconds: float) -> None:
        seconds = self._work.device_seconds() if self._work is not None else None
        if self._work is None or seconds is None:
            return
        spent = (seconds - self._device_seconds) / wall_seconds
        self._device_seconds = seconds
        was_suspected, self._is_suspected = self._is_suspected, spent > self.share
        if not (was_suspected and self._is_suspected and self._work.part.is_on):
            return
        self._is_suspected = False
        cost = f"{100 * spent:.2f} % of the cycles' time on the device, {100 * self.share:g} % are allowed"
        if self._work.thin():
            log.warning("specscope: profiling of states took %s; it samples half as often now", cost)
        else:
            self._work.part.switch_off(State.OVER_BUDGET, cost)
            log.warning("specscope: profiling of states took %s; it is off", cost)

    def _come_back(self) -> None:
        is_cheap = self.spent is not None and self.spent < CHEAP * self.share
        self._cheap_windows = self._cheap_windows + 1 if is_cheap else 0
        if self._cheap_windows < CHEAP_WINDOWS or self._timer.every <= self._every:
            return
        self._cheap_windows = 0
        self._timer.every = max(self._timer.every // 2, self._every)
        log.info("specscope: the probe costs little; it times every %d. cycle now", self._timer.every)

    def _give_way(self) -> None:
        cost = f"{100 * (self.spent or 0):.2f} % of the cycles' time, {100 * self.share:g} % are allowed"
        if self._timer.part.is_on and self._timer.every < SPARSEST:
            self._timer.every = min(self._timer.every * 2, SPARSEST)
            log.warning("specscope: the probe took %s; it times every %d. cycle now", cost, self._timer.every)
            return
        for part in self._parts:
            if part.is_on:
                part.switch_off(State.OVER_BUDGET, cost)
        log.warning("specscope: the probe took %s; it measures nothing any more", cost)
