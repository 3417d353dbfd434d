"""The probe watches its own cost and gives way: first it times fewer cycles, then it stops."""

from __future__ import annotations

import logging

from specscope_probe.parts import Part, State
from specscope_probe.timing import CycleTimer
from specscope_probe.wrapping import Meter

log = logging.getLogger("specscope_probe")

WINDOW_CYCLES = 256
SPARSEST = 64
"""Timing every 64th cycle is the last step before none."""


class Budget:
    """Compares host time spent with the wall time of cycles, window by window."""

    def __init__(self, share: float, meter: Meter, timer: CycleTimer, parts: list[Part]) -> None:
        self.share = share
        self.spent: float | None = None
        """Share of the last window; None before the first."""
        self._meter, self._timer, self._parts = meter, timer, parts
        self._cycles = self._ns = self._wall_ns = 0

    def check(self) -> None:
        """Look whether a window is full, and act on it. Called by the exporting thread."""
        cycles = self._timer.cycles - self._cycles
        if cycles < WINDOW_CYCLES:
            return
        wall_ns = self._timer.wall_ns - self._wall_ns
        ns = self._meter.ns - self._ns
        self._cycles, self._wall_ns, self._ns = self._timer.cycles, self._timer.wall_ns, self._meter.ns
        if wall_ns > 0:
            self.spent = ns / wall_ns
            if self.spent > self.share:
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
