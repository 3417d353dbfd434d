"""What is left when a process stops, or ended before it could say what came of it."""

from __future__ import annotations

import socket
import threading

from tests.server.alerts.delivery.desk import HOUR, Desk
from tests.server.alerts.delivery.test_delivering import wait_for
from tests.support.cards import notification
from tests.support.receiver import Received, Receiver, answering

from specscope_server.alerts.channels.stored import drop, find
from specscope_server.alerts.delivery.claiming import claim
from specscope_server.alerts.delivery.delivering import Deliverer
from specscope_server.store.engine import write_transaction


def test_nothing_is_begun_after_a_stop(desk: Desk, receiver: Receiver) -> None:
    seen, released = threading.Event(), threading.Event()

    def held(connection: socket.socket, received: Received) -> None:
        seen.set()
        released.wait(10)
        answering(200)(connection, received)

    receiver.script = held
    for key in "abc":
        desk.tell(notification(group_key=key))
    deliverer = Deliverer(desk.engine, "w1", desk.clock, desk.options)
    deliverer.tick()
    assert seen.wait(10)
    stopping = threading.Thread(target=deliverer.stop)
    stopping.start()
    wait_for(lambda: deliverer.is_stopped)
    released.set()
    stopping.join(10)
    deliverer.tick()
    assert len(receiver.received) == 1
    assert sorted(row.status for row in desk.rows())[:2] == ["pending", "pending"]


def test_what_a_dead_process_claimed_for_a_removed_channel_ends(any_desk: Desk) -> None:
    number = any_desk.tell(notification())
    assert claim(any_desk.engine, "hook", "dead", any_desk.now_ms, any_desk.options) is not None
    with write_transaction(any_desk.engine) as connection:
        drop(connection, find(connection, "hook", to_change=True), "by ana", any_desk.now_ms)
    any_desk.deliver()
    assert any_desk.rows()[0].status == "claimed", "it may run still"
    any_desk.now_ms += HOUR
    any_desk.deliver()
    [row] = any_desk.rows()
    assert (row.status, row.reason, row.claimed_by) == ("failed", "its channel was removed", None)
    assert [attempt.outcome for attempt in any_desk.attempts(number)] == ["unknown"]
