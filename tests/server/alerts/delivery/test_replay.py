"""Sending again what was sent: it stays told, and a fire that is over is not opened anew."""

from __future__ import annotations

import pytest
from sqlalchemy import update
from tests.server.alerts.delivery.desk import MINUTE, Desk
from tests.support.cards import card, notification
from tests.support.receiver import Receiver, answering

from specscope_server.alerts.delivery.asking import replay
from specscope_server.alerts.delivery.outbox import known_and_told
from specscope_server.kit.errors import InvalidInput
from specscope_server.models import Delivery
from specscope_server.store.engine import write_transaction


def told(desk: Desk, *ids: str) -> set[str]:
    with desk.engine.connect() as connection:
        return known_and_told(connection, "hook", list(ids))[1]


def test_what_was_told_stays_told_while_it_is_sent_again(any_desk: Desk, receiver: Receiver) -> None:
    number = any_desk.tell(notification())
    any_desk.deliver()
    replay(any_desk.engine, number, any_desk.now_ms, "ann")
    assert told(any_desk, "a1") == {"a1"}
    receiver.script = answering(404)
    any_desk.deliver()
    assert any_desk.rows(id=number)[0].status == "failed"
    assert told(any_desk, "a1") == {"a1"}
    receiver.script = answering(200)
    end = any_desk.tell(notification(card(status="resolved")))
    any_desk.until_quiet()
    assert any_desk.rows(id=end)[0].status == "sent"


def test_what_is_sent_again_keeps_its_content_whatever_waits_behind_it(
    desk: Desk, receiver: Receiver
) -> None:
    number = desk.tell(notification(card(1), card(2)))
    desk.deliver()
    body = receiver.received[0].body
    desk.now_ms += MINUTE
    replay(desk.engine, number, desk.now_ms, "ann")
    desk.tell(notification(card(2, "resolved"), card(1), cause="changed"))
    desk.until_quiet()
    assert [row.status for row in desk.rows()] == ["sent", "sent"]
    assert receiver.received[1].body == body


def test_a_fire_that_is_over_is_not_sent_again(any_desk: Desk, receiver: Receiver) -> None:
    number = any_desk.tell(notification(card(1), card(2)))
    any_desk.deliver()
    end = any_desk.tell(notification(card(status="resolved")))
    with pytest.raises(InvalidInput, match=r"1 alert that is over.*a1"):
        replay(any_desk.engine, number, any_desk.now_ms, "ann")
    any_desk.deliver()
    with pytest.raises(InvalidInput, match=r"1 alert that is over.*a1"):
        replay(any_desk.engine, number, any_desk.now_ms, "ann")
    replay(any_desk.engine, end, any_desk.now_ms, "ann")
    any_desk.deliver()
    assert len(receiver.received) == 3


def test_an_end_can_be_sent_again_after_its_fire_was_forgotten(desk: Desk, receiver: Receiver) -> None:
    fire = desk.tell(notification())
    desk.deliver()
    end = desk.tell(notification(card(status="resolved")))
    desk.deliver()
    with write_transaction(desk.engine) as connection:
        connection.execute(update(Delivery).where(Delivery.id == fire).values(status="failed"))
    replay(desk.engine, end, desk.now_ms, "ann")
    assert desk.deliver() == 1
