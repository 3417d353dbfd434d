"""Who is to be told that nobody is told: health, metrics and pages when delivery fails."""

from __future__ import annotations

import threading

import orjson
import pytest
from sqlalchemy import Engine, update
from tests.server.alerts.delivery.test_delivering import wait_for
from tests.server.alerts.standin import T0, add_channel
from tests.server.alerts.test_running import Process
from tests.support.cards import notification

from specscope_server.alerts import running
from specscope_server.alerts.delivery.delivering import Deliverer
from specscope_server.alerts.delivery.options import DeliveryOptions
from specscope_server.alerts.delivery.outbox import enqueue
from specscope_server.alerts.health import threads_trouble
from specscope_server.models import Channel
from specscope_server.store.engine import write_transaction

DAY_MS = 86_400_000


def test_a_turn_that_ends_in_an_error_ends_no_thread() -> None:
    turns: list[int] = []
    stopped = threading.Event()

    def turn() -> None:
        turns.append(1)
        if len(turns) < 3:
            raise RuntimeError("can't start new thread")

    loop = running._Loop("delivery", turn, 0.001, 0.02, stopped)
    assert loop.trouble is None
    loop.start()
    wait_for(lambda: len(turns) >= 4)
    assert loop.trouble == ""
    stopped.set()
    loop.join(10)
    assert threads_trouble({"delivery": loop.trouble}) == (
        "the thread 'delivery' has ended; restart the server; see the log"
    )
    assert threads_trouble({"delivery": "RuntimeError"}) == "delivery fails: RuntimeError; see the log"
    assert threads_trouble({"delivery": "", "alerts": ""}) == ""


def test_a_channel_is_free_again_when_no_thread_can_be_started(
    sqlite_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_channel(sqlite_engine)
    with write_transaction(sqlite_engine) as connection:
        enqueue(connection, "oncall", notification(), T0)
    deliverer = Deliverer(sqlite_engine, "w", lambda: T0, DeliveryOptions())
    submitted: list[str] = []

    def refuse(_turn: object, name: str) -> None:
        submitted.append(name)
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(deliverer._pool, "submit", refuse)
    for _ in range(2):
        with pytest.raises(RuntimeError):
            deliverer.tick()
    assert submitted == ["oncall", "oncall"]
    deliverer.stop()


def test_a_breaker_that_cannot_be_read_holds_up_nothing(sqlite_engine: Engine) -> None:
    add_channel(sqlite_engine, breaker='{"state":"weird"}')
    with write_transaction(sqlite_engine) as connection:
        enqueue(connection, "oncall", notification(), T0)
    deliverer = Deliverer(sqlite_engine, "w", lambda: T0, DeliveryOptions())
    deliverer.tick()
    deliverer.stop()
    assert deliverer.failing == {}


def test_a_channel_that_fails_is_told_where_people_look(sqlite_engine: Engine) -> None:
    process = Process(sqlite_engine)
    opened = {"state": "open", "failures": 9, "until_ms": T0 + 60_000, "opened_ms": T0}
    breaker = orjson.dumps(opened).decode()
    add_channel(sqlite_engine, origin="api", breaker=breaker)
    process.turn()
    answer = process.web.get("/readyz")
    assert answer.status_code == 200, "a restart would not mend it"
    told = answer.json()["checks"]["alerts"]
    assert told.startswith("degraded: alerts do not get through to 1 channel, since 2026-09-21T")
    assert "oncall" not in told, "it is told without a token"
    assert process.metric("specscope_alerts_channels_failing") == 1
    for path in ("/alerts", "/"):
        text = process.web.get(path).text
        assert "Alerts do not get through" in text
        assert "oncall" in text
    with write_transaction(sqlite_engine) as connection:
        connection.execute(update(Channel).values(breaker="{}"))
    assert process.web.get("/readyz").json()["checks"]["alerts"] == "ok"
    assert process.metric("specscope_alerts_channels_failing") == 0
    assert "Alerts do not get through" not in process.web.get("/alerts").text


def test_what_is_due_and_waits_is_told(sqlite_engine: Engine) -> None:
    process = Process(sqlite_engine)
    add_channel(sqlite_engine, origin="api")
    with write_transaction(sqlite_engine) as connection:
        enqueue(connection, "oncall", notification(), process.now_ms, lifetime_ms=DAY_MS)
    process.turn(seconds=9 * 60)
    assert process.web.get("/readyz").json()["checks"]["alerts"] == "ok"
    process.turn(seconds=5 * 60)
    told = process.web.get("/readyz").json()["checks"]["alerts"]
    assert told == "degraded: the oldest notification that is due waits for 14 minutes"
