"""What Specscope's probe inside the engine writes on its ``/metrics``; see ``specscope_probe.report``.

The names are the same for every engine version that can carry the probe, and have no prefix of the engine's.
"""

from __future__ import annotations

from specscope_collectors.exposition.table import ALWAYS_SUMMED, Row

_REQUESTS = ("view", "requests")
_WORKER = ("view", "worker")
_SUMMED = ALWAYS_SUMMED | {"view"}

_METRICS: tuple[tuple[str, str, tuple[str, str] | None], ...] = (
    # canonical metric, raw name, take only these
    ("spec.cycles", "specscope_cycles_total", _REQUESTS),
    ("spec.drafts_proposed", "specscope_drafts_proposed_total", _REQUESTS),
    ("spec.drafts_accepted", "specscope_drafts_accepted_total", _REQUESTS),
    ("spec.cycles_by_accepted", "specscope_cycles_by_accepted_total", _REQUESTS),
    ("probe.worker_cycles", "specscope_cycles_total", _WORKER),
    ("probe.worker_drafts_proposed", "specscope_drafts_proposed_total", _WORKER),
    ("probe.worker_drafts_accepted", "specscope_drafts_accepted_total", _WORKER),
    ("time.phase", "specscope_phase_seconds_total", None),
    ("time.cycle", "specscope_cycle_seconds_total", None),
    ("time.cycles_timed", "specscope_cycles_timed_total", None),
    ("time.warm_up", "specscope_warm_up_seconds_total", None),
    ("time.warm_up_cycles", "specscope_warm_up_cycles_total", None),
    ("probe.cycles_seen", "specscope_cycles_seen_total", None),
    ("probe.cycles_dropped", "specscope_cycles_dropped_total", None),
    ("probe.host_time", "specscope_probe_host_seconds_total", None),
    ("probe.wall_time", "specscope_probe_wall_seconds_total", None),
    ("probe.errors", "specscope_probe_errors_total", None),
    ("probe.refused", "specscope_probe_refused_total", None),
    ("probe.part", "specscope_probe_part", None),
    ("probe.info", "specscope_probe_info", None),
    ("probe.time_every", "specscope_probe_time_every", None),
    ("states.samples", "specscope_states_samples_total", None),
    ("states.rows", "specscope_states_rows_total", None),
    ("states.dropped", "specscope_states_dropped_total", None),
    ("states.windows", "specscope_states_windows_total", None),
    ("states.pushes", "specscope_states_pushes_total", None),
    ("states.push_waiting", "specscope_states_push_waiting", None),
    ("states.invariants", "specscope_states_invariants_total", None),
    ("states.device_time", "specscope_states_device_seconds_total", None),
    ("states.check_ln_norm", "specscope_states_check_ln_norm", None),
    ("states.check_sample", "specscope_states_check_sample", None),
)


def probe_rows(versions: int, first: int) -> tuple[Row, ...]:
    """Return the rows for an engine of so many known versions; those from ``first`` on can carry it."""
    return tuple(
        Row(metric, (None,) * first + (raw,) * (versions - first), where=where, sums_away=_SUMMED)
        for metric, raw, where in _METRICS
    )
