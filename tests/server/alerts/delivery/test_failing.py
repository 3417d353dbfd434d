"""That a channel fails is told to the others once, and its end to those that heard of it, however it ends."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest
from sqlalchemy import Engine
from tests.server.alerts.delivery.desk import HOUR, Desk
from tests.support.cards import card, notification
from tests.support.receiver import Receiver, answering

from specscope_server.alerts.channels import stored
from specscope_server.alerts.channels.opening import Vault
from specscope_server.alerts.channels.stored import Author, Wanted
from specscope_server.alerts.delivery.asking import try_channel
from specscope_server.alerts.delivery.options import DeliveryOptions
from specscope_server.store.engine import write_transaction


@dataclass
class Pair:
    """A channel whose receiver works, and one that refuses what it gets."""

    desk: Desk
    well: Receiver
    broken: Receiver
    count: int = field(default=0)

    def make(self, *, by_rest: bool = False) -> None:
        """Store both: the broken one by the file, or by REST."""
        others = [] if by_rest else [{"name": "broken", "kind": "webhook", "url": self.broken.url}]
        self.desk.channels({"name": "hook", "kind": "webhook", "url": self.well.url}, *others)
        if by_rest:
            with write_transaction(self.desk.engine) as connection:
                stored.create(connection, self.wanted(), self.author, self.vault)

    @property
    def author(self) -> Author:
        return Author("ann", self.desk.now_ms)

    @property
    def vault(self) -> Vault:
        return self.desk.options.vault

    def wanted(self, *, enabled: bool = True) -> Wanted:
        settings = {"url": self.broken.url, "allow_private": True, "timeout_seconds": 2}
        return Wanted("broken", "webhook", settings, enabled)

    def tell_broken(self) -> None:
        """Tell the broken channel something new, and deliver what is due."""
        self.count += 1
        self.desk.tell(notification(card(self.count), group_key=f"g{self.count}"), "broken")
        self.desk.until_quiet(HOUR)

    def heard(self) -> list[tuple[str, str]]:
        """Return what the well one heard of the broken one: (alert, status)."""
        bodies = [json.loads(request.body)["data"] for request in self.well.received]
        alerts = [body["alerts"][0] for body in bodies if body["cause"] == "channel"]
        assert len({alert["alert_id"] for alert in alerts}) <= 1
        return [(alert["status"], alert["reason"]) for alert in alerts]


@pytest.fixture
def pair(sqlite_engine: Engine, receiver: Receiver) -> Iterator[Pair]:
    options = DeliveryOptions(vault=Vault(api_may_allow_private=True))
    with Receiver(answering(404)).running() as broken:
        yield Pair(Desk(sqlite_engine, options=options), receiver, broken)


def change(pair: Pair) -> None:
    with write_transaction(pair.desk.engine) as connection:
        stored.change(connection, pair.wanted(), pair.author, pair.vault)


def enable(pair: Pair) -> None:
    with write_transaction(pair.desk.engine) as connection:
        stored.switch(connection, "broken", True, pair.author)


def change_file(pair: Pair) -> None:
    pair.desk.channels(
        {"name": "hook", "kind": "webhook", "url": pair.well.url},
        {"name": "broken", "kind": "webhook", "url": pair.broken.url, "per_minute": 7},
    )


def disable(pair: Pair) -> None:
    with write_transaction(pair.desk.engine) as connection:
        stored.switch(connection, "broken", False, pair.author)


def change_to_off(pair: Pair) -> None:
    with write_transaction(pair.desk.engine) as connection:
        stored.change(connection, pair.wanted(enabled=False), pair.author, pair.vault)


def remove(pair: Pair) -> None:
    with write_transaction(pair.desk.engine) as connection:
        stored.remove(connection, "broken", pair.author)


def remove_from_file(pair: Pair) -> None:
    pair.desk.channels({"name": "hook", "kind": "webhook", "url": pair.well.url})


def switch_off_in_file(pair: Pair) -> None:
    pair.desk.channels(
        {"name": "hook", "kind": "webhook", "url": pair.well.url},
        {"name": "broken", "kind": "webhook", "url": pair.broken.url, "enabled": False},
    )


@pytest.mark.parametrize(("repair", "by_rest"), [(change, True), (enable, True), (change_file, False)])
def test_one_that_was_repaired_is_well_when_something_got_through(
    pair: Pair, repair: Callable[[Pair], None], by_rest: bool
) -> None:
    pair.make(by_rest=by_rest)
    pair.tell_broken()
    assert [status for status, _ in pair.heard()] == ["firing"]
    repair(pair)
    pair.tell_broken()  # not repaired after all: the same episode goes on, and nobody is paged again
    assert [status for status, _ in pair.heard()] == ["firing"]
    repair(pair)
    pair.broken.script = answering(200)
    pair.tell_broken()
    assert pair.heard()[1:] == [("resolved", "a delivery got through again")]


@pytest.mark.parametrize(
    ("end", "by_rest", "why"),
    [
        (disable, True, "the channel was turned off by ann"),
        (change_to_off, True, "the channel was turned off by ann"),
        (remove, True, "the channel was removed by ann"),
        (remove_from_file, False, "the channel was removed in the alerts' file"),
        (switch_off_in_file, False, "the channel was turned off in the alerts' file"),
    ],
)
def test_one_that_nothing_is_sent_to_any_more_does_not_fail(
    pair: Pair, end: Callable[[Pair], None], by_rest: bool, why: str
) -> None:
    pair.make(by_rest=by_rest)
    pair.tell_broken()
    end(pair)
    pair.desk.until_quiet(HOUR)
    assert pair.heard()[1:] == [("resolved", why)]


def test_one_that_wanted_nothing_more_is_well_again_after_a_test(pair: Pair) -> None:
    pair.make(by_rest=True)
    pair.broken.script = answering(410)
    pair.tell_broken()
    enable(pair)
    pair.broken.script = answering(200)
    try_channel(pair.desk.engine, "broken", "api", pair.desk.clock, pair.desk.options)
    pair.desk.until_quiet(HOUR)
    assert [status for status, _ in pair.heard()] == ["firing", "resolved"]
    assert "410" in pair.heard()[0][1]


def test_an_end_goes_only_to_those_that_heard_of_the_beginning(pair: Pair) -> None:
    pair.make()
    pair.tell_broken()
    with Receiver(answering(200)).running() as late:
        pair.desk.channels(
            {"name": "hook", "kind": "webhook", "url": pair.well.url},
            {"name": "broken", "kind": "webhook", "url": pair.broken.url},
            {"name": "late", "kind": "webhook", "url": late.url},
        )
        pair.broken.script = answering(200)
        pair.tell_broken()
        assert late.received == []
    assert [status for status, _ in pair.heard()] == ["firing", "resolved"]


@pytest.mark.parametrize("status", [404, 410, 500])
def test_the_test_button_pages_nobody(pair: Pair, status: int) -> None:
    pair.make(by_rest=True)
    pair.broken.script = answering(status)
    for _ in range(6):  # as many as would open the breaker
        try_channel(pair.desk.engine, "broken", "api", pair.desk.clock, pair.desk.options)
    pair.desk.until_quiet(HOUR)
    assert pair.heard() == []
    if status != 410:  # which turns it off; else what really fails is told all the same
        pair.tell_broken()
        pair.desk.until_quiet()
        assert [told for told, _ in pair.heard()] == ["firing"]
