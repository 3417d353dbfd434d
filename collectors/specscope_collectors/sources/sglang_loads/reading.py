"""One answer of ``/v1/loads`` → levels, and in which state the source is."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from specscope_collectors.fetch import Answer
from specscope_collectors.health import health_of
from specscope_collectors.observations import HealthState, Labels, Level, SourceHealth
from specscope_collectors.sources.sglang_loads.body import Loads, NotLoadsError, parse_loads
from specscope_collectors.sources.sglang_loads.levels import to_levels

SOURCE = "sglang_loads"
STALE_SECONDS = 60.0
"""A snapshot older than this describes the past: its load is not passed off as the present one."""


@dataclass(frozen=True, slots=True)
class LoadsReading:
    """What one answer gave."""

    health: SourceHealth
    levels: list[Level] = field(default_factory=list)
    loads: Loads | None = None


def read_loads(answer: Answer, time_ms: int, *, already: Collection[str], labels: Labels) -> LoadsReading:
    """Return what ``answer`` holds beside the metrics in ``already``; never raises for its content."""
    if answer.state is HealthState.DISABLED:
        state, detail = HealthState.NOT_OFFERED, f"{answer.url} does not exist there; nothing else needs it"
        return LoadsReading(health_of(answer, SOURCE, time_ms, state=state, detail=detail, remedy=""))
    if not answer.ok:
        return LoadsReading(health_of(answer, SOURCE, time_ms))
    try:
        loads = parse_loads(answer.body)
    except NotLoadsError as problem:
        state = HealthState.INVALID if problem.garbled else HealthState.NOT_THIS_ENGINE
        detail = f"{answer.url} is not SGLang's load: {problem}"
        return LoadsReading(health_of(answer, SOURCE, time_ms, state=state, detail=detail))
    if loads.age_seconds is not None and loads.age_seconds > STALE_SECONDS:
        return LoadsReading(_stale(answer, time_ms, loads.age_seconds), loads=loads)
    levels, refused = to_levels(loads, time_ms=time_ms, already=already, labels=labels)
    health = health_of(
        answer,
        SOURCE,
        time_ms,
        state=HealthState.PARTIAL if refused else HealthState.OK,
        detail=f"{refused} values refused: negative or not finite" if refused else "",
        series=len(levels),
        refused=refused,
    )
    return LoadsReading(health, levels, loads)


def _stale(answer: Answer, time_ms: int, age_seconds: float) -> SourceHealth:
    return health_of(
        answer,
        SOURCE,
        time_ms,
        state=HealthState.PARTIAL,
        detail=f"the schedulers' snapshot is {age_seconds:.0f} s old; its values are not used",
        remedy="if requests are running, a scheduler may hang: look into the server's log",
        series=0,
    )
