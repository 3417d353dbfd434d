"""Which metrics the counts of state profiles become."""

from __future__ import annotations

from specscope_probe.exporting import Metrics
from specscope_probe.states.counts import DROPS, INVARIANTS, OUTCOMES, PUSHES, StateCounts

MOST_SLOTS = 8
"""Slots with a gauge of their own."""


def report_states(metrics: Metrics, counts: StateCounts) -> None:
    """Export what was sampled, what became of it, and what cannot be in healthy states."""
    for mode, samples in list(counts.samples.items()):
        meaning = "Forwards of which states were sampled"
        metrics.counter("specscope_states_samples", meaning, {"mode": mode}, samples)
    for phase, rows in list(counts.rows.items()):
        metrics.counter("specscope_states_rows", "Sampled rows in profiles", {"phase": phase}, rows)
    for reason in DROPS:
        dropped = counts.dropped[reason]
        metrics.counter("specscope_states_dropped", "Samples in no profile", {"reason": reason}, dropped)
    for outcome in OUTCOMES:
        windows = counts.files[outcome]
        metrics.counter("specscope_states_windows", "Windows of profiles", {"outcome": outcome}, windows)
    for kind in INVARIANTS:
        found = counts.invariants[kind]
        metrics.counter("specscope_states_invariants", "What healthy states lack", {"kind": kind}, found)
    seconds = counts.device_seconds
    if seconds is None:
        return
    metrics.counter("specscope_states_device_seconds", "Device time of reducing samples", {}, seconds)


def report_push(metrics: Metrics, counts: StateCounts) -> None:
    """Export what became of windows that are pushed to a server, if they are."""
    if counts.push_waiting is None:
        return
    for outcome in PUSHES:
        pushes, labels = counts.pushes[outcome], {"outcome": outcome}
        metrics.counter("specscope_states_pushes", "Windows pushed to a server, and attempts", labels, pushes)
    meaning = "Windows that wait to be pushed"
    metrics.gauge("specscope_states_push_waiting", meaning, {}, counts.push_waiting)


def report_check(metrics: Metrics, counts: StateCounts) -> None:
    """Export what ranks of a group, which hold the same states, can be compared by."""
    if counts.check_sample is None:
        return
    for slot, ln_norm in enumerate(counts.check_ln_norms[:MOST_SLOTS]):
        meaning = "Mean ln norm of the sample that all ranks compare"
        metrics.gauge("specscope_states_check_ln_norm", meaning, {"slot": str(slot)}, ln_norm)
    meaning = "Number of the sample that all ranks compare"
    metrics.gauge("specscope_states_check_sample", meaning, {}, counts.check_sample)
