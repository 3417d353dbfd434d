"""POST /api/v1/ingest: what is sent is stored once, what is wrong is named, and no body is too much."""

from __future__ import annotations

import asyncio
import sqlite3
from typing import Any

import msgspec
import pytest
import zstandard
from sqlalchemy import Engine, text
from sqlalchemy.exc import DBAPIError, InterfaceError, InternalError, OperationalError, ProgrammingError
from tests.server.client import Web
from tests.server.ingest.bodies import encoded, frames, make_batch, packed, push
from tests.server.seed import NOW

from specscope_collectors.observations import Event, Increment, Launch, SourceHealth
from specscope_server.app import create_app
from specscope_server.ingest import receiving, service
from specscope_server.kit.web.telemetry import Telemetry
from specscope_server.settings import Settings
from specscope_server.store.ingest import IngestWriter

GROWTH = "SELECT coalesce(sum(value), 0) FROM sample"


def total(engine: Engine, statement: str = GROWTH) -> float:
    with engine.connect() as connection:
        return float(connection.execute(text(statement)).scalar_one())


@pytest.mark.parametrize("encoding", ["identity", "zstd", "gzip"])
@pytest.mark.parametrize(
    "media", ["application/msgpack", "application/x-msgpack; charset=x", "application/json"]
)
def test_batches_are_stored_once(web: Web, store_engine: Engine, encoding: str, media: str) -> None:
    batches = [make_batch(1), make_batch(1, collector="watch:b#2"), make_batch(2)]
    encode = msgspec.json.encode if "json" in media else msgspec.msgpack.encode
    content = encoded(encode(batches), encoding)
    headers = {"content_type": media, "content_encoding": encoding}
    answer = push(web, content, **headers)
    assert answer.status_code == 200, answer.text
    receipt = answer.json()
    assert (receipt["applied"], receipt["repeated"]) == (3, 0)
    assert [item["samples"] for item in receipt["batches"]] == [1, 1, 1]
    again = push(web, content, **headers).json()
    assert (again["applied"], again["repeated"]) == (0, 3)
    assert [item["applied_up_to"] for item in again["batches"]] == [2, 1, 2]
    assert total(store_engine) == 4


def test_frames_of_a_spool_are_one_list(web: Web, store_engine: Engine) -> None:
    batches = [make_batch(sequence) for sequence in range(1, 40)]
    assert push(web, frames(batches), content_encoding="zstd").json()["applied"] == 39
    assert total(store_engine) == sum(range(1, 40))


@pytest.mark.parametrize(("media", "content"), [
    ("application/msgpack", msgspec.msgpack.encode(make_batch(1))),
    ("application/json", b" " + msgspec.json.encode(make_batch(1))),
    ("application/x-ndjson", msgspec.json.encode(make_batch(1)) + b"\n\n"),
])  # fmt: skip
def test_a_single_batch_needs_no_list(lone_web: Web, media: str, content: bytes) -> None:
    assert push(lone_web, content, content_type=media).json()["applied"] == 1


def test_what_of_a_batch_cannot_be_is_counted_and_the_rest_stored(lone_web: Web) -> None:
    bad = Increment(metric="no.such", labels={}, time_ms=NOW, span_ms=1, value=1)
    item = push(lone_web, packed([make_batch(1, bad, bad)])).json()["batches"][0]
    assert (item["samples"], item["refused"]) == (1, {"unknown_metric": 2})


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (make_batch(0), "sequence 0 is not between"),
        (make_batch(3, collector=""), "collector_id '' is empty"),
        (make_batch(3, collector="a\x00b"), "collector_id"),
    ],
)
def test_a_batch_that_can_never_be_applied_is_named_and_those_before_are_stored(
    web: Web, store_engine: Engine, bad: Any, reason: str
) -> None:
    answer = push(web, packed([make_batch(1), make_batch(2), bad, make_batch(4)]))
    assert answer.status_code == 422
    problem = answer.json()
    assert problem["errors"][0]["location"] == "batches.2"
    assert reason in problem["errors"][0]["reason"]
    assert total(store_engine) == 3
    assert push(web, packed([make_batch(4)])).json()["applied"] == 1


def test_a_batch_of_another_shape_is_named(web: Web, store_engine: Engine) -> None:
    content = msgspec.msgpack.encode([make_batch(1), {"collector_id": "a"}, make_batch(2)])
    problem = push(web, content).json()
    assert problem["errors"][0]["location"] == "batches.1"
    assert "missing required field" in problem["detail"]
    assert total(store_engine) == 1


