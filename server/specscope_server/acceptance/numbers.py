"""Word each headline number: value, state, definition, source, sample size and age."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from specscope_server.acceptance.engine_rates import dilutes_with_prefill
from specscope_server.acceptance.gather import DERIVING, GAUGES, LaunchData
from specscope_server.acceptance.measure import Measured, constant_draft_tokens, last_same, last_total
from specscope_server.acceptance.schemas import Evidence, Number, NumberState
from specscope_server.acceptance.statistics import MIN_CYCLES, MIN_WINDOWS, Ratio
from specscope_server.kit.timeparse import iso_or_none
from specscope_server.kit.versions import version_text

RAW_NAMES = {
    "spec.accept_length": "sglang:spec_accept_length",
    "spec.engine_accept_rate": "sglang:spec_accept_rate",
    "spec.verify_calls": "sglang:spec_verify_calls_total",
    "tokens.generated": "sglang:generation_tokens_total",
    "requests.finished": "sglang:num_requests_total",
    "tokens.decoded": "sglang:realtime_tokens_total{mode=decode}",
    "throughput.generated": "sglang:gen_throughput",
    "requests.running": "sglang:num_running_reqs",
    "requests.queued": "sglang:num_queue_reqs",
    "spec.num_steps": "sglang:spec_num_steps",
    "spec.num_draft_tokens": "sglang:spec_num_draft_tokens",
}
DILUTED = (
    "this version counts each prefill as a cycle of one token, which pulls τ toward 1; the true "
    "value is higher"
)
MAYBE_DILUTED = (
    "it is not known whether this version counts prefills as cycles of one token (which pulls τ toward 1)"
)


@dataclass(frozen=True, slots=True)
class Context:
    """What every number of one answer shares."""

    measured: Measured
    now_ms: int
    stale_after_ms: int
    rank: int | None = None
    """The one data-parallel rank that was asked for; None = all."""
    is_over: bool = False
    """The newest launch shown was followed by another one: it is history, not out of date."""

    @property
    def newest(self) -> LaunchData | None:
        """Return the data of the newest launch."""
        return self.measured.launches[-1] if self.measured.launches else None

    @property
    def is_stale(self) -> bool:
        """Tell whether the window reaches the present but nothing was read lately."""
        newest = self.newest_ms
        reaches_now = self.measured.window.to_ms > self.now_ms - self.stale_after_ms
        is_old = newest is not None and self.now_ms - newest > self.stale_after_ms
        return reaches_now and is_old and not self.is_over

    @property
    def newest_ms(self) -> int | None:
        """Return when the newest sample of all was taken."""
        times = [time for data in self.measured.launches for time in data.newest_ms.values()]
        return max(times, default=None)

    def source(self, *metrics: str, live: bool = False, of: Sequence[LaunchData] = ()) -> str:
        """Return raw metric names and the versions that wrote what is shown; of nothing shown, all versions.

        ``live``: only the newest launch speaks of the present. ``of``: the launches used, where that is
        known.
        """
        known = self.measured.launches
        used = [data for data in known if all(_contributes(data, metric) for metric in metrics)]
        behind = of or (known[-1:] if live else used or known)
        versions = {
            version_text(data.launch.engine_version, data.launch.version_source) or "of unknown version"
            for data in behind
        }
        names = ", ".join(RAW_NAMES.get(metric, metric) for metric in metrics)
        return f"{names}; SGLang {' and '.join(sorted(versions))}" if versions else names

    def number(
        self,
        value: float | None,
        unit: str,
        definition: str,
        metrics: tuple[str, ...],
        *,
        state: NumberState | None = None,
        n: float | None = None,
        n_unit: str = "",
        interval: Ratio | None = None,
        note: str = "",
        live: bool = False,
        as_of_ms: int | None = None,
        source: str = "",
        of: Sequence[LaunchData] = (),
    ) -> Number:
        """Return a number in the first of these states that holds: given, no data, stale, idle, ok.

        ``live``: the number is of the present moment, so that an idle engine's value is a value like any
        other.
        """
        time_ms = as_of_ms or self.measured.newest_ms(*metrics)
        shown = interval if interval is not None and value is not None else Ratio(None)
        return Number(
            value=value, unit=unit, state=state or self._state(value, live), definition=definition,
            source=source or self.source(*metrics, live=live, of=of), n=n, n_unit=n_unit,
            low=shown.low, high=shown.high, interval_method=shown.method, as_of=iso_or_none(time_ms),
            age_seconds=None if time_ms is None else (self.now_ms - time_ms) / 1_000, note=note,
        )  # fmt: skip

    def _state(self, value: float | None, live: bool) -> NumberState:
        if value is None:
            return NumberState.NO_DATA
        if self.is_stale:
            return NumberState.STALE
        return NumberState.IDLE if self.measured.ends_idle and not live else NumberState.OK


def accept_length(context: Context) -> Number:
    """Return τ from the best evidence."""
    measured = context.measured
    if measured.evidence is Evidence.REQUEST_HISTOGRAMS and measured.requests:
        ratio, n = measured.requests.accepted_per_cycle.shifted(1.0), measured.requests.cycles
        definition = "τ = 1 + Σ accepted drafts / Σ verify calls, over finished requests"
        return _of_counts(context, ratio, n, "tokens/cycle", definition, (), source="reported per request")
    if measured.evidence is Evidence.COUNTERS:
        definition = (
            "τ = (Δ tokens − Δ requests) / Δ verify calls, over finished requests; prefill "
            "makes a request's first token"
        )
        number = _of_counts(
            context, measured.counter_length, measured.counters.calls, "tokens/cycle", definition, DERIVING
        )
        number.note = number.note or _uncounted_note(measured)
        return number
    value, n = measured.gauge_length
    definition = "mean of the engine's own window means of τ, weighted by time, over active stretches only"
    state = NumberState.FEW if value is not None and n < MIN_WINDOWS else None
    return context.number(
        value, "tokens/cycle", definition, ("spec.accept_length",),
        state=_worst(context, value, state), n=n or None, n_unit="buckets", note=_dilution_note(context),
    )  # fmt: skip


def draft_acceptance(context: Context) -> Number:
    """Return the strict share of accepted drafts from the best evidence."""
    measured = context.measured
    requests = measured.requests
    if measured.evidence is Evidence.REQUEST_HISTOGRAMS and requests and requests.proposed:
        definition = "Σ accepted drafts / Σ proposed drafts, over finished requests; no bonus token"
        return _of_counts(
            context, requests.strict, requests.cycles, "1", definition, (), source="reported per request"
        )
    if measured.evidence is Evidence.COUNTERS:
        definition = "(Δ tokens − Δ requests − Δ verify calls) / (Δ verify calls × (D − 1)); no bonus token"
        number = _of_counts(
            context, measured.counter_strict, measured.counters.calls, "1", definition, DERIVING
        )
        if measured.counters.proposed is None:
            number.note = (
                "D changed inside a launch or is not known, so the proposed drafts cannot be counted"
            )
        number.note = number.note or _uncounted_note(measured)
        return number
    definition = "(τ − 1) / (D − 1) of the engine's own window means, over active stretches only"
    value, n = measured.gauge_strict, measured.gauge_length[1]
    state = NumberState.FEW if value is not None and n < MIN_WINDOWS else None
    return context.number(
        value, "1", definition, ("spec.accept_length",), state=_worst(context, value, state),
        n=n or None, n_unit="buckets", note=_dilution_note(context),
    )  # fmt: skip


def depth_number(context: Context, metric: str) -> Number:
    """Return K or D: what the engine says is in force, else what it was launched with."""
    data = context.newest
    is_steps = metric == "spec.num_steps"
    unit = "drafts" if is_steps else "tokens"
    definition = (
        "K: drafts proposed one after the other in a cycle"
        if is_steps
        else "D: tokens verified per request and cycle, root included"
    )
    if data is None:
        return context.number(None, unit, definition, (metric,), live=True)
    live = last_same(data, metric)
    launched = data.launch.num_steps if is_steps else data.launch.num_draft_tokens
    if live is not None:
        note = (
            ""
            if constant_draft_tokens(data) is not None
            else "adaptive or changing: the newest value is shown"
        )
        return context.number(live, unit, definition, (metric,), live=True, note=note)
    value = None if launched is None else float(launched)
    note = "as launched; adaptive, so it may differ now" if data.launch.adaptive else "as launched"
    return context.number(
        value, unit, definition, (), live=True, note=note if value is not None else "",
        as_of_ms=data.launch.last_seen_ms, source="/server_info of the launch",
    )  # fmt: skip


def verify_calls_per_second(context: Context) -> Number:
    """Return cycles per second of active time."""
    value, grown = context.measured.rate_per_second("spec.verify_calls")
    definition = (
        "Δ verify calls / observed time in which the engine was active; counted when a request finishes"
    )
    note = "" if value is not None else "none were counted: SGLang 0.5.15 and later count verify calls"
    return context.number(
        value, "cycles/s", definition, ("spec.verify_calls",), n=grown or None, n_unit="cycles", note=note
    )


def generated_tokens_per_second(context: Context) -> Number:
    """Return tokens per second while active: live counter, else the gauge, else finished requests."""
    measured = context.measured
    value, grown = measured.rate_per_second("tokens.decoded")
    if value is not None:
        definition = "Δ decoded tokens / observed time in which the engine was active; summed over ranks"
        return context.number(value, "tokens/s", definition, ("tokens.decoded",), n=grown, n_unit="tokens")
    value, n = measured.throughput_gauge()
    if value is not None:
        definition = (
            "mean of the engine's own throughput, weighted by time, over active stretches; summed over ranks"
        )
        return context.number(value, "tokens/s", definition, ("throughput.generated",), n=n, n_unit="buckets")
    value, grown = measured.rate_per_second("tokens.generated")
    definition = "Δ tokens of finished requests / observed time in which the engine was active"
    return context.number(
        value, "tokens/s", definition, ("tokens.generated",), n=grown or None, n_unit="tokens"
    )


def requests_now(context: Context, metric: str) -> Number:
    """Return running or queued requests at the end of the window."""
    value = last_total(context.newest, metric) if context.newest else None
    what = "being decoded" if metric == "requests.running" else "waiting"
    definition = f"requests {what} at the newest scrape in the range, summed over data-parallel ranks"
    return context.number(value, "requests", definition, (metric,), live=True)


def choice_notes(measured: Measured) -> list[str]:
    """Return what a reader must know about the series that were used, as sentences."""
    notes = dict.fromkeys(data.note for data in measured.launches if data.note)
    return [f"{note[0].upper()}{note[1:]}." for note in notes]


def _of_counts(
    context: Context,
    ratio: Ratio,
    cycles: float,
    unit: str,
    definition: str,
    metrics: tuple[str, ...],
    source: str = "",
) -> Number:
    value, note, state = ratio.value, "", None
    if value is not None and _impossible(value, unit):
        note = (
            f"the counts give {value:.4g}, which cannot be; requests that were aborted may be counted "
            f"without their tokens"
        )
        value, state = None, NumberState.UNDETERMINED
    elif value is not None and cycles < MIN_CYCLES:
        state, note = NumberState.FEW, f"fewer than {MIN_CYCLES} cycles"
    as_of = context.measured.requests.newest_ms if source and context.measured.requests else None
    return context.number(
        value, unit, definition, metrics, state=_worst(context, value, state), n=cycles, n_unit="cycles",
        interval=ratio, note=note, as_of_ms=as_of, source=source,
    )  # fmt: skip


def _contributes(data: LaunchData, metric: str) -> bool:
    """Tell whether a launch's samples of a metric are in its number (gauges count while active only)."""
    if metric in GAUGES:
        return data.shows(metric)
    return metric in data.newest_ms


def _impossible(value: float, unit: str) -> bool:
    return value < 1 - 1e-9 if unit == "tokens/cycle" else not -1e-9 <= value <= 1 + 1e-9


def _worst(context: Context, value: float | None, state: NumberState | None) -> NumberState | None:
    """Return STALE before FEW, and what was given otherwise."""
    if state is NumberState.FEW and value is not None and context.is_stale:
        return NumberState.STALE
    return state


def _uncounted_note(measured: Measured) -> str:
    if not measured.uncounted:
        return ""
    return (
        f"only of the launches that count verify calls: {measured.uncounted} of {len(measured.launches)} "
        "launches in this range printed an accept length but no counts"
    )


def _dilution_note(context: Context) -> str:
    if context.measured.gauge_length[0] is None:
        return ""
    diluted = {
        dilutes_with_prefill(data.launch.engine_version, data.launch.version_source)
        for data in context.measured.launches
        if _contributes(data, "spec.accept_length")
    }
    if True in diluted:
        return DILUTED
    return MAYBE_DILUTED if None in diluted else ""
