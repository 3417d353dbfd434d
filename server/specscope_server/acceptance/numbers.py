"""Word each headline number: value, state, definition, source, sample size and age."""

from __future__ import annotations

from specscope_server.acceptance.context import Context, contributes
from specscope_server.acceptance.counts import constant_draft_tokens, counts_drafts
from specscope_server.acceptance.engine_rates import dilutes_with_prefill
from specscope_server.acceptance.gather import CYCLES, DERIVING
from specscope_server.acceptance.measure import Measured, inferred_draft_tokens, last_same, last_total
from specscope_server.acceptance.schemas import Evidence, Number, NumberState
from specscope_server.acceptance.statistics import MIN_CYCLES, MIN_WINDOWS, Ratio
from specscope_server.kit.versions import LOG_LINES

DILUTED = (
    "this version counts each prefill as a cycle of one token, which pulls τ toward 1; the true "
    "value is higher"
)
MAYBE_DILUTED = (
    "it is not known whether this version counts prefills as cycles of one token (which pulls τ toward 1)"
)


def accept_length(context: Context) -> Number:
    """Return τ from the best evidence."""
    measured = context.measured
    if measured.evidence is Evidence.REQUEST_HISTOGRAMS and measured.requests:
        ratio, n = measured.requests.accepted_per_cycle.shifted(1.0), measured.requests.cycles
        definition = "τ = 1 + Σ accepted drafts / Σ verify calls, over finished requests"
        return _of_counts(context, ratio, n, "tokens/cycle", definition, (), source="reported per request")
    if measured.evidence is Evidence.DRAFT_COUNTERS:
        definition = "τ = 1 + Δ accepted drafts / Δ cycles, both counted by the engine as they happen"
        number = _of_counts(
            context, measured.counter_length, measured.counters.calls, "tokens/cycle", definition,
            ("spec.drafts_accepted", "spec.cycles"),
        )  # fmt: skip
        number.note = number.note or _uncounted_note(measured)
        return number
    if measured.evidence is Evidence.COUNTERS:
        definition = (
            "τ = (Δ tokens − Δ requests) / Δ verify calls, over finished requests; prefill "
            "makes a request's first token"
        )
        number = _of_counts(
            context, measured.counter_length, measured.counters.calls, "tokens/cycle", definition, DERIVING
        )
        number.note = number.note or _uncounted_note(measured)
        return _with_counted(context, number, ("spec.drafts_accepted", "spec.cycles"))
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
    if measured.evidence is Evidence.DRAFT_COUNTERS:
        definition = "Δ accepted drafts / Δ proposed drafts, both counted by the engine; no bonus token"
        number = _of_counts(
            context, measured.counter_strict, measured.counters.calls, "1", definition,
            ("spec.drafts_accepted", "spec.drafts_proposed"),
        )  # fmt: skip
        if measured.counters.proposed is None:
            number.note = "proposed drafts are not counted"
        number.note = number.note or _uncounted_note(measured)
        return number
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
        return _with_counted(context, number, ("spec.drafts_accepted", "spec.drafts_proposed"))
    definition = "(τ − 1) / (D − 1) of the engine's own window means, over active stretches only"
    value, n = measured.gauge_strict, measured.gauge_length[1]
    state = NumberState.FEW if value is not None and n < MIN_WINDOWS else None
    notes = () if value is None else (_width_note(context), _dilution_note(context))
    return context.number(
        value, "1", definition, ("spec.accept_length",), state=_worst(context, value, state),
        n=n or None, n_unit="buckets", note="; ".join(filter(None, notes)),
    )  # fmt: skip


def _width_note(context: Context) -> str:
    """Return where D comes from if nobody told it."""
    measured = context.measured
    found = {
        inferred_draft_tokens(data)
        for data in measured.launches
        if contributes(data, "spec.accept_length") and constant_draft_tokens(data) is None
    } - {None}
    named = " or ".join(str(width) for width in sorted(filter(None, found)))
    return f"D = {named}, the only one that accept length and printed rate fit" if named else ""


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
        as_of_ms=data.launch.last_seen_ms, source=_settings_source(data.launch.version_source),
    )  # fmt: skip


def _settings_source(version_source: str | None) -> str:
    is_log = version_source == LOG_LINES
    return "the arguments of the launch in its log" if is_log else "/server_info of the launch"


def verify_calls_per_second(context: Context) -> Number:
    """Return cycles per second of active time."""
    measured = context.measured
    value, grown = measured.rate_per_second(*CYCLES)
    is_live = any("spec.cycles" in data.counters for data in measured.launches)
    metric = "spec.cycles" if is_live else "spec.verify_calls"
    definition = (
        "Δ cycles / observed time in which the engine was active; counted as they happen"
        if is_live
        else "Δ verify calls / observed time in which the engine was active; counted when a request finishes"
    )
    note = "" if value is not None else "none were counted: SGLang 0.5.15 and later count verify calls"
    return context.number(
        value, "cycles/s", definition, (metric,), n=grown or None, n_unit="cycles", note=note
    )


def generated_tokens_per_second(context: Context) -> Number:
    """Return tokens per second while active: live counter, else the gauge, else finished requests."""
    measured = context.measured
    value, grown = measured.rate_per_second("tokens.decoded")
    if value is not None:
        definition = "Δ decoded tokens / observed time in which the engine was active; summed over ranks"
        return context.number(value, "tokens/s", definition, ("tokens.decoded",), n=grown, n_unit="tokens")
    value, grown = measured.rate_per_second("tokens.emitted")
    if value is not None:
        definition = (
            "Δ output tokens, the one from prefill included / observed time in which the engine was active"
        )
        return context.number(value, "tokens/s", definition, ("tokens.emitted",), n=grown, n_unit="tokens")
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
    definition = f"requests {what} at the newest reading in the range, summed over data-parallel ranks"
    return context.number(value, "requests", definition, (metric,), live=True)


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


def _with_counted(context: Context, number: Number, metrics: tuple[str, ...]) -> Number:
    """Name those launches of the range that count their drafts themselves, beside the others."""
    counting = [data for data in context.measured.counted if counts_drafts(data)]
    if counting:
        source = context.source(*metrics, of=counting)
        number.source = f"{number.source}; {source}"
        number.definition += "; of launches that count drafts themselves, those counts"
    return number


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
        False
        if data.launch.engine == "vllm"
        else dilutes_with_prefill(data.launch.engine_version, data.launch.version_source)
        for data in context.measured.launches
        if contributes(data, "spec.accept_length")
    }
    if True in diluted:
        return DILUTED
    return MAYBE_DILUTED if None in diluted else ""