@pytest.mark.parametrize(
    ("content", "headers", "status", "words"),
    [
        (b"", {}, 422, "no list of batches"),
        (b"\xdd\x00\x00\x00\x00", {}, 422, "0 batches"),
        (packed([make_batch(1)])[:-1], {}, 422, "may have been cut"),
        (b"\xff" * 50, {}, 422, "batches.0"),
        (b"[" * 100_000, {"content_type": "application/json"}, 422, "no list of batches"),
        (b"\x91" * 100_000, {}, 422, "no list of batches"),
        (b"x", {"content_type": "text/plain"}, 415, "Content-Type 'text/plain'"),
        (b"x", {"content_encoding": "br"}, 415, "Content-Encoding 'br'"),
        (b"x", {"content_encoding": "zstd"}, 422, "not zstd"),
        (b"xyz" * 9, {"content_encoding": "gzip"}, 422, "not gzip"),
        (encoded(packed([make_batch(1)]), "gzip")[:-9], {"content_encoding": "gzip"}, 422, "too early"),
        (encoded(packed([make_batch(1)]), "zstd")[:-9], {"content_encoding": "zstd"}, 422, "cut"),
    ],
    ids=[
        "nothing",
        "no batches",
        "cut",
        "no batch",
        "deep json",
        "deep msgpack",
        "text",
        "br",
        "no zstd",
        "no gzip",
        "cut gzip",
        "cut zstd",
    ],
)
def test_bodies_that_cannot_be_read(
    lone_web: Web, content: bytes, headers: dict[str, str], status: int, words: str
) -> None:
    answer = push(lone_web, content, **headers)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert words in answer.json()["detail"]


@pytest.fixture
def small(sqlite_engine: Engine) -> Web:
    return Web(create_app(Settings(max_push_bytes=20_000), engine=sqlite_engine, clock=lambda: NOW))


@pytest.mark.parametrize("encoding", ["identity", "zstd", "gzip"])
def test_a_body_over_the_limit_is_refused(small: Web, encoding: str) -> None:
    long = Event(kind="n", time_ms=NOW, message="x" * 25_000)
    answer = push(small, encoded(packed([make_batch(1, long)]), encoding), content_encoding=encoding)
    assert answer.status_code == 413
    assert "max_push_bytes=20000" in answer.json()["detail"]


@pytest.mark.parametrize("encoding", ["zstd", "gzip"])
def test_a_bomb_is_harmless(small: Web, encoding: str) -> None:
    """A few KB of a body that would be 400 MB: it is given up soon after the limit."""
    bomb = encoded(b"\x00" * 4_000_000, encoding) * 100
    assert len(bomb) < 450_000
    assert push(small, bomb[:19_000], content_encoding=encoding).status_code == 413


def test_a_frame_that_needs_much_memory_is_refused(lone_web: Web) -> None:
    parameters = zstandard.ZstdCompressionParameters(window_log=27, enable_ldm=1)
    huge = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    content = huge.compress(packed([make_batch(1)])) + huge.flush()
    answer = push(lone_web, content, content_encoding="zstd")
    assert (answer.status_code, "not zstd" in answer.text) == (422, True)


