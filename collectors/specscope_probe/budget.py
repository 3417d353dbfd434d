"""The probe watches its own cost and gives way: first it times fewer cycles, then it stops.

On a busy host the scheduler's thread may lose its processor in the middle of the probe, and that is none of
the probe's cost. So a window above the budget is a suspicion, and processor time in the next one decides.
"""

from __future__ import annotations

import logging

from specscope_probe.parts import Part, State
from specscope_probe.timing import CycleTimer
from specscope_probe.wrapping import Meter

log = logging.getLogger("specscope_probe")

WINDOW_CYCLES = 256
BLATANT = 10
"""So many times the budget of wall time is too much, whatever the thread waits for."""
SPARSEST = 64
"""Timing every 64th cycle is the last step before none."""


class Budget:
    """Compares host time spent with the wall time of cycles, window by window."""

    def __init__(self, share: float, meter: Meter, timer: CycleTimer, parts: list[Part]) -> None:
        self.share = share
        self.spent: float | None = None
        """Share of the last window; None before the first."""
        self._meter, self._timer, self._parts = meter, timer, parts
        self._cycles = self._ns = self._wall_ns = self._cpu_ns = 0

    def check(self) -> None:
        """Look whether a window is full, and act on it. Called by the exporting thread."""
        cycles = self._timer.cycles - self._cycles
        if cycles < WINDOW_CYCLES:
            return
        wall_ns = self._timer.wall_ns - self._wall_ns
        ns, cpu_ns = self._meter.ns - self._ns, self._meter.cpu_ns - self._cpu_ns
        self._cycles, self._wall_ns, self._ns = self._timer.cycles, self._timer.wall_ns, self._meter.ns
        self._cpu_ns = self._meter.cpu_ns
        if wall_ns > 0:
            self.spent = ns / wall_ns
            self._judge(cpu_ns / wall_ns)

    def _judge(self, spent_of_processor: float) -> None:
        if self.spent is None or self.spent <= self.share:
            self._meter.is_checking = False
        elif not self._meter.is_checking:
            self._meter.is_checking = True
        elif spent_of_processor > self.share or self.spent > BLATANT * self.share:
            self._meter.is_checking = False
            self._give_way()

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
