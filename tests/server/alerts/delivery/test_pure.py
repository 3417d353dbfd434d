"""The parts of delivering that are pure: waits, the breaker, what answers mean, what is joined."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.cards import NOW_MS, card, notification

from specscope_server.alerts.channels.contract import (
    Delivered,
    Gone,
    HttpAnswer,
    Others,
    Permanent,
    Retry,
)
from specscope_server.alerts.channels.notification import Cause, Notification
from specscope_server.alerts.delivery.answers import LONGEST_WAIT_SECONDS, judge, retry_after_seconds
from specscope_server.alerts.delivery.breaker import FAILURES_TO_OPEN, LONGEST_OPEN_MS, Breaker
from specscope_server.alerts.delivery.collapse import Waiting, joinable, joined, without_untold
from specscope_server.alerts.delivery.retrying import Backoff
from specscope_server.alerts.delivery.splitting import Room, split


@given(st.integers(1, 10_000), st.none() | st.floats(0, 20_000), st.integers(0, 2**32))
def test_a_wait_is_bounded_spread_and_never_before_what_was_asked(
    attempts: int, after: float | None, seed: int
) -> None:
    backoff = Backoff()
    wait_ms = backoff.wait_ms(attempts, after, random.Random(seed))
    assert wait_ms >= (after or 0) * 1_000 - 1
    assert 1 <= wait_ms <= max(backoff.longest_seconds, (after or 0) * 1.1) * 1_000 + 1


def test_waits_grow_and_differ() -> None:
    chance = random.Random(1)
    waits = [Backoff(spread=0).wait_ms(number, None, chance) for number in range(1, 9)]
    assert waits == [5_000, 10_000, 20_000, 40_000, 80_000, 160_000, 320_000, 600_000]
    assert len({Backoff().wait_ms(3, None, chance) for _ in range(20)}) > 10


@given(st.integers(100, 599))
def test_every_status_means_one_thing(status: int) -> None:
    verdict = judge(HttpAnswer(status), NOW_MS)
    assert isinstance(verdict, Delivered) == (200 <= status < 300)
    assert isinstance(verdict, Gone) == (status == 410)
    if 300 <= status < 400:
        assert isinstance(verdict, Permanent)
    if status in (408, 429, 500, 502, 503, 504):
        assert isinstance(verdict, Retry)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0), (" 30 ", 30), ("999999999999", LONGEST_WAIT_SECONDS),
        ("-5", None), ("1.5", None), ("", None),
        ("Sun, 01 Mar 2026 12:01:00 GMT", 60), ("Sun, 01 Mar 2026 11:00:00 GMT", 0), ("٣", None),
        ("Sunday, 01-Mar-26 12:01:00 GMT", 60), ("Fri, 99 Foo 2026", None),
    ],
)  # fmt: skip
def test_retry_after(text: str, seconds: float | None) -> None:
    assert retry_after_seconds(text, NOW_MS) == seconds


@given(st.text(max_size=60))
def test_retry_after_takes_any_text(text: str) -> None:
    found = retry_after_seconds(text, NOW_MS)
    assert found is None or 0 <= found <= LONGEST_WAIT_SECONDS


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 10_000_000)), max_size=60))
def test_the_breaker_lets_through_again_whatever_happens(steps: list[tuple[bool, int]]) -> None:
    breaker, now_ms = Breaker(), NOW_MS
    for is_good, passes_ms in steps:
        now_ms = breaker.admits_at(now_ms + passes_ms)
        assert now_ms - NOW_MS < 10**15
        breaker = breaker.starting(now_ms)
        if breaker.state == "half_open":
            assert breaker.admits_at(now_ms) > now_ms  # one at a time
        breaker = breaker.succeeded() if is_good else breaker.failed(now_ms)
        assert breaker.admits_at(now_ms) <= now_ms + LONGEST_OPEN_MS
        assert (breaker.state == "open") <= (breaker.failures >= FAILURES_TO_OPEN)
        if is_good:
            assert breaker == Breaker()


CARDS = st.lists(
    st.builds(card, st.integers(1, 4), st.sampled_from(["firing", "resolved"])),
    min_size=1, max_size=4, unique_by=lambda each: each.alert_id,
)  # fmt: skip


@given(st.lists(CARDS, min_size=1, max_size=5), st.sets(st.sampled_from(["a1", "a2", "a3", "a4"])))
def test_joining_keeps_the_last_state_of_every_alert(waiting: list[list[object]], earlier: set[str]) -> None:
    entries = [Waiting(n, notification(*cards), NOW_MS, 1, False) for n, cards in enumerate(waiting)]  # type: ignore[arg-type]
    whole = joined(entries)
    last = {each.alert_id: each.status for entry in entries for each in entry.notification.alerts}
    assert {each.alert_id: each.status for each in whole.alerts} == last
    assert len(whole.alerts) == len(last)
    fired = {a.alert_id for e in entries for a in e.notification.alerts if a.status == "firing"}
    kept = without_untold(whole, fired | earlier, earlier)
    ended = {each.alert_id for each in kept.alerts if each.status == "resolved"} if kept else set()
    assert ended.isdisjoint(fired - earlier)  # no end without its beginning


def test_what_may_have_been_taken_is_never_joined() -> None:
    fire, end = notification(), notification(card(status="resolved"))
    sure = [Waiting(1, fire, NOW_MS, 1, False), Waiting(2, end, NOW_MS, 0, False)]
    unsure = [Waiting(1, fire, NOW_MS, 1, True), Waiting(2, end, NOW_MS, 0, False)]
    fresh = [Waiting(1, fire, NOW_MS, 0, False), Waiting(2, end, NOW_MS, 0, False)]
    assert joinable(sure, NOW_MS)
    assert not joinable(unsure, NOW_MS + 10**9)
    assert not joinable(fresh, NOW_MS + 1_000)
    assert joinable(fresh, NOW_MS + 60_000)


def test_a_fire_that_waits_is_not_lost_behind_its_acknowledgement() -> None:
    fire, taken = notification(), notification(card(acked_by="ann"), cause="acknowledged")
    both = joined([Waiting(1, fire, NOW_MS, 1, False), Waiting(2, taken, NOW_MS, 0, False)])
    assert (both.cause, both.alerts[0].acked_by) == ("new", "ann")
    again = joined([Waiting(1, taken, NOW_MS, 1, False), Waiting(2, taken, NOW_MS, 0, False)])
    assert again.cause == "acknowledged"


@given(
    st.integers(0, 40), st.integers(0, 40), st.integers(1, 12),
    st.sampled_from(["fill", "repeat", "always"]), st.sampled_from(["changed", "repeat"]),
)  # fmt: skip
def test_a_split_holds_all_that_is_new_once_and_in_order(
    new: int, old: int, most: int, others: Others, cause: Cause
) -> None:
    cards = [card(number) for number in range(new + old)]
    known = [each.alert_id for each in cards[new:]]
    whole = Notification("g", {}, "firing", cause, NOW_MS, cards, known=known, truncated_alerts=3)
    parts = split(whole, Room(most, others))
    told = [each.alert_id for part in parts for each in part.alerts]
    assert all(1 <= len(part.alerts) <= most for part in parts)
    assert told == [each.alert_id for each in cards[: len(told)]]
    assert len(told) >= new
    if others == "always" or (others == "repeat" and cause == "repeat"):
        assert len(told) == new + old
    if parts:
        assert sum(part.truncated_alerts for part in parts) == 3 + new + old - len(told)
        assert [(part.part, part.parts) for part in parts] == [
            (place, len(parts)) for place in range(1, len(parts) + 1)
        ]
