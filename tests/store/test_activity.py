"""Source health, events, requests and launches are kept as they were told."""

from __future__ import annotations

from typing import Any

import orjson
from sqlalchemy import Engine
from sqlalchemy.orm import Session
from tests.store.conftest import T0, batch, launch, rows

from specscope_collectors.observations import Event as EventRecord
from specscope_collectors.observations import (
    HealthState,
    Parallelism,
    RequestRecord,
    SourceHealth,
    SpeculativeConfig,
    Target,
)
from specscope_server.models import Launch, SourceStatus
from specscope_server.store.ingest import IngestWriter


def health(time_ms: int, state: HealthState, **fields: Any) -> SourceHealth:
    values = {"source": "sglang_metrics", "url": "http://x/metrics", "duration_seconds": 0.1}
    return SourceHealth(time_ms=time_ms, state=state, **{**values, **fields})


def status(engine: Engine) -> SourceStatus:
    with Session(engine) as session:
        return session.query(SourceStatus).one()


def test_since_when_a_state_holds_and_when_it_was_last_good(
    store_engine: Engine, writer: IngestWriter
) -> None:
    told = [
        (HealthState.OK, 0, 0),
        (HealthState.OK, 0, 1),
        (HealthState.TIMEOUT, 2, 1),
        (HealthState.TIMEOUT, 2, 1),
        (HealthState.UNREACHABLE, 4, 1),
        (HealthState.PARTIAL, 5, 5),
    ]
    for second, (state, since, last_good) in enumerate(told):
        writer.apply(batch(health(T0 + second, state), sequence=second + 2))
        found = status(store_engine)
        assert (found.state, found.since_ms, found.last_good_ms) == (state.value, T0 + since, T0 + last_good)


def test_never_good_is_not_a_time(store_engine: Engine, writer: IngestWriter) -> None:
    writer.apply(
        batch(health(T0, HealthState.DISABLED, http_status=404, remedy="--enable-metrics"), sequence=2)
    )
    found = status(store_engine)
    assert (found.last_good_ms, found.http_status, found.remedy) == (None, 404, "--enable-metrics")


def test_an_event_told_twice_in_the_same_words_is_one(store_engine: Engine, writer: IngestWriter) -> None:
    first = EventRecord(kind="log_error", time_ms=T0, message="out of memory", detail={"lines": 1})
    others = [
        EventRecord(kind="log_error", time_ms=T0 + 1, message="out of memory", detail={"lines": 1}),
        EventRecord(kind="log_error", time_ms=T0, message="out of memory", detail={"lines": 2}),
    ]
    writer.apply(batch(launch(), first, first))
    writer.apply(batch(first, *others, sequence=2))
    writer.apply(batch(first, *others, sequence=1, collector_id="another"))
    assert len(rows(store_engine, "event")) == 3


def test_late_news_do_not_replace_newer_ones(store_engine: Engine, writer: IngestWriter) -> None:
    writer.apply(batch(health(T0 + 10, HealthState.TIMEOUT), sequence=2))
    writer.apply(batch(health(T0 + 5, HealthState.OK), sequence=3))
    found = status(store_engine)
    assert (found.state, found.time_ms, found.last_good_ms) == ("timeout", T0 + 10, T0 + 5)


def test_health_needs_no_launch_and_is_kept_with_what_is_missing(
    store_engine: Engine, writer: IngestWriter
) -> None:
    missing = {"forward time": "--enable-metrics-for-all-schedulers"}
    sent = health(T0, HealthState.PARTIAL, missing=missing, body_bytes=90_000, series=12, refused=3)
    writer.apply(batch(sent, sequence=2, launch=None))
    found = status(store_engine)
    assert orjson.loads(found.missing) == missing
    assert (found.body_bytes, found.series, found.refused) == (90_000, 12, 3)


def test_a_request_is_kept_once(store_engine: Engine, writer: IngestWriter) -> None:
    sent = RequestRecord(
        request_id="r1",
        time_ms=T0,
        prompt_tokens=10,
        completion_tokens=8,
        verify_calls=3,
        accepted_drafts=4,
        proposed_drafts=9,
        accepted_histogram=(1, 0, 2),
        e2e_seconds=0.5,
        labels={"b": "2", "a": "1"},
    )
    other = RequestRecord(request_id="r2", time_ms=T0)
    writer.apply(batch(sent, other, sequence=2))
    writer.apply(batch(sent, sequence=3))
    columns = ("request_id", "accepted_drafts", "accepted_histogram", "cached_tokens", "labels")
    assert rows(store_engine, "request", *columns) == [
        ("r1", 4, "[1,0,2]", None, '{"a":"1","b":"2"}'),
        ("r2", None, None, None, "{}"),
    ]


def test_events_are_kept_with_their_launch(store_engine: Engine, writer: IngestWriter) -> None:
    odd = {"n": 2**80, "text": "\ud800", "nul": "\0"}
    writer.apply(batch(EventRecord(kind="note", time_ms=T0, message="τ = 1.1", detail=odd), sequence=2))
    [(kind, message, launch_id, detail)] = rows(
        store_engine, "event", "kind", "message", "launch_id", "detail"
    )
    assert (kind, message, launch_id is not None) == ("note", "τ = 1.1", True)
    assert "1208925819614629174706176" in detail


def test_a_launch_is_kept_whole(store_engine: Engine, writer: IngestWriter) -> None:
    sent = launch(
        "b",
        engine_version="0.5.8",
        speculative=SpeculativeConfig(algorithm="EAGLE3", num_steps=3, eagle_topk=1, num_draft_tokens=4),
        parallelism=Parallelism(tp_size=8, enable_dp_attention=False),
        environment={"NCCL_ALGO": "Ring"},
        config={"b": [1, None], "a": {"c": 1.5}},
        is_demo=True,
    )
    writer.apply(batch(sent, sequence=2, launch="b"))
    with Session(store_engine) as session:
        found = session.query(Launch).filter_by(key="b").one()
        assert (found.algorithm, found.num_steps, found.eagle_topk, found.num_draft_tokens) == (
            "EAGLE3",
            3,
            1,
            4,
        )
        assert (found.tp_size, found.dp_size, found.enable_dp_attention) == (8, None, False)
        assert found.is_demo is True
        assert found.config == '{"a":{"c":1.5},"b":[1,null]}'
        assert orjson.loads(found.environment) == {"NCCL_ALGO": "Ring"}


def test_a_changed_address_is_noted_and_the_server_is_the_same(
    store_engine: Engine, writer: IngestWriter
) -> None:
    moved = Target(name="gpu1:30000", base_url="http://10.0.0.9:30000")
    writer.apply(batch(sequence=2, target=moved))
    assert rows(store_engine, "server", "name", "base_url") == [("gpu1:30000", "http://10.0.0.9:30000")]
