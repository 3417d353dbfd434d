"""A stand-in engine on a host clock that stands still unless told, and a device with one stream."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.probe.standin import Batch, ForwardMode, Request, Scheduler, engine

from specscope_probe.parts import Part
from specscope_probe.phases import PHASES
from specscope_probe.seams import find
from specscope_probe.tallies import Shape
from specscope_probe.timing import CycleTimer
from specscope_probe.wrapping import Meter, Seam, wrap_attribute

HOST_NS = {"draft": 100, "prepare": 20, "forward": 500, "sampling": 30, "draft_extend": 80, "cycle": 7}
DEVICE_FACTOR = 1000
"""Launching 1 ns of work keeps the device busy for 1 µs."""


@dataclass
class FakeEvent:
    """A device event, which the device reaches when its clock has come so far."""

    device: FakeDevice
    at_ns: int | None = None

    def record(self) -> None:
        """Enqueue."""
        self.at_ns = self.device.queued_ns

    def query(self) -> bool:
        """Ask whether the device came by."""
        assert self.at_ns is not None
        return self.device.done_ns >= self.at_ns

    def elapsed_time(self, end: FakeEvent) -> float:
        """Return milliseconds; an error while the device is not there yet, as CUDA's."""
        assert self.query()
        assert end.query()
        return ((end.at_ns or 0) - (self.at_ns or 0)) / 1e6


@dataclass
class FakeDevice:
    """A device with one stream: work is queued, and done later."""

    queued_ns: int = 0
    done_ns: int = 0
    made: int = 0
    free: list[FakeEvent] = field(default_factory=list)
    out: set[int] = field(default_factory=set)
    capturing: bool = False

    def mark(self) -> FakeEvent:
        """Record a pooled event."""
        event = self.free.pop() if self.free else self._new()
        self.out.add(id(event))
        event.record()
        return event

    def _new(self) -> FakeEvent:
        self.made += 1
        return FakeEvent(self)

    def give_back(self, event: FakeEvent) -> None:
        """Take an event back; none may come back twice."""
        self.out.remove(id(event))
        self.free.append(event)

    def is_capturing(self) -> bool:
        """Say whether a graph is captured."""
        return self.capturing


class Rig:
    """An engine, a host clock that stands still unless told, and a device."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, device: bool = True, **options: Any) -> None:
        self.now = 10**15
        self.device = FakeDevice()
        self.scheduler: Scheduler = engine(self.spend)
        monkeypatch.setattr("specscope_probe.wrapping.perf_counter_ns", lambda: self.now)
        self.part = Part("timing")
        clock = self.device if device else None
        self.timer = CycleTimer(self.part, self.scheduler, self.scheduler.draft_worker, clock, **options)
        found, _ = find(self.scheduler)
        seams = {name: Seam(name, Meter()) for name in found}
        self.timer.listen(seams)
        for name, seam in seams.items():
            wrap_attribute(found[name].owner, found[name].attribute, seam)

    def spend(self, what: str) -> None:
        """Pass time on the host and queue work on the device."""
        self.now += HOST_NS.get(what, 0)
        self.device.queued_ns += DEVICE_FACTOR * HOST_NS.get(what, 0)

    def run(self, cycles: int, requests: int = 1, mode: ForwardMode = ForwardMode.DECODE) -> None:
        """Run cycles with 40 ns of scheduling between them."""
        for _ in range(cycles):
            self.now += 40
            self.device.queued_ns += 40 * DEVICE_FACTOR
            self.scheduler.run(Batch([Request()] * requests, mode))

    def finish(self) -> None:
        """Let the device catch up."""
        self.device.done_ns = self.device.queued_ns

    def sums(self, kind: str, clock: str, batch: str = "1") -> dict[str, float]:
        """Return seconds by phase, and how many cycles they are of."""
        d = "0" if kind in ("prefill", "plain") else "4"
        if clock == "host" and kind != "prefill":  # the device's times alone are split
            batch = d = "all"
        sums = self.timer.tally.sums[Shape(kind, batch, d, clock)]
        return dict(zip(PHASES[kind], sums.phases, strict=True)) | {
            "cycles": sums.cycles,
            "all": sums.seconds,
        }
