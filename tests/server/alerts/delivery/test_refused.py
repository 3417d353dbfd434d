"""What a receiver refuses for good holds up nothing else, is recorded, and is tried again ever less often."""

from __future__ import annotations

import json
import socket

from sqlalchemy import Engine
from tests.server.alerts.delivery.desk import Desk
from tests.support.cards import card, notification
from tests.support.receiver import Received, Receiver, Script, answering

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
