"""Acceptance over time: one point a bucket, from the best evidence that the bucket has."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sqlalchemy.orm import Session

from specscope_server.acceptance.counts import counts_drafts
from specscope_server.acceptance.gather import CYCLES, LIVE, LaunchData, gather
from specscope_server.acceptance.measure import REQUESTS_COVER, Measured, inferred_draft_tokens
from specscope_server.acceptance.printed_rates import PrintedRates, described, printed_rates
from specscope_server.acceptance.requests import RequestBucket, request_buckets
from specscope_server.acceptance.schemas import (
    AcceptanceTrend,
    ActivityState,
    Evidence,
    LaunchMarker,
    TrendPoint,
)
from specscope_server.acceptance.statistics import Floats, mean_over, sum_over
from specscope_server.acceptance.windows import group_any, group_mean, group_sum, most_buckets, refine
from specscope_server.kit.timeparse import to_iso
from specscope_server.kit.timerange import Window
from specscope_server.kit.versions import tells_settings, version_text
from specscope_server.models import Launch
from specscope_server.store.lookup import choose_launches, server_by_name

GENERATED = ("tokens.generated", "tokens.emitted")


def trend_of_window(
    session: Session,
    server: str,
    choice: str | None,
    window: Window,
    scrape_interval_ms: int,
    rank: int | None = None,
) -> AcceptanceTrend:
    """Return the trend over ``window``; raises `NotFound` for an unknown server or launch."""
    row = server_by_name(session, server)
    launches = choose_launches(session, row.id, choice, window.from_ms, window.to_ms)
    fine, parts = refine(window, scrape_interval_ms, most_buckets(launches))
    data = gather(session, launches, fine, rank)
    ids = [launch.id for launch in launches]
    requests = request_buckets(session, row.id, ids, window) if rank is None else {}
    measured = Measured(fine, data, None)
    columns = _Columns(measured, printed_rates(data, window, parts), parts)
    return AcceptanceTrend.model_validate(
        {
            "server": server,
            "from": to_iso(window.from_ms),
            "to": to_iso(window.to_ms),
            "step_seconds": window.step_ms / 1_000,
            "is_demo": any(launch.is_demo for launch in launches),
            "engine_version": launches[-1].engine_version if launches else None,
            "rate_formula": _newest_formula(columns.rates),
            "rate_definitions": described(columns.rates, window),
            "points": _points(columns, window, requests),
            "launches": [_marker(launch) for launch in launches if launch.first_seen_ms >= window.from_ms],
        }
    )


def _newest_formula(rates: PrintedRates) -> str:
    printed = np.flatnonzero(rates.which >= 0)
    newest = rates.of(int(printed[-1])) if len(printed) else None
    return newest.formula if newest else ""


def _marker(launch: Launch) -> LaunchMarker:
    version = version_text(launch.engine_version, launch.version_source)
    label = " · ".join(filter(None, (_settings(launch), version)))
    return LaunchMarker(
        time=to_iso(launch.first_seen_ms), launch_id=launch.id, label=label, reason=launch.reason
    )


def _settings(launch: Launch) -> str:
    if launch.num_draft_tokens:
        return f"K={launch.num_steps} D={launch.num_draft_tokens}"
    is_known = tells_settings(launch.engine, launch.version_source, launch.model)
    return "off" if launch.algorithm is None and is_known else "launch"


class _Columns:
    """The arrays behind the points; all of shape (buckets,), NaN = not known.

    Everything is decided in fine buckets and then gathered, ``parts`` of them into one point.
    """

    def __init__(self, measured: Measured, rates: PrintedRates, parts: int) -> None:
        self.rates = rates
        size = measured.window.buckets
        launches = measured.launches

        def mean(rows: list[Floats]) -> Floats:
            return group_mean(mean_over(rows, size), parts)

        active, idle = measured.activity
        self.active = group_any(active, parts)
        self.idle = group_any(idle, parts)
        accepted, calls, proposed = measured.counter_arrays
        self.accepted, self.calls = group_sum(accepted, parts), group_sum(calls, parts)
        unknown = (calls > 0) & np.isnan(proposed)
        self.proposed = np.where(group_any(unknown, parts), np.nan, group_sum(proposed, parts))
        self.length = mean([data.gauge("spec.accept_length") for data in launches])
        self.strict = mean([_gauge_strict(data) for data in launches])
        self.num_steps = mean([_setting(data, "spec.num_steps", data.launch.num_steps) for data in launches])
        self.draft_tokens = mean([_draft_tokens(data) for data in launches])
        self.derived = group_sum(_derived_cycles(launches, size), parts)
        self.verify = group_sum(_counter(launches, CYCLES, size), parts)
        self.generated = group_sum(_counter(launches, GENERATED, size), parts)
        self.throughput = _throughput(launches, measured.window, parts)
        self.running = mean([data.running for data in launches])
        self.queued = mean([data.total("requests.queued") for data in launches])


def _points(columns: _Columns, window: Window, requests: dict[int, RequestBucket]) -> list[TrendPoint]:
    return [_point(columns, window, index, requests.get(index)) for index in range(window.buckets)]


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
    printed = columns.rates.of(index) if active else None
    return TrendPoint.model_construct(
        time=to_iso(window.from_ms + index * window.step_ms),
        state=state,
        evidence=evidence,
        accept_length=length,
        draft_acceptance=strict,
        engine_reported_rate=_known(columns.rates.value, index) if printed else None,
        engine_rate_floor=_known(columns.rates.floor, index) if printed else None,
        rate_formula=printed.formula if printed else "",
        rate_engine_version=printed.engine_version if printed else "",
        num_steps=_known(columns.num_steps, index),
        num_draft_tokens=_known(columns.draft_tokens, index),
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
    calls, accepted, proposed = (
        float(array[index]) for array in (columns.calls, columns.accepted, columns.proposed)
    )
    is_counted = calls > 0 and accepted >= 0 and not accepted > proposed
    counted = (1 + accepted / calls, accepted / proposed if proposed > 0 else None) if is_counted else None
    if counted is not None and not columns.derived[index] > 0:
        return *counted, Evidence.DRAFT_COUNTERS
    if requests is not None and requests.cycles >= REQUESTS_COVER * float(
        np.nan_to_num(columns.calls[index])
    ):
        strict = requests.accepted / requests.proposed if requests.proposed else None
        return 1 + requests.accepted / requests.cycles, strict, Evidence.REQUEST_HISTOGRAMS
    if counted is not None:
        return *counted, Evidence.COUNTERS
    length = _known(columns.length, index)
    if length is None:
        return None, None, Evidence.NONE
    return length, _known(columns.strict, index), Evidence.GAUGES


def _known(array: Floats, index: int) -> float | None:
    value = float(array[index])
    return None if np.isnan(value) else value


def _setting(data: LaunchData, metric: str, launched: int | None) -> Floats:
    """Return K or D per bucket: the gauge, else what was launched wherever the launch was observed."""
    seen = data.gauge(metric)
    spread = data.extremes(metric)
    is_one = spread is None or spread[0] == spread[1]
    if not np.isnan(seen).all() or launched is None or data.launch.adaptive or not is_one:
        return seen
    active, idle = data.activity
    return np.where(active | idle, float(launched), np.nan)


def _counter(launches: Sequence[LaunchData], metrics: tuple[str, ...], size: int) -> Floats:
    """Return the growth over launches, of the first of ``metrics`` that each counts."""
    found = [data.first_of(metrics) for data in launches]
    return sum_over([counter.value for counter in found if counter is not None], size)


def _derived_cycles(launches: Sequence[LaunchData], size: int) -> Floats:
    """Return the cycles of those launches that do not count drafts themselves."""
    return _counter([data for data in launches if not counts_drafts(data)], ("spec.verify_calls",), size)


def _throughput(launches: Sequence[LaunchData], window: Window, parts: int) -> Floats:
    """Return tokens per second: live counter, else the engine's gauge."""
    tokens, seconds = [], []
    for data in launches:
        decoded = data.first_of(LIVE)
        if decoded is None:
            rate = data.total("throughput.generated")
            tokens.append(rate)
            seconds.append(np.where(np.isnan(rate), np.nan, 1.0))
        else:
            tokens.append(decoded.value)
            seconds.append(np.where(decoded.span_ms > 0, decoded.span_ms / 1_000, np.nan))
    time = group_sum(sum_over(seconds, window.buckets), parts)
    return group_sum(sum_over(tokens, window.buckets), parts) / np.where(time > 0, time, np.nan)


def _draft_tokens(data: LaunchData) -> Floats:
    return _setting(data, "spec.num_draft_tokens", data.launch.num_draft_tokens)


def _gauge_strict(data: LaunchData) -> Floats:
    """Return (τ − 1)/(D − 1) of the gauges; NaN where D is not known or the result is no share."""
    draft_tokens = _draft_tokens(data)
    if np.isnan(draft_tokens).all() and (inferred := inferred_draft_tokens(data)) is not None:
        draft_tokens = np.full(len(draft_tokens), float(inferred))
    proposed = np.where(draft_tokens > 1, draft_tokens - 1, np.nan)
    strict = (data.gauge("spec.accept_length") - 1) / proposed
    return np.where((strict >= -1e-9) & (strict <= 1 + 1e-9), strict, np.nan)
