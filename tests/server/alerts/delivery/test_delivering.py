"""The outbox against receivers that fail in every way: nothing lost, nothing told twice under another id."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from itertools import pairwise

import pytest
from sqlalchemy import Engine
from tests.server.alerts.delivery.desk import HOUR, MINUTE, SECOND, Desk
from tests.support.cards import NOW_MS, card, notification
from tests.support.receiver import Receiver, answering, dying

from specscope_server.alerts.auditing import list_audit
from specscope_server.alerts.delivery.asking import replay, try_channel
from specscope_server.alerts.delivery.claiming import claim
from specscope_server.alerts.delivery.delivering import Deliverer, attempt_claimed
from specscope_server.alerts.delivery.options import DeliveryOptions
from specscope_server.kit.errors import InvalidInput


def ids(receiver: Receiver) -> list[str]:
    return [request.headers["webhook-id"] for request in receiver.received]


def told(receiver: Receiver) -> list[list[tuple[str, str]]]:
    bodies = [json.loads(request.body)["data"]["alerts"] for request in receiver.received]
    return [[(alert["alert_id"], alert["status"]) for alert in body] for body in bodies]


def test_what_is_due_is_delivered_once(any_desk: Desk, receiver: Receiver) -> None:
    number = any_desk.tell(notification())
    assert (any_desk.deliver(), any_desk.deliver()) == (1, 0)
    (row,) = any_desk.rows()
    assert (row.status, row.attempts, row.claimed_by) == ("sent", 1, None)
    (tried,) = any_desk.attempts(number)
    assert (tried.outcome, tried.status_code) == ("delivered", 200)
    assert ids(receiver) == [row.webhook_id]


def test_a_receiver_that_is_down_for_hours_gets_it_when_it_is_back(
    any_desk: Desk, receiver: Receiver
) -> None:
    receiver.script = answering(503)
    number = any_desk.tell(notification())
    any_desk.until_quiet(3 * HOUR)
    (row,) = any_desk.rows(id=number)
    assert row.status == "pending"
    receiver.script = answering(200)
    any_desk.until_quiet(HOUR)
    assert any_desk.rows(id=number)[0].status == "sent"
    assert len(set(ids(receiver))) == 1  # one id over all attempts
    times = [each.at_ms for each in any_desk.attempts(number)]
    waits = [later - earlier for earlier, later in pairwise(times)]
    assert waits[-1] > 5 * MINUTE > waits[0]
    assert len(waits) < 40


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_what_may_pass_is_tried_again(desk: Desk, receiver: Receiver, status: int) -> None:
    receiver.script = answering(status)
    number = desk.tell(notification())
    desk.deliver()
    assert desk.rows(id=number)[0].status == "pending"


@pytest.mark.parametrize("status", [301, 302, 307, 308, 400, 401, 403, 404, 422, 501])
def test_what_will_not_pass_is_given_up_and_said(desk: Desk, receiver: Receiver, status: int) -> None:
    receiver.script = answering(status)
    number = desk.tell(notification())
    desk.deliver()
    (row,) = desk.rows(id=number)
    assert row.status == "failed"
    assert f"HTTP {status}" in row.reason


def test_410_turns_the_channel_off(any_desk: Desk, receiver: Receiver) -> None:
    receiver.script = answering(410)
    any_desk.tell(notification())
    any_desk.tell(notification(card(2), group_key="other"))
    any_desk.deliver()
    row = any_desk.channel()
    assert not row.enabled
    assert "410" in row.disabled_reason
    assert receiver.connections == 1
    assert [each.status for each in any_desk.rows()] == ["failed", "pending"]
    with any_desk.engine.connect() as connection:
        newest = list_audit(connection, "channel", "hook", 10, None).entries[0]
    assert (newest.actor, newest.action) == ("specscope", "channel.disable")
    assert "410" in newest.after["disabled_reason"]


@pytest.mark.parametrize(
    ("header", "least_ms"), [("120", 120_000), ("Sun, 01 Mar 2026 12:10:00 GMT", 600_000), ("soon", 1)]
)
def test_retry_after_is_respected(desk: Desk, receiver: Receiver, header: str, least_ms: int) -> None:
    receiver.script = answering(429, f"Retry-After: {header}\r\n")
    number = desk.tell(notification())
    desk.deliver()
    wait_ms = desk.rows(id=number)[0].next_attempt_ms - NOW_MS
    assert least_ms <= wait_ms <= least_ms * 1.2 + 10_000


def test_one_who_takes_it_and_dies_gets_it_again_under_the_same_id(
    any_desk: Desk, receiver: Receiver
) -> None:
    receiver.script = dying
    number = any_desk.tell(notification())
    any_desk.deliver()
    receiver.script = answering(200)
    any_desk.until_quiet()
    assert [each.outcome for each in any_desk.attempts(number)] == ["unknown", "delivered"]
    assert len(ids(receiver)) == 2
    assert len(set(ids(receiver))) == 1


def test_a_process_that_dies_after_sending_repeats_only_under_the_same_id(
    any_desk: Desk, receiver: Receiver
) -> None:
    number = any_desk.tell(notification())
    dead = claim(any_desk.engine, "hook", "dead", any_desk.now_ms, any_desk.options)
    assert dead is not None
    assert any_desk.deliver("alive") == 0  # it is being sent
    any_desk.now_ms += 5 * MINUTE
    assert any_desk.deliver("alive") == 1
    assert [each.outcome for each in any_desk.attempts(number)] == ["unknown", "delivered"]
    # The dead one wakes up: what it says about a claim that is no longer its own changes nothing.
    attempt_claimed(any_desk.engine, dead, any_desk.clock, any_desk.options)
    assert any_desk.rows(id=number)[0].status == "sent"
    assert len(set(ids(receiver))) == 1


def test_many_processes_deliver_each_once(any_desk: Desk, receiver: Receiver) -> None:
    for number in range(24):
        any_desk.tell(notification(card(number), group_key=f"g{number}"))
    workers = [threading.Thread(target=any_desk.deliver, args=(f"w{number}",)) for number in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert {row.status for row in any_desk.rows()} == {"sent"}
    assert len(ids(receiver)) == len(set(ids(receiver))) == 24


def test_a_resolve_never_overtakes_its_fire(desk: Desk, receiver: Receiver) -> None:
    receiver.script = dying  # it may have the fire: both must be told, in order
    desk.tell(notification(card()))
    desk.deliver()
    desk.tell(notification(card(status="resolved")))
    receiver.script = answering(200)
    desk.until_quiet()
    assert told(receiver)[1:] == [[("a1", "firing")], [("a1", "resolved")]]


def test_a_fire_that_was_over_before_anybody_could_be_told_is_not_told(
    desk: Desk, receiver: Receiver
) -> None:
    receiver.script = answering(503)
    desk.tell(notification(card()))
    desk.deliver()
    desk.tell(notification(card(status="resolved")))
    receiver.script = answering(200)
    desk.until_quiet()
    assert [row.status for row in desk.rows()] == ["collapsed", "collapsed"]
    assert len(receiver.received) == 1


def test_what_waits_of_a_group_is_joined_into_the_newest(desk: Desk, receiver: Receiver) -> None:
    receiver.script = answering(503)
    desk.tell(notification(card(1), card(2)))
    desk.deliver()
    desk.tell(notification(card(2, "resolved"), card(1), cause="changed"))
    desk.tell(notification(card(1), card(3), cause="changed"))
    receiver.script = answering(200)
    desk.until_quiet()
    assert [row.status for row in desk.rows()] == ["collapsed", "collapsed", "sent"]
    assert told(receiver)[1:] == [[("a1", "firing"), ("a3", "firing")]]


def test_an_end_whose_fire_was_refused_is_not_sent(desk: Desk, receiver: Receiver) -> None:
    receiver.script = answering(400)
    desk.tell(notification(card()))
    desk.deliver()
    receiver.script = answering(200)
    desk.tell(notification(card(status="resolved")))
    desk.until_quiet()
    assert [row.status for row in desk.rows()] == ["failed", "collapsed"]


def test_ends_are_not_told_to_a_channel_that_wants_none(desk: Desk, receiver: Receiver) -> None:
    desk.channels({"name": "hook", "kind": "webhook", "url": receiver.url, "send_resolved": False})
    desk.tell(notification(card()))
    desk.tell(notification(card(status="resolved")))
    desk.until_quiet()
    assert told(receiver) == [[("a1", "firing")]]
    assert "send_resolved" in desk.rows()[1].reason


def test_what_is_too_old_is_given_up_and_the_log_says_so(desk: Desk, receiver: Receiver) -> None:
    receiver.script = answering(500)
    desk.tell(notification(), lifetime_ms=2 * HOUR)
    desk.until_quiet()
    (row,) = desk.rows()
    assert row.status == "expired"
    assert row.finished_ms is not None
    assert 1 * HOUR < row.finished_ms - row.created_ms <= 3 * HOUR


def test_the_breaker_spares_a_receiver_that_is_down(desk: Desk, receiver: Receiver) -> None:
    receiver.script = answering(500)
    for number in range(40):
        desk.tell(notification(card(number), group_key=f"g{number}"))
    desk.deliver()
    assert len(receiver.received) == 5  # then it is open
    desk.now_ms += 61 * SECOND
    desk.deliver()
    assert len(receiver.received) == 6  # half-open: one
    receiver.script = answering(200)
    desk.until_quiet()
    assert {row.status for row in desk.rows(channel="hook")} == {"sent"}


def test_no_more_in_a_minute_than_allowed(any_desk: Desk, receiver: Receiver) -> None:
    any_desk.channels({"name": "hook", "kind": "webhook", "url": receiver.url, "per_minute": 3})
    for number in range(8):
        any_desk.tell(notification(card(number), group_key=f"g{number}"))
    any_desk.deliver()
    assert len(receiver.received) == 3
    any_desk.now_ms += 61 * SECOND
    any_desk.deliver()
    assert len(receiver.received) == 6


def test_other_channels_are_told_once_that_one_fails_and_once_that_it_is_over(
    desk: Desk, receiver: Receiver
) -> None:
    with Receiver(answering(500)).running() as broken:
        desk.channels(
            {"name": "hook", "kind": "webhook", "url": receiver.url},
            {"name": "broken", "kind": "webhook", "url": broken.url},
        )
        desk.tell(notification(), "broken")
        desk.until_quiet(2 * HOUR)
        assert len(receiver.received) == 1
        broken.script = answering(200)
        desk.until_quiet(2 * HOUR)
    causes = [json.loads(request.body)["data"] for request in receiver.received]
    assert [(each["cause"], each["status"]) for each in causes] == [
        ("channel", "firing"),
        ("channel", "resolved"),
    ]
    assert causes[0]["alerts"][0]["alert_id"] == causes[1]["alerts"][0]["alert_id"]
    assert "HTTP 500" in causes[0]["alerts"][0]["reason"]


def test_a_slow_receiver_holds_up_nobody_else(desk: Desk, receiver: Receiver) -> None:
    released = threading.Event()
    with Receiver(lambda *_: released.wait(5) and None).running() as slow:
        desk.channels(
            {"name": "hook", "kind": "webhook", "url": receiver.url},
            {"name": "slow", "kind": "webhook", "url": slow.url},
        )
        desk.tell(notification(), "slow")
        desk.tell(notification(), "hook")
        deliverer = Deliverer(desk.engine, "w1", desk.clock, desk.options)
        deliverer.tick()
        wait_for(lambda: bool(desk.rows(channel="hook", status="sent")))
        wait_for(lambda: bool(desk.rows(channel="slow", status="claimed")))  # on a busy machine a bit later
        released.set()
        deliverer.stop()
    assert desk.rows(channel="slow")[0].status == "pending"


def wait_for(condition: Callable[[], bool], seconds: float = 60) -> None:
    deadline = threading.Event()
    for _ in range(round(seconds / 0.02)):
        if condition():
            return
        deadline.wait(0.02)  # a real thread and a real socket
    raise AssertionError("it did not happen in time")


def test_replay_sends_it_again_with_its_old_id(any_desk: Desk, receiver: Receiver) -> None:
    receiver.script = answering(404)
    number = any_desk.tell(notification())
    any_desk.deliver()
    receiver.script = answering(200)
    replay(any_desk.engine, number, any_desk.now_ms, "ann")
    with pytest.raises(InvalidInput, match="being sent anyway"):
        replay(any_desk.engine, number, any_desk.now_ms, "ann")
    any_desk.deliver()
    assert any_desk.rows(id=number)[0].status == "sent"
    assert len(set(ids(receiver))) == 1


def test_the_test_button_tries_once(any_desk: Desk, receiver: Receiver) -> None:
    assert (
        try_channel(any_desk.engine, "hook", "api", any_desk.clock, any_desk.options).outcome == "delivered"
    )
    receiver.script = answering(500)
    tried = try_channel(any_desk.engine, "hook", "api", any_desk.clock, any_desk.options)
    assert (tried.outcome, tried.status_code, tried.reason) == ("retry", 500, "HTTP 500")
    assert [row.status for row in any_desk.rows()] == ["sent", "failed"]
    assert json.loads(receiver.received[0].body)["type"] == "specscope.alert.test"


def test_a_secret_that_is_not_there_is_tried_again_and_said(
    desk: Desk, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOK_TOKEN", "Bearer t0ken")
    headers = {"Authorization": "${env:HOOK_TOKEN}"}
    desk.channels({"name": "hook", "kind": "webhook", "url": receiver.url, "headers": headers})
    monkeypatch.delenv("HOOK_TOKEN")
    number = desk.tell(notification())
    desk.deliver()
    (row,) = desk.rows(id=number)
    assert row.status == "pending"
    assert "HOOK_TOKEN is not set" in row.reason
    monkeypatch.setenv("HOOK_TOKEN", "Bearer t0ken")
    desk.until_quiet()
    assert receiver.received[0].headers["authorization"] == "Bearer t0ken"


def test_a_picture_that_cannot_be_made_holds_nothing_up(sqlite_engine: Engine, receiver: Receiver) -> None:
    def broken(_figure: object) -> bytes:
        raise RuntimeError("no browser")

    desk = Desk(sqlite_engine, options=DeliveryOptions(pictures=broken))
    desk.channels({"name": "hook", "kind": "discord", "url": receiver.url})
    desk.tell(notification())
    desk.deliver()
    assert desk.rows()[0].status == "sent"
