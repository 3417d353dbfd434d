"""Captures are kept whole, once, under the launch of their time, and refused when their parts cannot be."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from sqlalchemy import Engine, select
from sqlalchemy.orm import Session
from tests.store.conftest import T0, batch

from specscope_collectors.observations import Target, TraceFile, TracePhase, TraceRank, TraceSummary
from specscope_server.models import Trace
from specscope_server.store.ingest import IngestWriter
from specscope_server.store.retention import Retention, enforce
from specscope_server.store.trace_writer import read_trace, store_trace, trace_reason


def packed(*values: float) -> bytes:
    """Return values as they travel."""
    return np.array(values, dtype="<f4").tobytes()


def phase(**changes: Any) -> TracePhase:
    """Return a phase of two occurrences."""
    values: dict[str, Any] = {
        "phase": "verify", "count": 2, "wall_ms": packed(10, 12), "cpu_ms": packed(1, 1),
        "class_ms": {"gemm": packed(6, 7), "all_reduce": packed(3, 4)}, "gap_ms": packed(1, 1),
        "busy_ms": {"gemm": packed(6, 7), "all_reduce": packed(4, 5)}, "batch_sizes": {8: 2},
    }  # fmt: skip
    return TracePhase(**{**values, **changes})


def summary(phases: tuple[TracePhase, ...] | None = None, **changes: Any) -> TraceSummary:
    """Return a capture of one rank."""
    rank = TraceRank(
        labels={"tp_rank": "0"}, basis="launches", cycles=2, span_ms=50.0, gpu_busy_ms=40.0,
        phases=(phase(),) if phases is None else phases,
    )  # fmt: skip
    file = TraceFile(name="1-TP-0.trace.json.gz", sha256="00", bytes=9, unpacked_bytes=99, events=5)
    values: dict[str, Any] = {
        "key": "ab" * 10,
        "time_ms": T0,
        "name": "x",
        "files": (file,),
        "ranks": (rank,),
    }
    return TraceSummary(**{**values, **changes})


def stored(engine: Engine) -> list[Trace]:
    """Return all captures."""
    with Session(engine) as session:
        return list(session.scalars(select(Trace).order_by(Trace.id)))


def test_a_capture_travels_in_a_batch_and_comes_back_as_it_was(
    store_engine: Engine, writer: IngestWriter
) -> None:
    record = msgspec.json.decode(msgspec.json.encode(summary()), type=TraceSummary)
    applied = writer.apply_counted(batch(record, sequence=2))
    assert applied.refused == {}
    [row] = stored(store_engine)
    assert read_trace(row.body) == summary()
    assert (row.basis, row.ranks, row.cycles, row.time_ms) == ("launches", 1, 2, T0)
    assert row.launch_id is not None
    writer.apply(batch(summary(), sequence=3))
    assert len(stored(store_engine)) == 1


def test_without_a_launch_it_belongs_to_the_one_of_its_time(
    store_engine: Engine, writer: IngestWriter
) -> None:
    writer.apply(batch(summary(key="cd" * 10), sequence=2))
    [first] = stored(store_engine)
    with Session(store_engine) as session:
        from specscope_server.models import Server

        server = session.scalars(select(Server)).one()
        target = Target(name=server.name, base_url=server.base_url)
    assert store_trace(store_engine, target, summary(time_ms=T0 + 5_000), T0)[1]
    assert store_trace(store_engine, target, summary(time_ms=T0 + 5_000), T0) == (
        stored(store_engine)[1].id,
        False,
    )
    early = store_trace(store_engine, target, summary(key="ef" * 10, time_ms=T0 - 86_400_000), T0)
    rows = {row.id: row.launch_id for row in stored(store_engine)}
    assert rows[stored(store_engine)[1].id] == first.launch_id
    assert rows[early[0]] is None


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (summary((phase(gap_ms=packed(5, 5)),)), "bad_trace"),
        (summary((phase(gap_ms=packed(1)),)), "bad_trace"),
        (summary((phase(wall_ms=b"abc"),)), "bad_trace"),
        (summary((phase(count=1),)), "bad_trace"),
        (summary((phase(cpu_ms=packed(-1, 1)),)), "bad_trace"),
        (summary((phase(cpu_ms=packed(float("nan"), 1)),)), "bad_trace"),
        (summary(ranks=()), "bad_trace"),
        (summary(ranks=(TraceRank(labels={}, basis="guess"),)), "bad_trace"),
        (summary(key=""), "bad_trace"),
        (summary(name="a\0b"), "bad_text"),
        (summary(time_ms=0), "too_old"),
        (summary(time_ms=T0 + 10**9), "future"),
    ],
)
def test_what_cannot_be_is_refused(record: TraceSummary, reason: str) -> None:
    assert trace_reason(record, 1, T0) == reason
    assert trace_reason(summary(), 1, T0) is None


def test_old_captures_go(store_engine: Engine, writer: IngestWriter) -> None:
    writer.apply(batch(summary(), sequence=2))
    assert enforce(store_engine, Retention(events_days=10), T0 + 5 * 86_400_000).rows.get("trace", 0) == 0
    assert enforce(store_engine, Retention(events_days=10), T0 + 12 * 86_400_000).rows["trace"] == 1
    assert stored(store_engine) == []
