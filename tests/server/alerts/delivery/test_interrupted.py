"""What waits while its channel is away, or the clock is set back: told later, ended, but never in the way."""

from __future__ import annotations

import json

from sqlalchemy import update
from tests.server.alerts.delivery.desk import HOUR, MINUTE, Desk
from tests.support.cards import NOW_MS, card, notification
from tests.support.receiver import Receiver, answering

from specscope_server.alerts.delivery.claiming import claim
from specscope_server.models import Channel, Delivery
from specscope_server.store.engine import write_transaction


def test_what_waits_for_a_channel_that_was_removed_ends(desk: Desk, receiver: Receiver) -> None:
    desk.tell(notification())
    desk.channels()
    desk.deliver()
    (row,) = desk.rows()
    assert (row.status, row.reason) == ("collapsed", "its channel was removed")


def test_a_channel_that_is_off_keeps_what_waits(desk: Desk, receiver: Receiver) -> None:
    with write_transaction(desk.engine) as connection:
        connection.execute(update(Channel).values(enabled=False))
    desk.tell(notification())
    assert desk.deliver() == 0
    with write_transaction(desk.engine) as connection:
        connection.execute(update(Channel).values(enabled=True))
    assert desk.deliver() == 1


def test_a_notification_that_cannot_be_read_is_ended_and_blocks_nobody(
    desk: Desk, receiver: Receiver
) -> None:
    number = desk.tell(notification())
    with write_transaction(desk.engine) as connection:
        connection.execute(update(Delivery).where(Delivery.id == number).values(notification="{}"))
    desk.tell(notification(card(2)))
    desk.until_quiet()
    assert [row.status for row in desk.rows()] == ["failed", "sent"]


def test_a_clock_that_ran_ahead_and_was_set_back_silences_nobody(desk: Desk, receiver: Receiver) -> None:
    desk.now_ms = NOW_MS + 24 * HOUR
    receiver.script = answering(503)
    first = desk.tell(notification())
    for _ in range(6):  # until the breaker opens
        desk.deliver()
        desk.now_ms += 10 * MINUTE
    assert json.loads(desk.channel().breaker)["state"] == "open"
    desk.now_ms, receiver.script = NOW_MS, Receiver().script
    second = desk.tell(notification())
    desk.deliver()
    desk.deliver()
    assert {row.id: row.status for row in desk.rows()} == {first: "collapsed", second: "sent"}
    assert len(receiver.received) == len(desk.attempts(first)) + 1


def test_a_claim_from_before_the_clock_was_set_back_is_taken_back(desk: Desk, receiver: Receiver) -> None:
    desk.now_ms = NOW_MS + 24 * HOUR
    number = desk.tell(notification())
    assert claim(desk.engine, "hook", "gone", desk.now_ms, desk.options) is not None
    desk.now_ms = NOW_MS
    assert desk.deliver() == 1
    assert [row.status for row in desk.rows(id=number)] == ["sent"]
