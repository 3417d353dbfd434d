"""Outcome of one attempt to read one source, as `SourceHealth` and as levels of the target itself."""

from __future__ import annotations

from specscope_collectors.fetch import Answer
from specscope_collectors.observations import HealthState, Level, SourceHealth

READ = frozenset({HealthState.OK, HealthState.PARTIAL})
"""States in which values were read."""

PASSING = frozenset({
    HealthState.UNREACHABLE, HealthState.TIMEOUT, HealthState.TLS_ERROR, HealthState.HTTP_ERROR,
    HealthState.INVALID,
})  # fmt: skip
"""States that may be over with the next attempt; the others last until somebody changes something."""

MAX_DETAIL = 500


def health_of(
    answer: Answer,
    source: str,
    time_ms: int,
    *,
    state: HealthState | None = None,
    detail: str | None = None,
    remedy: str | None = None,
    series: int | None = None,
    refused: int = 0,
    missing: dict[str, str] | None = None,
) -> SourceHealth:
    """Return the health record of ``answer``; what is given replaces what the answer itself says."""
    return SourceHealth(
        source=source,
        time_ms=time_ms,
        state=answer.state if state is None else state,
        url=answer.url,
        duration_seconds=answer.duration_seconds,
        http_status=answer.status,
        body_bytes=answer.body_bytes,
        series=series,
        refused=refused,
        detail=(answer.detail if detail is None else detail)[:MAX_DETAIL],
        remedy=(answer.remedy if remedy is None else remedy)[:MAX_DETAIL],
        missing=missing or {},
    )


def scrape_levels(health: SourceHealth) -> list[Level]:
    """Return ``scrape.*`` of one attempt; what is unknown of a failed one is left out."""
    values: dict[str, float | None] = {
        "scrape.up": float(health.state in READ),
        "scrape.duration": health.duration_seconds,
        "scrape.body": health.body_bytes,
        "scrape.series": health.series,
        "scrape.refused": health.refused if health.state in READ else None,
    }
    labels = {"source": health.source}
    return [
        Level(metric=metric, labels=labels, time_ms=health.time_ms, value=float(value))
        for metric, value in values.items()
        if value is not None
    ]
