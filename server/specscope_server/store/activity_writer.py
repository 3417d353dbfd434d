"""Write what happened besides measurements: events, source health, finished requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, select

from specscope_collectors.observations import Event as EventRecord
from specscope_collectors.observations import HealthState, RequestRecord, SourceHealth
from specscope_server.models import Event, Request, SourceStatus
from specscope_server.store import dialects
from specscope_server.store.chunks import chunks
from specscope_server.store.identity import canonical
from specscope_server.store.limits import label_reason, number_reason, text_reason, time_reason
from specscope_server.store.refusal import Reason

GOOD = frozenset({HealthState.OK, HealthState.PARTIAL})
"""States in which the source was read and understood."""


def event_reason(record: EventRecord, oldest_ms: int, now_ms: int) -> Reason | None:
    """Return why an event is refused."""
    texts = text_reason(record.kind, record.message, canonical(record.detail))
    return texts or time_reason(record.time_ms, oldest_ms, now_ms)


def health_reason(record: SourceHealth, oldest_ms: int, now_ms: int) -> Reason | None:
    """Return why a health record is refused."""
    texts = text_reason(record.source, record.url, record.detail, record.remedy, canonical(record.missing))
    numbers = number_reason(
        record.duration_seconds, record.http_status, record.body_bytes, record.series, record.refused
    )
    return texts or numbers or time_reason(record.time_ms, oldest_ms, now_ms)


def request_reason(record: RequestRecord, oldest_ms: int, now_ms: int) -> Reason | None:
    """Return why a request record is refused: its counts must agree with each other."""
    counts = (record.verify_calls, record.accepted_drafts, record.proposed_drafts)
    tokens = (record.prompt_tokens, record.completion_tokens, record.cached_tokens)
    histogram = record.accepted_histogram
    reason = (
        text_reason(record.request_id)
        or label_reason(record.labels)
        or number_reason(*counts, *tokens, record.e2e_seconds, *(histogram or ()))
        or time_reason(record.time_ms, oldest_ms, now_ms)
    )
    if reason:
        return reason
    if histogram is not None and not _histogram_agrees(
        histogram, record.verify_calls, record.accepted_drafts
    ):
        return Reason.HISTOGRAM_MISMATCH
    if _exceeds(record.accepted_drafts, record.proposed_drafts):
        return Reason.ACCEPTED_ABOVE_PROPOSED
    return None


def write_events(
    connection: Connection, server_id: int, launch_id: int | None, records: Sequence[EventRecord]
) -> None:
    """Append events; one that was told in all the same words, as of a log read by two, is there already."""
    rows = [
        {
            "server_id": server_id,
            "launch_id": launch_id,
            "time_ms": record.time_ms,
            "kind": record.kind,
            "message": record.message,
            "detail": canonical(record.detail),
        }
        for record in records
    ]
    known = _known_events(connection, server_id, [record.time_ms for record in records])
    fresh = list({_told(row): row for row in rows if _told(row) not in known}.values())
    if fresh:
        connection.execute(dialects.insert(connection, Event.__table__), fresh)  # type: ignore[arg-type]


_TOLD = ("launch_id", "time_ms", "kind", "message", "detail")


def _told(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in _TOLD)


def _known_events(connection: Connection, server_id: int, times: Sequence[int]) -> set[tuple[Any, ...]]:
    columns = [getattr(Event, name) for name in _TOLD]
    found: set[tuple[Any, ...]] = set()
    for part in chunks(sorted(set(times))):
        query = select(*columns).where(Event.server_id == server_id, Event.time_ms.in_(part))
        found.update(tuple(row) for row in connection.execute(query))
    return found


def write_requests(
    connection: Connection, server_id: int, launch_id: int | None, records: Sequence[RequestRecord]
) -> None:
    """Add finished requests; one that is there already changes nothing."""
    rows = [_request_row(server_id, launch_id, record) for record in records]
    if rows:
        statement = dialects.insert(connection, Request.__table__).on_conflict_do_nothing()  # type: ignore[arg-type]
        connection.execute(statement, rows)


def write_health(connection: Connection, server_id: int, records: Sequence[SourceHealth]) -> None:
    """Set the newest state of each source; a late record only may move the last good time."""
    for record in sorted(records, key=lambda record: record.time_ms):
        where = (SourceStatus.server_id == server_id) & (SourceStatus.source == record.source)
        columns = (SourceStatus.time_ms, SourceStatus.state, SourceStatus.since_ms, SourceStatus.last_good_ms)
        row = connection.execute(select(*columns).where(where)).one_or_none()
        good = [record.time_ms] if record.state in GOOD else []
        if row is not None and row.last_good_ms is not None:
            good.append(row.last_good_ms)
        values = {"server_id": server_id, "source": record.source, "last_good_ms": max(good, default=None)}
        if row is None or record.time_ms >= row.time_ms:
            same = row is not None and row.state == record.state
            values |= _health_values(record) | {"since_ms": row.since_ms if row and same else record.time_ms}
        if row is None:
            connection.execute(dialects.insert(connection, SourceStatus.__table__).values(values))  # type: ignore[arg-type]
        else:
            connection.execute(SourceStatus.__table__.update().where(where).values(values))  # type: ignore[attr-defined]


def _health_values(record: SourceHealth) -> dict[str, Any]:
    names = ("time_ms", "url", "duration_seconds", "http_status", "body_bytes", "series", "refused")
    values = {name: getattr(record, name) for name in (*names, "detail", "remedy")}
    return values | {"state": str(record.state), "missing": canonical(record.missing)}


def _request_row(server_id: int, launch_id: int | None, record: RequestRecord) -> dict[str, Any]:
    counts = ("verify_calls", "accepted_drafts", "proposed_drafts")
    names = ("request_id", "time_ms", "prompt_tokens", "completion_tokens", "cached_tokens", "e2e_seconds")
    histogram = record.accepted_histogram
    return {
        "server_id": server_id,
        "launch_id": launch_id,
        **{name: getattr(record, name) for name in (*names, *counts)},
        "accepted_histogram": None if histogram is None else canonical(list(histogram)),
        "labels": canonical(record.labels),
    }


def _histogram_agrees(histogram: Sequence[int], verify_calls: int | None, accepted: int | None) -> bool:
    """Σ h[j] = verify calls and Σ j·h[j] = accepted drafts, as far as those were sent."""
    total = sum(histogram)
    drafts = sum(index * steps for index, steps in enumerate(histogram))
    return verify_calls in (None, total) and accepted in (None, drafts)


def _exceeds(part: int | None, whole: int | None) -> bool:
    return part is not None and whole is not None and part > whole
