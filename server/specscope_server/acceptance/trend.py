"""Acceptance over time: one point a bucket, from the best evidence that the bucket has."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sqlalchemy.orm import Session

from specscope_server.acceptance.engine_rates import Formula
from specscope_server.acceptance.gather import LaunchData, gather
from specscope_server.acceptance.measure import Measured, constant_draft_tokens, decision_for
from specscope_server.acceptance.requests import RequestBucket, request_buckets
from specscope_server.acceptance.schemas import (
    AcceptanceTrend,
    ActivityState,
    Evidence,
    LaunchMarker,
    TrendPoint,
)
from specscope_server.acceptance.statistics import Floats, mean_over, strict_acceptance, sum_over
from specscope_server.kit.timeparse import to_iso
from specscope_server.kit.timerange import Window
from specscope_server.models import Launch
from specscope_server.store.lookup import choose_launches, server_by_name


def trend_of_window(
    session: Session, server: str, choice: str | None, window: Window, rank: int | None = None
) -> AcceptanceTrend:
    """Return the trend over ``window``; raises `NotFound` for an unknown server or launch."""
    row = server_by_name(session, server)
    launches = choose_launches(session, row.id, choice, window.from_ms, window.to_ms)
    data = gather(session, launches, window, rank)
    ids = [launch.id for launch in launches]
    requests = request_buckets(session, row.id, ids, window) if rank is None else {}
    measured = Measured(window, data, None)
    decision = measured.rate_decision
    return AcceptanceTrend.model_validate(
        {
            "server": server,
            "from": to_iso(window.from_ms),
            "to": to_iso(window.to_ms),
            "step_seconds": window.step_ms / 1_000,
            "is_demo": any(launch.is_demo for launch in launches),
            "engine_version": launches[-1].engine_version if launches else None,
            "rate_formula": _rate_formula(measured, decision.formula if decision else None),
            "points": _points(measured, requests),
            "launches": [_marker(launch) for launch in launches if launch.first_seen_ms >= window.from_ms],
        }
    )


def _rate_formula(measured: Measured, formula: Formula | None) -> str:
    if measured.rate_launch is None:
        return ""
    return formula.value if formula else "undetermined"


def _marker(launch: Launch) -> LaunchMarker:
    speculative = f"K={launch.num_steps} D={launch.num_draft_tokens}" if launch.num_draft_tokens else "launch"
    label = f"{speculative} · {launch.engine_version}" if launch.engine_version else speculative
    return LaunchMarker(
        time=to_iso(launch.first_seen_ms), launch_id=launch.id, label=label, reason=launch.reason
    )


class _Columns:
    """The arrays behind the points; all of shape (buckets,), NaN = not known."""

    def __init__(self, measured: Measured) -> None:
        size = measured.window.buckets
        launches = measured.launches
        self.active, self.idle = measured.activity
        self.accepted, self.calls, self.proposed = measured.counter_arrays()
        self.length = mean_over([data.gauge("spec.accept_length") for data in launches], size)
        self.rate = mean_over([data.gauge("spec.engine_accept_rate") for data in launches], size)
        self.steps = mean_over(
            [_depth(data, "spec.num_steps", data.launch.num_steps) for data in launches], size
        )
        self.width = mean_over(
            [_depth(data, "spec.num_draft_tokens", data.launch.num_draft_tokens) for data in launches], size
        )
        self.floor = mean_over([_floor(data) for data in launches], size)
        self.verify = _counter(launches, "spec.verify_calls", size)
        self.generated = _counter(launches, "tokens.generated", size)
        self.throughput = _throughput(launches, size)
        self.running = mean_over([data.running for data in launches], size)
        self.queued = mean_over([data.total("requests.queued") for data in launches], size)


def _points(measured: Measured, requests: dict[int, RequestBucket]) -> list[TrendPoint]:
    columns = _Columns(measured)
    return [
        _point(columns, measured.window, index, requests.get(index))
        for index in range(measured.window.buckets)
    ]


def _point(columns: _Columns, window: Window, index: int, requests: RequestBucket | None) -> TrendPoint:
    active = bool(columns.active[index])
    length, strict, evidence = (
        _best(columns, index, requests) if active or requests else (None, None, Evidence.NONE)
    )
    state = (
        ActivityState.ACTIVE
        if active or requests
        else ActivityState.IDLE
        if columns.idle[index]
        else ActivityState.GAP
    )
    return TrendPoint.model_construct(
        time=to_iso(window.from_ms + index * window.step_ms),
        state=state,
        evidence=evidence,
        accept_length=length,
        draft_acceptance=strict,
        engine_reported_rate=_known(columns.rate, index) if active else None,
        engine_rate_floor=_known(columns.floor, index),
        num_steps=_known(columns.steps, index),
        num_draft_tokens=_known(columns.width, index),
        verify_calls=_known(columns.verify, index),
        generated_tokens=_known(columns.generated, index),
        generated_tokens_per_second=_known(columns.throughput, index),
        requests_running=_known(columns.running, index),
        requests_queued=_known(columns.queued, index),
    )


def _best(
    columns: _Columns, index: int, requests: RequestBucket | None
) -> tuple[float | None, float | None, Evidence]:
    """Return (τ, strict acceptance, evidence) of one active bucket; impossible counts are passed over."""
    if requests is not None:
        strict = requests.accepted / requests.proposed if requests.proposed else None
        return 1 + requests.accepted / requests.cycles, strict, Evidence.REQUEST_HISTOGRAMS
    calls, accepted, proposed = (
        float(array[index]) for array in (columns.calls, columns.accepted, columns.proposed)
    )
    if calls > 0 and accepted >= 0 and not accepted > proposed:
        return 1 + accepted / calls, accepted / proposed if proposed > 0 else None, Evidence.COUNTERS
    length, width = float(columns.length[index]), float(columns.width[index])
    if np.isnan(length):
        return None, None, Evidence.NONE
    return length, None if np.isnan(width) else strict_acceptance(length, width), Evidence.GAUGES


def _known(array: Floats, index: int) -> float | None:
    value = float(array[index])
    return None if np.isnan(value) else value


def _depth(data: LaunchData, metric: str, launched: int | None) -> Floats:
    """Return K or D per bucket: the gauge, else what was launched wherever the launch was observed."""
    seen = data.gauge(metric)
    spread = data.extremes(metric)
    is_one = spread is None or spread[0] == spread[1]
    if not np.isnan(seen).all() or launched is None or data.launch.adaptive or not is_one:
        return seen
    active, idle = data.activity
    return np.where(active | idle, float(launched), np.nan)


def _floor(data: LaunchData) -> Floats:
    """Return 1/D where this launch printed a rate with the bonus token in it."""
    depth = constant_draft_tokens(data)
    rate = data.gauge("spec.engine_accept_rate")
    with_bonus = depth and decision_for(data).formula is Formula.WITH_BONUS
    return np.where(np.isnan(rate), np.nan, 1 / depth) if with_bonus and depth else np.full(len(rate), np.nan)


def _counter(launches: Sequence[LaunchData], metric: str, size: int) -> Floats:
    return sum_over([data.counters[metric].value for data in launches if metric in data.counters], size)


def _throughput(launches: Sequence[LaunchData], size: int) -> Floats:
    """Return tokens per second: live counter, else the engine's gauge."""
    rows = []
    for data in launches:
        decoded = data.counters.get("tokens.decoded")
        if decoded is None:
            rows.append(data.total("throughput.generated"))
        else:
            seconds = np.where(decoded.span_ms > 0, decoded.span_ms / 1_000, np.nan)
            rows.append(decoded.value / seconds)
    return mean_over(rows, size)
