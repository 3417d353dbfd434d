"""Check and write reduced profiler captures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np
import zstandard
from numpy.typing import NDArray
from sqlalchemy import Connection, Engine, select

from specscope_collectors.observations import Target, TracePhase, TraceRank, TraceSummary
from specscope_server.models import Launch, Trace
from specscope_server.store import dialects
from specscope_server.store.engine import write_transaction
from specscope_server.store.identity import upsert_server
from specscope_server.store.limits import BEGINNING_MS, label_reason, number_reason, text_reason, time_reason
from specscope_server.store.refusal import Reason

MAX_RANKS, MAX_PHASES, MAX_CLASSES, MAX_VALUES, MAX_KERNELS = 1_024, 32, 32, 4_096, 256
MAX_BODY_BYTES = 64 * 1_048_576
BASES = ("launches", "gpu_ranges", "cpu_ranges", "structure", "none")
"""From the strongest to the weakest."""
EARLY_MS = 60_000
"""A launch is first seen by a scrape, which may come after a capture of its first minute."""


def trace_reason(record: TraceSummary, oldest_ms: int, now_ms: int) -> Reason | None:
    """Return why a capture is refused: its parts must add up to its whole.

    Captures may be older than the oldest samples that are taken.
    """
    del oldest_ms
    texts = [record.key, record.name, record.note, *record.notes, *(file.name for file in record.files)]
    labels = [label_reason(rank.labels) for rank in record.ranks]
    return (
        text_reason(*texts)
        or next((reason for reason in labels if reason is not None), None)
        or time_reason(record.time_ms, BEGINNING_MS, now_ms)
        or (Reason.BAD_TRACE if not _is_possible(record) else None)
    )


def _is_possible(record: TraceSummary) -> bool:
    if not record.key or not 0 < len(record.ranks) <= MAX_RANKS:
        return False
    return all(_is_possible_rank(rank) for rank in record.ranks)


def _is_possible_rank(rank: TraceRank) -> bool:
    numbers = (rank.span_ms, rank.gpu_busy_ms, rank.unattributed_ms, rank.cycles, rank.kernels)
    kernels = (*rank.top, *rank.other)
    if rank.basis not in BASES or not 0 <= rank.confidence <= 1 or number_reason(*numbers):
        return False
    if len(rank.phases) > MAX_PHASES or len(kernels) > MAX_KERNELS:
        return False
    if any(number_reason(each.count, each.total_ms) or text_reason(each.name) for each in kernels):
        return False
    return all(_adds_up(phase) for phase in rank.phases)


def _adds_up(phase: TracePhase) -> bool:
    """Time by class and gaps are the whole, occurrence by occurrence; nothing is negative."""
    if len(phase.class_ms) > MAX_CLASSES or len(phase.wall_ms) % 4 or len(phase.wall_ms) > 4 * MAX_VALUES:
        return False
    arrays = [phase.wall_ms, *phase.class_ms.values(), *phase.busy_ms.values(), phase.gap_ms, phase.cpu_ms]
    if any(array and len(array) != len(phase.wall_ms) for array in arrays):
        return False
    values = [floats(array) for array in arrays if array]
    if any(not np.isfinite(each).all() or (each < -0.002).any() for each in values):
        return False
    if len(phase.wall_ms) // 4 > phase.count or not phase.class_ms:
        return len(phase.wall_ms) // 4 <= phase.count
    wall = floats(phase.wall_ms)
    parts = sum((floats(each) for each in phase.class_ms.values()), floats(phase.gap_ms))
    return bool(np.all(np.abs(parts - wall) <= 0.002 + 1e-4 * wall))


def floats(array: bytes) -> NDArray[np.float64]:
    """Return the numbers of an array of a phase (ms); 0 for an empty one, so that it can be added."""
    return np.frombuffer(array, dtype="<f4").astype(np.float64) if array else np.zeros(1)


def store_trace(engine: Engine, target: Target, record: TraceSummary, now_ms: int) -> tuple[int, bool]:
    """Store one capture; return its id and whether it is new."""
    with write_transaction(engine) as connection:
        dialects.lock_server(connection, target.name)
        server_id = upsert_server(connection, target, now_ms)
        added = write_traces(connection, server_id, None, [record], now_ms)
        query = select(Trace.id).where(Trace.server_id == server_id, Trace.key == record.key)
        return connection.execute(query).scalar_one(), added > 0


def write_traces(
    connection: Connection,
    server_id: int,
    launch_id: int | None,
    records: Sequence[TraceSummary],
    now_ms: int,
) -> int:
    """Add captures and return how many are new; one that is there already changes nothing.

    Without a launch, a capture belongs to the one in force when it began.
    """
    rows = [
        _row(server_id, launch_id or _launch_at(connection, server_id, record.time_ms), record, now_ms)
        for record in records
    ]
    added = 0
    for row in rows:
        statement = dialects.insert(connection, Trace.__table__).values(**row)  # type: ignore[arg-type]
        kept = statement.on_conflict_do_nothing().returning(Trace.id)
        added += connection.execute(kept).first() is not None
    return added


def _launch_at(connection: Connection, server_id: int, time_ms: int) -> int | None:
    query = (
        select(Launch.id)
        .where(Launch.server_id == server_id, Launch.first_seen_ms <= time_ms + EARLY_MS)
        .order_by(Launch.first_seen_ms.desc(), Launch.id.desc())
        .limit(1)
    )
    return connection.execute(query).scalar_one_or_none()


def _row(server_id: int, launch_id: int | None, record: TraceSummary, now_ms: int) -> dict[str, object]:
    return {
        "server_id": server_id,
        "launch_id": launch_id,
        "key": record.key,
        "time_ms": record.time_ms,
        "name": record.name,
        "note": record.note,
        "basis": max((rank.basis for rank in record.ranks), key=BASES.index),
        "ranks": len(record.ranks),
        "cycles": max(rank.cycles for rank in record.ranks),
        "created_ms": now_ms,
        "body": zstandard.ZstdCompressor(level=6).compress(msgspec.msgpack.encode(record)),
    }


def read_trace(body: bytes) -> TraceSummary:
    """Return the record that `write_traces` was given."""
    raw = zstandard.ZstdDecompressor().decompress(body, max_output_size=MAX_BODY_BYTES)
    return msgspec.msgpack.decode(raw, type=TraceSummary)


def occurrences(phase: TracePhase) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """Yield (class, ms of each occurrence) of a phase, launch gaps as ``gap``."""
    for name, array in phase.class_ms.items():
        yield name, floats(array)
    if phase.gap_ms:
        yield "gap", floats(phase.gap_ms)
