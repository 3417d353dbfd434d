"""One probe of one scheduler: its seams, its parts, and the thread that hands out what they counted."""

from __future__ import annotations

import logging
import os
import threading
from time import sleep, thread_time_ns
from typing import Any, Protocol

from specscope_probe import report
from specscope_probe.accepts import AcceptCounter, why_uncounted
from specscope_probe.budget import Budget
from specscope_probe.clocks import device_clock
from specscope_probe.exporting import FOLDER, Metrics
from specscope_probe.info import info_labels, simulated_accept_length
from specscope_probe.options import Options
from specscope_probe.parts import Part, State
from specscope_probe.ranges import Ranges
from specscope_probe.ranks import rank_of
from specscope_probe.seams import CYCLE, DRAFT_EXTEND, RESULTS, find, owners
from specscope_probe.states import state_profiling
from specscope_probe.states.report import report_check, report_push, report_states
from specscope_probe.timing import CycleTimer
from specscope_probe.wrapping import Meter, Seam, Wrapped, remove_all, wrap_attribute

log = logging.getLogger("specscope_probe")


class Measure(Protocol):
    """What listens at the seams. At each seam the one that stands first in a probe's list is told first."""

    @property
    def part(self) -> Part:
        """What of the probe this is; an exception of a listener switches it off."""
        ...

    def listen(self, seams: dict[str, Seam]) -> None:
        """Add listeners to the seams that this engine has; called once, if the part is on."""
        ...


