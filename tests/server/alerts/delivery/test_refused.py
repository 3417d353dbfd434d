"""What a receiver refuses for good holds up nothing else, is recorded, and is tried again ever less often."""

from __future__ import annotations

import json
import socket
from dataclasses import dataclass

import pytest
from sqlalchemy import Engine
from tests.server.alerts.delivery.desk import Desk
from tests.server.alerts.far_side import FarSide, stand_in
from tests.server.alerts.standin import GPU1, GPU2, T0, World, a_reading, everything_ok
from tests.support.cards import card, notification
from tests.support.receiver import Received, Receiver, Script, answering

from specscope_server.alerts.pipeline.group import Route
from specscope_server.alerts.pipeline.notifying import Routing
from specscope_server.alerts.rules.reading import Reading

KEY = "a" * 32


def refusing(word: str, status: int = 400) -> Script:
    """Return a script that refuses every body with this word."""

    def script(connection: socket.socket, request: Received) -> None:
        answering(status if word.encode() in request.body else 202)(connection, request)

    return script


def pager(engine: Engine, receiver: Receiver) -> Desk:
    desk = Desk(engine)
    desk.channels({"name": "hook", "kind": "pagerduty", "routing_key": KEY, "url": receiver.url})
    return desk


def events(receiver: Receiver) -> list[tuple[str, str]]:
    bodies = [json.loads(request.body) for request in receiver.received]
    return [(body["dedup_key"], body["event_action"]) for body in bodies]


def test_an_event_that_is_refused_holds_up_no_other(store_engine: Engine, receiver: Receiver) -> None:
    desk = pager(store_engine, receiver)
    receiver.script = refusing('"a2"')
    desk.tell(notification(card(1), card(2), card(3)))
    desk.until_quiet()
    assert [(row.status, row.attempts) for row in desk.rows()] == [("sent", 1), ("failed", 1), ("sent", 1)]
    assert "HTTP 400" in desk.rows(status="failed")[0].reason
    receiver.received.clear()
    desk.tell(notification(*(card(number, "resolved") for number in (1, 2, 3))))
    desk.until_quiet()
    assert events(receiver) == [("a1", "resolve"), ("a3", "resolve")]


def test_a_fire_that_was_taken_is_told_although_its_acknowledgement_is_refused(
    sqlite_engine: Engine, receiver: Receiver
) -> None:
    desk = pager(sqlite_engine, receiver)
    receiver.script = refusing("acknowledge")
    desk.tell(notification(card(acked_by="ann")))
    desk.deliver()
    (row,) = desk.rows()
    assert (row.status, row.reason[:22]) == ("sent", "taken but for a part: ")
    assert "HTTP 400" in row.reason


@dataclass
class Watch:
    """A world whose only channel leads to a far side, step by step with the time between."""

    world: World
    desk: Desk
    far_side: FarSide

    def step(self, *found: Reading, seconds: float = 15) -> None:
        """Evaluate, decide and deliver, once."""
        self.world.tick(*found, seconds=seconds)
        self.desk.now_ms = self.world.now_ms
        while self.desk.deliver():
            pass

    def ids(self) -> list[str]:
        """Return the ids under which it was tried."""
        return [row.webhook_id for row in self.desk.rows() if row.attempts]


@pytest.fixture
def watch(store_engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Watch:
    desk = Desk(store_engine, now_ms=T0)
    desk.channels({"name": "oncall", "kind": "webhook", "url": "https://hook.example/x"})
    route = Route.model_validate({"group_wait": "30s", "group_interval": "30s", "group_by": []})
    world = World(store_engine, routing=Routing([route]))
    far_side = FarSide(desk.clock)
    stand_in(monkeypatch, far_side)
    return Watch(world, desk, far_side)


def test_a_channel_that_refuses_all_is_tried_ever_less_often_and_told_when_it_works(watch: Watch) -> None:
    watch.far_side.answers = lambda _: 404
    for _ in range(120):
        watch.step(a_reading(), seconds=30)
    assert 6 <= len(watch.ids()) <= 10, "an hour at every 45 s would be 80"
    breaker = json.loads(watch.desk.channel("oncall").breaker)
    assert breaker["told_ms"] is not None, "the other channels know, and the page says so"
    assert breaker["failures"] >= 5
    watch.far_side.answers = lambda _: 200
    for _ in range(70):
        watch.step(a_reading(), seconds=30)
    assert watch.far_side.all() == [("gpu1", "firing")]
    watch.step(*everything_ok(GPU1), seconds=30)
    watch.step(*everything_ok(GPU1), seconds=30)
    assert watch.far_side.all() == [("gpu1", "firing"), ("gpu1", "resolved")]


def test_a_channel_that_was_changed_is_tried_at_once(watch: Watch) -> None:
    watch.far_side.answers = lambda _: 404
    for _ in range(100):
        watch.step(a_reading())
    watch.far_side.answers = lambda _: 200
    watch.desk.channels({"name": "oncall", "kind": "webhook", "url": "https://hook.example/right"})
    for _ in range(4):
        watch.step(a_reading())
    assert watch.far_side.all() == [("gpu1", "firing")]


def test_an_alert_that_is_refused_keeps_none_of_its_message_from_being_told(watch: Watch) -> None:
    watch.far_side.answers = lambda seen: 422 if ("gpu2", "firing") in seen else 200
    for _ in range(40):
        watch.step(a_reading(), a_reading(labels=GPU2), a_reading(labels={"server": "gpu3"}))
    assert sorted(watch.far_side.all()) == [("gpu1", "firing"), ("gpu3", "firing")]
    tries = len(watch.ids())
    for _ in range(40):
        watch.step(a_reading(), a_reading(labels=GPU2), a_reading(labels={"server": "gpu3"}))
    assert len(watch.ids()) - tries <= 2
    for _ in range(20):
        watch.step(*everything_ok(GPU1, GPU2, {"server": "gpu3"}))
    assert ("gpu2", "resolved") not in watch.far_side.all()


def test_the_end_of_what_was_told_is_told_although_it_was_refused_at_first(watch: Watch) -> None:
    for _ in range(3):
        watch.step(a_reading())
    watch.far_side.answers = lambda _: 403
    for _ in range(10):
        watch.step(*everything_ok(GPU1))
    assert watch.desk.rows()[-1].status == "failed"
    watch.far_side.answers = lambda _: 200
    for _ in range(20):
        watch.step(*everything_ok(GPU1))
    assert watch.far_side.all() == [("gpu1", "firing"), ("gpu1", "resolved")]
    for _ in range(20):
        watch.step(*everything_ok(GPU1), seconds=600)
    assert len(watch.far_side.all()) == 2
