"""Write one prepared batch inside its transaction."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from sqlalchemy import Connection, select, update

from specscope_collectors.observations import Batch
from specscope_server.models import Launch, Server
from specscope_server.store.activity_writer import write_events, write_health, write_requests
from specscope_server.store.distribution_writer import Row, layout_ids, write_distributions
from specscope_server.store.identity import placeholder, upsert_launch, upsert_server
from specscope_server.store.prepared import Prepared
from specscope_server.store.refusal import Reason
from specscope_server.store.request_writer import place_requests
from specscope_server.store.scalars import SeriesKey, to_samples
from specscope_server.store.series_ids import Owner, SeriesIds
from specscope_server.store.series_writer import write_samples
from specscope_server.store.state_writer import write_profiles
from specscope_server.store.trace_writer import write_traces


@dataclass(frozen=True, slots=True)
class Written:
    """What of a batch was stored."""

    samples: int
    distributions: int
    duplicates: int
    refused: Counter[Reason]


def write_batch(connection: Connection, batch: Batch, prepared: Prepared, ids: SeriesIds) -> Written:
    """Write everything; the caller has claimed the sequence and holds the server's lock."""
    owner = _owner(connection, batch, prepared)
    samples, sample_duplicates, sample_refused = _write_scalars(connection, owner, prepared, ids)
    histograms, duplicates, refused = _write_distributions(connection, owner, prepared, ids)
    write_events(connection, owner.server_id, owner.launch_id, prepared.events)
    if owner.launch_id is None:
        place_requests(connection, owner.server_id, prepared.requests)
    else:
        write_requests(connection, owner.server_id, owner.launch_id, prepared.requests)
    write_profiles(connection, owner.server_id, owner.launch_id, prepared.profiles)
    write_traces(connection, owner.server_id, owner.launch_id, prepared.traces, prepared.now_ms)
    write_health(connection, owner.server_id, prepared.health)
    _touch(connection, owner, prepared)
    counts = Counter(prepared.refused)
    if sample_refused + refused:
        counts[Reason.TOO_MANY_SERIES] += sample_refused + refused
    return Written(samples, histograms, sample_duplicates + duplicates, counts)


def _owner(connection: Connection, batch: Batch, prepared: Prepared) -> Owner:
    server_id = upsert_server(connection, batch.target, prepared.now_ms)
    launches = {record.key: upsert_launch(connection, server_id, record) for record in prepared.launches}
    if batch.launch_key is None:
        return Owner(server_id, None)
    launch_id = launches.get(batch.launch_key) or _find_launch(connection, server_id, batch.launch_key)
    if launch_id is None:
        first_ms = prepared.newest_ms or prepared.now_ms
        launch_id = upsert_launch(connection, server_id, placeholder(batch.launch_key, first_ms))
    return Owner(server_id, launch_id)


def _find_launch(connection: Connection, server_id: int, key: str) -> int | None:
    statement = select(Launch.id).where(Launch.server_id == server_id, Launch.key == key)
    return connection.execute(statement).scalar_one_or_none()


def _write_scalars(
    connection: Connection, owner: Owner, prepared: Prepared, ids: SeriesIds
) -> tuple[int, int, int]:
    """Return how many were stored, were there already, and were refused as new series beyond the limit."""
    checked = prepared.scalars
    used = np.unique(checked.slot).tolist()
    found = ids.resolve(connection, owner, [prepared.keys[slot] for slot in used])
    id_of_slot = np.zeros(len(prepared.keys), dtype=np.int64)
    id_of_slot[used] = [series_id or 0 for series_id in found]
    samples, repeats = to_samples(checked, id_of_slot)
    stored = write_samples(connection, samples)
    without_id = int(np.count_nonzero(id_of_slot[checked.slot] == 0))
    return len(stored), repeats + len(samples) - len(stored), without_id


def _write_distributions(
    connection: Connection, owner: Owner, prepared: Prepared, ids: SeriesIds
) -> tuple[int, int, int]:
    records = prepared.distributions
    if not records:
        return 0, 0, 0
    found = ids.resolve(connection, owner, [SeriesKey(record.metric, record.labels) for record in records])
    layouts = layout_ids(connection, {record.bounds for record in records})
    rows = [
        Row(
            series_id,
            record.time_ms,
            layouts[record.bounds],
            record.span_ms,
            record.count,
            record.sum,
            np.array(record.buckets, dtype=np.float64),
        )
        for record, series_id in zip(records, found, strict=True)
        if series_id is not None
    ]
    stored = write_distributions(connection, rows)
    return stored, len(rows) - stored, len(records) - len(rows)


def _touch(connection: Connection, owner: Owner, prepared: Prepared) -> None:
    """Move the times last seen forward."""
    newest, measured = prepared.newest_ms, prepared.newest_measured_ms
    connection.execute(
        update(Server)
        .where(Server.id == owner.server_id, Server.last_seen_ms < newest)
        .values(last_seen_ms=newest)
    )
    if owner.launch_id is not None:
        connection.execute(
            update(Launch)
            .where(Launch.id == owner.launch_id, Launch.last_seen_ms < measured)
            .values(last_seen_ms=measured)
        )
