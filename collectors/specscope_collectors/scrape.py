"""One answer of ``/metrics`` → which engine wrote it, what was read, and in which state the source is."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from specscope_collectors.alternation import Doubt
from specscope_collectors.engine import Engine
from specscope_collectors.engines import engine_named, engine_of, engines, titles, wanted_names
from specscope_collectors.exposition.mapped import Mapped
from specscope_collectors.exposition.parse import Exposition, NotAnExposition, parse_exposition
from specscope_collectors.fetch import Answer
from specscope_collectors.health import health_of
from specscope_collectors.observations import HealthState, SourceHealth

PATH = "/metrics"

_DOUBTS = {
    Doubt.HELD: (
        "counters fell or another engine answered although the server was not away: values wait until it is "
        "clear whether it restarted",
        "",
    ),
    Doubt.SEVERAL: (
        "counters fall again and again: several processes seem to answer here by turns, nothing is taken",
        "watch each engine at its own address, not through a load balancer",
    ),
}


@dataclass(frozen=True, slots=True)
class MetricsReading:
    """``mapped`` is None when no value may be taken from the answer."""

    health: SourceHealth
    mapped: Mapped | None = None
    engine: Engine = field(default_factory=lambda: engine_named(None))
    """Who wrote it; who was there last where that cannot be told."""
    nothing_serves: bool = False
    """Certain that no server worked there when it was asked."""
    is_blank: bool = False
    """An exporter with nothing to say: all counters are 0 if this is an engine (SGLang 0.4.6 at first)."""


def read_metrics(
    answer: Answer, time_ms: int, *, max_series: int, last: Engine, adaptive: bool = False
) -> MetricsReading:
    """Return what ``answer`` holds; never raises for its content. ``last``: the engine there until now."""
    if not answer.ok:
        remedy = last.metrics_off_remedy if answer.state is HealthState.DISABLED else None
        health = health_of(answer, last.source, time_ms, remedy=remedy)
        return MetricsReading(health, engine=last, nothing_serves=answer.nothing_serves)
    try:
        exposition = parse_exposition(answer.body, max_series=max_series, wanted=wanted_names())
    except NotAnExposition as problem:
        is_blank = problem.is_empty and _is_prometheus(answer)
        return MetricsReading(_not_metrics(answer, last, time_ms, problem), engine=last, is_blank=is_blank)
    engine = engine_of(exposition.names, last)
    if exposition.is_truncated:
        return MetricsReading(_truncated(answer, engine or last, time_ms), engine=engine or last)
    if engine is None:
        return MetricsReading(_other_product(answer, last, time_ms, exposition), engine=last)
    mapped = engine.map(exposition, adaptive=adaptive)
    return MetricsReading(_read(answer, engine, time_ms, exposition, mapped), mapped, engine)


def _read(
    answer: Answer, engine: Engine, time_ms: int, exposition: Exposition, mapped: Mapped
) -> SourceHealth:
    remedy = ""
    if exposition.over_limit:
        remedy = "raise SPECSCOPE_MAX_SERIES_PER_TARGET, or find the label whose values never repeat"
    return health_of(
        answer,
        engine.source,
        time_ms,
        state=HealthState.PARTIAL if mapped.refused else HealthState.OK,
        detail=f"{mapped.refused} values refused: " + "; ".join(mapped.refusals) if mapped.refused else "",
        remedy=remedy,
        series=mapped.series,
        refused=mapped.refused,
    )


def _not_metrics(answer: Answer, last: Engine, time_ms: int, problem: NotAnExposition) -> SourceHealth:
    if problem.is_empty:
        state, remedy = HealthState.PARTIAL, "send a request"
        detail = f"{answer.url} is empty: nothing measured yet"
        return health_of(answer, last.source, time_ms, state=state, detail=detail, remedy=remedy, series=0)
    detail = f"{answer.url} is not {last.title}'s metrics: {problem.reason}"
    state = HealthState.NOT_THIS_ENGINE
    return health_of(answer, last.source, time_ms, state=state, detail=detail, remedy=_other_remedy())


def _other_remedy() -> str:
    prefixes = " or ".join(f"'{engine.prefix}'" for engine in engines())
    return (
        f"give --watch the base URL of an {titles()} server (what it answers on /metrics begins {prefixes})"
    )


def _is_prometheus(answer: Answer) -> bool:
    """Tell an exporter that has nothing to say from a proxy that lost the body: the format's version."""
    return answer.content_type.startswith("text/plain") and "version=" in answer.content_type


def doubted(reading: MetricsReading, doubt: Doubt) -> MetricsReading:
    """Return ``reading`` without its values, saying why they are not taken."""
    state = HealthState.INVALID if doubt is Doubt.SEVERAL else HealthState.PARTIAL
    detail, remedy = _DOUBTS[doubt]
    health = msgspec.structs.replace(reading.health, state=state, detail=detail, remedy=remedy)
    return MetricsReading(health, engine=reading.engine)


def _truncated(answer: Answer, engine: Engine, time_ms: int) -> SourceHealth:
    detail = f"{answer.url} was cut off after {answer.body_bytes} bytes; nothing is taken from it"
    remedy = "a proxy or a dying server cuts answers; it is tried again"
    return health_of(answer, engine.source, time_ms, state=HealthState.INVALID, detail=detail, remedy=remedy)


def _other_product(answer: Answer, last: Engine, time_ms: int, exposition: Exposition) -> SourceHealth:
    names = ", ".join(sorted(exposition.names)[:3])
    detail = f"{answer.url} holds metrics, but none of {titles()} (it has {names or 'none'})"
    state = HealthState.NOT_THIS_ENGINE
    return health_of(answer, last.source, time_ms, state=state, detail=detail, remedy=_other_remedy())