def test_a_database_that_is_locked_is_said_with_when_to_come_again(
    sqlite_engine: Engine, sqlite_url: str
) -> None:
    web = Web(create_app(Settings(), engine=sqlite_engine, clock=lambda: NOW))
    assert push(web, packed([make_batch(1)])).status_code == 200
    with sqlite_engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA busy_timeout = 1")
    with sqlite3.connect(sqlite_url.removeprefix("sqlite:///"), isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        answer = push(web, packed([make_batch(2)]))
        other.execute("ROLLBACK")
    assert answer.status_code == 503
    assert int(answer.headers["retry-after"]) > 0
    assert push(web, packed([make_batch(2)])).json()["applied"] == 1


@pytest.mark.parametrize("kind", [OperationalError, InterfaceError, ProgrammingError, InternalError])
def test_a_database_that_is_away_is_said(
    lone_web: Web, monkeypatch: pytest.MonkeyPatch, kind: type[DBAPIError]
) -> None:
    def away(*_: Any) -> Any:
        raise kind("SELECT", {}, Exception("gone"))

    monkeypatch.setattr(IngestWriter, "apply_counted", away)
    answer = push(lone_web, packed([make_batch(1)]))
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")


def test_what_nobody_expected_names_the_batch_and_tells_nothing_else(
    lone_web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = IngestWriter.apply_counted

    def fail(self: IngestWriter, batch: Any) -> Any:
        if batch.sequence == 2:
            raise RuntimeError("secret reason")
        return real(self, batch)

    monkeypatch.setattr(IngestWriter, "apply_counted", fail)
    answer = push(lone_web, packed([make_batch(1), make_batch(2)]))
    assert answer.status_code == 500
    assert answer.json()["errors"][0]["location"] == "batches.1"
    assert "secret" not in answer.text


def test_only_so_many_bodies_are_held_at_once(lone_web: Web) -> None:
    ingest = lone_web.app.state.ingest
    ingest.places.held = receiving.AT_ONCE
    answer = push(lone_web, packed([make_batch(1)]))
    assert (answer.status_code, "retry-after" in answer.headers) == (503, True)
    ingest.places.held = 0
    assert push(lone_web, packed([make_batch(1)])).status_code == 200
    assert push(lone_web, b"", content_encoding="zstd").status_code == 422
    assert ingest.places.held == 0, "places are given back after errors too"


def test_a_body_that_trickles_is_given_up(lone_web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receiving, "READ_SECONDS", 0.01)

    async def trickle() -> Any:
        yield b"\x91"
        await asyncio.Event().wait()

    answer = push(lone_web, trickle())  # type: ignore[arg-type]
    assert answer.status_code == 408
    assert lone_web.app.state.ingest.places.held == 0


def test_a_collector_asks_how_far_it_got(web: Web) -> None:
    name = "watch:a b@http://gpu1:30000/ü#1"
    assert web.api("/ingest", collector_id=name) == {"collector_id": name, "sequence": 0}
    push(web, packed([make_batch(1, collector=name), make_batch(5, collector=name)]))
    assert web.api("/ingest", collector_id=name)["sequence"] == 5
    assert web.get("/api/v1/ingest").status_code == 422


def test_a_sender_in_the_engine_asks_for_its_launch(web: Web) -> None:
    def told(**config: Any) -> dict[str, Any]:
        nonlocal sequence
        sequence += 1
        launch = Launch(key=f"b{sequence}", time_ms=NOW + sequence, engine="sglang", config=config)
        batch = make_batch(sequence, collector="w", launch_key=launch.key)
        push(web, packed([msgspec.structs.replace(batch, observations=(launch,))]))
        return dict(web.api("/ingest/launch", server="gpu1:30000"))

    sequence = 0
    found = told(random_seed=402_731_112)
    assert (found["launch_key"], found["random_seed"]) == ("b1", 402_731_112)
    assert found["base_url"] == "http://gpu1:30000"
    assert told(random_seed="x" * 9)["random_seed"] is None
    assert told()["launch_key"] == "b3"
    assert web.get("/api/v1/ingest/launch", params={"server": "gpu1:3000"}).status_code == 404
    assert web.get("/api/v1/ingest/launch").status_code == 422


def test_two_collectors_of_one_server_are_told(store_engine: Engine) -> None:
    now = [NOW]
    web = Web(create_app(Settings(), engine=store_engine, clock=lambda: now[0]))
    mine, other, alike = "watch:a_x@http://a#1", "watch:a_x@http://a#2", "watch:aXx@http://a#3"

    def told(name: str, sequence: int) -> list[str]:
        return push(web, packed([make_batch(sequence, collector=name)])).json()["batches"][0][
            "also_collected_by"
        ]

    assert told(alike, 1) == []
    assert told(mine, 1) == []
    assert told("sglang_log:/var/log/a#1", 1) == []
    assert told("sglang_log:/var/log/a#2", 1) == [], "two hosts may have a log of the same name"
    assert told(other, 1) == [mine]
    assert told(mine, 2) == [], "looked up rarely"
    now[0] += 31_000
    assert told(mine, 3) == [other]
    now[0] += 61_000
    assert told(mine, 4) == [], "the other is gone"


def test_collectors_in_process_and_from_afar_share_one_sink(sqlite_engine: Engine) -> None:
    telemetry = Telemetry()
    sink = service.make_sink(sqlite_engine, telemetry, 7, lambda: NOW)
    web = Web(create_app(Settings(), engine=sqlite_engine, clock=lambda: NOW, telemetry=telemetry, sink=sink))
    assert sink.apply(make_batch(1))
    assert push(web, packed([make_batch(1), make_batch(2)])).json()["repeated"] == 1
    assert sink.resume("watch:a#1").sequence == 2
    shown = web.get("/metrics").text
    assert 'specscope_ingest_batches_total{outcome="applied"} 2.0' in shown
    assert 'specscope_ingest_batches_total{outcome="repeated"} 1.0' in shown


def test_who_pushes_cannot_fill_the_metrics_with_names(lone_web: Web) -> None:
    health = [
        SourceHealth(source=f"s{number}", time_ms=NOW, state="ok", url="u", duration_seconds=0.1)  # type: ignore[arg-type]
        for number in range(500)
    ]
    assert push(lone_web, packed([make_batch(1, *health)])).status_code == 200
    shown = lone_web.get("/metrics").text
    assert shown.count("specscope_scrapes_total{") == service.MOST_SOURCES + 1
    assert 'source="(other)"' in shown


def test_a_sender_that_goes_away_is_no_error_of_the_server(
    lone_web: Web, capsys: pytest.CaptureFixture[str]
) -> None:
    sent = [{"type": "http.request", "body": b"\x91", "more_body": True}, {"type": "http.disconnect"}]
    headers = [(b"host", b"127.0.0.1"), (b"content-type", b"application/msgpack")]
    scope = {
        "type": "http", "method": "POST", "path": "/api/v1/ingest", "raw_path": b"/api/v1/ingest",
        "query_string": b"", "headers": headers, "scheme": "http", "http_version": "1.1",
        "server": ("127.0.0.1", 80), "client": ("127.0.0.1", 1), "root_path": "",
    }  # fmt: skip
    answered: list[Any] = []

    async def receive() -> Any:
        return sent.pop(0) if sent else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        answered.append(message)

    asyncio.run(lone_web.app(scope, receive, send))
    assert answered[0]["status"] == 400
    assert "unexpected_error" not in capsys.readouterr().out
    assert lone_web.app.state.ingest.places.held == 0