class Probe:
    """Made once per scheduler, when its event loop begins: all graphs are captured by then."""

    def __init__(self, scheduler: Any, options: Options, registry: Any = None) -> None:
        self.options = options
        self.meter = Meter()
        self.rank = rank_of(scheduler)
        self.found, self.missing = find(scheduler)
        self.ranges = Ranges()
        self.seams = {name: Seam(name, self.meter, ranges=self.ranges) for name in self.found}
        self.timing = Part("timing")
        self.accepts = Part("accepts")
        self.output = Part("output")
        self.parts = [self.timing, self.accepts, self.output, self.ranges.part]
        worker = owners(scheduler)["worker"]
        clock = device_clock(str(getattr(owners(scheduler)["runner"], "device", "")))
        split, every = self.rank.is_speaker, options.time_every
        self.timer = CycleTimer(self.timing, scheduler, worker, clock, every=every, is_split=split)
        self.counter = AcceptCounter(self.accepts, worker)
        self.measures: list[Measure] = [self.timer, self.counter]
        self.states = state_profiling(scheduler, self.rank)
        if self.states is not None:
            self.measures.append(self.states)
            self.parts += self.states.parts
        measuring = [measure.part for measure in self.measures]
        self.budget = Budget(options.budget, self.meter, self.timer, measuring, self.states)
        self.info = info_labels(scheduler, worker, "host" if clock is None else "device")
        self._registry = registry
        self._metrics: Metrics | None = None
        self._wrapped: list[Wrapped] = []
        self._exporting_ns = 0
        self._reported: tuple[object, ...] | None = None
        self._set_states(scheduler)

    def attach(self) -> None:
        """Put the wrappers in place."""
        if "cycle" not in self.seams:
            log.warning("specscope: nothing is measured: %s", self.missing["cycle"])
            return
        for measure in self.measures:
            if measure.part.is_on:
                measure.listen(self.seams)
        self.budget.listen(self.seams)
        for name, seam in self.seams.items():
            self._wrap(name, seam)
        os.register_at_fork(after_in_child=self._leave_child_alone)
        log.info("specscope: measuring %s", ", ".join(self.seams))

    def _wrap(self, name: str, seam: Seam) -> None:
        """Put one wrapper in place; an object that takes none costs this seam only."""
        found = self.found[name]
        try:
            self._wrapped.append(wrap_attribute(found.owner, found.attribute, seam))
        except (AttributeError, TypeError) as error:
            if name == CYCLE.name:  # without it nothing can be measured
                raise
            self.missing[name] = f"{found.attribute} cannot be wrapped ({type(error).__name__})"
            if name == RESULTS.name:
                self.accepts.switch_off(State.MISSING, self.missing[name])
            log.warning("specscope: %s is not measured: %s", name, self.missing[name])

    def start(self) -> threading.Thread:
        """Begin to export; return the thread that does."""
        if FOLDER not in os.environ:
            log.warning("specscope: without --enable-metrics nothing that is counted appears on /metrics")
        thread = threading.Thread(target=self._work_beside, name="specscope-probe", daemon=True)
        thread.start()
        return thread

    def remove(self, reason: str) -> None:
        """Take all wrappers away; the engine goes on as if nothing had been there."""
        for part in self.parts:
            if part is not self.output and part.is_on:
                part.switch_off(State.REMOVED, reason)
        if self.states is not None:
            self.states.remove()
        remove_all(self._wrapped)
        self._wrapped.clear()
        log.warning("specscope: the probe is removed: %s", reason)

    def tend(self) -> None:
        """Act on the stop file and on the budget; works on when the output has failed."""
        if self._wrapped and os.path.exists(self.options.stop_file):  # noqa: PTH110 (which never raises)
            self.remove(f"{self.options.stop_file} is there")
        self.budget.check()

    def export(self) -> None:
        """Hand everything to the engine's metrics once; an idle engine costs nothing."""
        began = thread_time_ns()
        now = self._activity()
        if now != self._reported:
            if self._metrics is None:
                self._metrics = Metrics(self.rank.labels, self._registry)
            self._report(self._metrics)
            self._reported = now if self._metrics.had_room else None
        self._exporting_ns += thread_time_ns() - began

    def _activity(self) -> tuple[object, ...]:
        """Return what differs whenever there is something new to report."""
        states = () if self.states is None else self.states.activity()
        parts = ((part.state, part.errors) for part in self.parts)
        return (self.meter.ns, self.timer.every, *parts, *states)

    def _report(self, metrics: Metrics) -> None:
        report.report_decode_times(metrics, self.timer, self.info["overlap"], self.info["clock"])
        report.report_part(metrics, self.timing)
        report.report_cost(metrics, "cycle", self.meter.ns / 1e9)
        if self.states is not None:
            for part in self.states.parts:
                report.report_part(metrics, part)
            report_check(metrics, self.states.counts)
        if not self.rank.is_speaker:  # eight ranks must not make eight times the metrics
            return
        metrics.gauge("specscope_probe_info", "What probe, in which engine", self.info, 1.0)
        report.report_all_times(metrics, self.timer, self.info["overlap"])
        if self.accepts.is_on or self.accepts.state in (State.REMOVED, State.OVER_BUDGET, State.FAILED):
            report.report_accepts(metrics, self.counter)
        if self.states is not None:
            report_states(metrics, self.states.counts)
            report_push(metrics, self.states.counts)
        for part in (self.accepts, self.output, self.ranges.part):
            report.report_part(metrics, part)
        report.report_details(metrics, self.parts, self.timer)
        report.report_cost(metrics, "export", self._exporting_ns / 1e9)

    def _work_beside(self) -> None:
        """What the thread does until the probe is removed or the process ends."""
        while self._wrapped:
            sleep(self.options.export_seconds)
            for work in (self.tend, self.export):
                if work == self.export and not self.output.is_on:
                    continue
                try:
                    work()
                except Exception as error:
                    self.output.fail(error)

    def _set_states(self, scheduler: Any) -> None:
        if "cycle" not in self.found:
            for measure in self.measures:
                measure.part.switch_off(State.MISSING, self.missing["cycle"])
        elif getattr(scheduler, "draft_worker", None) is None:
            self.accepts.switch_off(State.MISSING, "this engine does not speculate here")
        elif not self.rank.is_speaker:
            self.accepts.switch_off(State.NOT_HERE, "the first rank of the group reports them")
        elif (simulated := simulated_accept_length()) is not None:
            self.accepts.switch_off(State.SIMULATED, f"SGLANG_SIMULATE_ACC_LEN={simulated} makes them up")
        elif (reason := self._why_uncounted(scheduler)) is not None:
            self.accepts.switch_off(State.MISSING, reason)

    def _why_uncounted(self, scheduler: Any) -> str | None:
        results, extend = self.found.get(RESULTS.name), self.found.get(DRAFT_EXTEND.name)
        is_v1 = extend is not None and extend.attribute == DRAFT_EXTEND.attributes[-1]
        reason = why_uncounted(owners(scheduler)["worker"], None if results is None else results.attribute)
        if reason is None and results is None and not is_v1:  # V1 workers return their counts
            return self.missing[RESULTS.name]
        return reason

    def _leave_child_alone(self) -> None:
        """A forked child has no exporting thread: it must not count either."""
        for part in self.parts:
            part.is_on = False
