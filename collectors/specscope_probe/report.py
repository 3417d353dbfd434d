"""Which metrics the sums become. One function per family group; names and labels are the contract."""

from __future__ import annotations

from specscope_probe.accepts import LOOKUP, AcceptCounter, AcceptCounts, at_least
from specscope_probe.exporting import Metrics
from specscope_probe.parts import Part, State
from specscope_probe.phases import GAP, PHASES, PREFILL
from specscope_probe.tallies import Shape, Sums
from specscope_probe.timing import CycleTimer

PHASE_SECONDS = "specscope_phase_seconds"
CYCLE_SECONDS = "specscope_cycle_seconds"
CYCLES_TIMED = "specscope_cycles_timed"
WARM_UP_CYCLES = "specscope_warm_up_cycles"
WARM_UP_SECONDS = "specscope_warm_up_seconds"
PART = "specscope_probe_part"


def report_decode_times(metrics: Metrics, timer: CycleTimer, overlap: str, clock: str) -> None:
    """Export seconds by phase of decode cycles and the gaps before them, on the best clock there is."""
    for shape, sums in timer.tally.sums.copy().items():
        if shape.clock == clock and shape.kind != PREFILL:
            _report_shape(metrics, shape, sums, overlap)


def report_all_times(metrics: Metrics, timer: CycleTimer, overlap: str) -> None:
    """Export seconds by phase of everything on both clocks, and what the first cycles took."""
    warm_up: dict[tuple[str, str], list[float]] = {}
    for shape, sums in timer.tally.sums.copy().items():
        _report_shape(metrics, shape, sums, overlap)
        held_back = warm_up.setdefault((shape.kind, shape.clock), [0.0, 0.0])
        held_back[0] += sums.warm_up_cycles
        held_back[1] += sums.warm_up_seconds
    for (kind, clock), (cycles, seconds) in warm_up.items():
        labels = {"kind": kind, "clock": clock}
        metrics.counter(WARM_UP_CYCLES, "First cycles of each shape, kept out of the times", labels, cycles)
        metrics.counter(WARM_UP_SECONDS, "What these first cycles took", labels, seconds)


def _report_shape(metrics: Metrics, shape: Shape, sums: Sums, overlap: str) -> None:
    labels = {
        "batch": shape.batch,
        "num_draft_tokens": shape.num_draft_tokens,
        "overlap": overlap,
        "clock": shape.clock,
    }
    phases = tuple(sums.phases)  # read first and written last: whoever scrapes in between sees no excess
    kind = {"kind": shape.kind, **labels}
    metrics.counter(CYCLES_TIMED, "Cycles whose times were added", kind, sums.cycles)
    if shape.kind != GAP:  # a gap is its own only phase
        metrics.counter(CYCLE_SECONDS, "Seconds of timed cycles: their phases' sum", kind, sums.seconds)
    for phase, seconds in zip(PHASES[shape.kind], phases, strict=True):
        metrics.counter(
            PHASE_SECONDS, "Seconds of timed cycles by phase", {"phase": phase, **labels}, seconds
        )


def report_accepts(metrics: Metrics, counter: AcceptCounter) -> None:
    """Export both views of accepted drafts."""
    _report_view(metrics, "requests", counter.request_view, counter.drafts)
    _report_view(metrics, "worker", counter.worker_view, counter.drafts)


def _report_view(metrics: Metrics, view: str, counts: AcceptCounts, drafts: str) -> None:
    """Accepted drafts are read first and written last: at no moment are there more than were proposed."""
    by_accepted = tuple(counts.by_accepted)
    proposed = at_least(counts.by_depth) if drafts != LOOKUP else []
    metrics.counter("specscope_cycles", "Verify steps, per request", {"view": view}, sum(by_accepted))
    for position, value in enumerate(proposed, start=1):
        labels = {"position": str(position), "view": view}
        metrics.counter("specscope_drafts_proposed", "Proposed drafts by position", labels, value)
    accepted = at_least(by_accepted)
    accepted += [0] * (len(proposed) - len(accepted))  # nothing accepted at a position is 0, not missing
    for position, value in enumerate(accepted, start=1):
        labels = {"position": str(position), "view": view}
        metrics.counter("specscope_drafts_accepted", "Accepted drafts by position", labels, value)
    for drafts_accepted, cycles in enumerate(by_accepted):
        if cycles:
            labels = {"accepted": str(drafts_accepted), "view": view}
            metrics.counter("specscope_cycles_by_accepted", "Verify steps by accepted drafts", labels, cycles)


def report_part(metrics: Metrics, part: Part) -> None:
    """Export what a part is doing; exactly one of its states is 1."""
    for state in State:
        labels = {"part": part.name, "state": str(state)}
        if state is part.state or metrics.knows(PART, labels):
            metrics.gauge(PART, "1: the part is in this state", labels, float(state is part.state))


def report_details(metrics: Metrics, parts: list[Part], timer: CycleTimer) -> None:
    """Export what was seen, refused, dropped and gone wrong."""
    for part in parts:
        labels = {"part": part.name}
        metrics.counter("specscope_probe_errors", "Exceptions inside the probe", labels, part.errors)
        metrics.counter("specscope_probe_refused", "Impossible values, not taken", labels, part.refused)
    metrics.counter("specscope_cycles_seen", "Cycles that the probe saw, timed or not", {}, timer.cycles)
    metrics.counter("specscope_cycles_dropped", "Timed cycles whose events came too late", {}, timer.dropped)
    wall = timer.wall_ns / 1e9
    metrics.counter("specscope_probe_wall_seconds", "Wall time of all cycles and the gaps between", {}, wall)
    metrics.gauge("specscope_probe_time_every", "Every how manieth cycle is timed", {}, timer.every)


def report_cost(metrics: Metrics, where: str, seconds: float) -> None:
    """Export host time that the probe itself took: on the scheduler's thread, or exporting on its own."""
    metrics.counter("specscope_probe_host_seconds", "Host time of the probe", {"where": where}, seconds)
