"""Cards in words: numbers with unit and interval, times in UTC, cuts with a mark, each on one line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.cards import card, notification

from specscope_server.alerts.channels.notification import CardValue
from specscope_server.alerts.channels.words import (
    MAX_LINE,
    headline,
    number,
    one_line,
    shorten,
    value_words,
    when,
    within,
)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (CardValue("τ", 1.21, "tokens per cycle", 1.18, 1.24, 1.5),
         "1.21 tokens per cycle (95 % interval 1.18 to 1.24), limit 1.5"),
        (CardValue("a", 0.0241, "ratio", 0.02, 0.03), "2.41 % (95 % interval 2 % to 3 %)"),
        (CardValue("a", None, "ms"), "unknown"),
        (CardValue("a", float("nan"), "ms", 1.0, None), "unknown"),
        (CardValue("a", 0.0), "0"),
    ],
)  # fmt: skip
def test_a_value_in_words(value: CardValue, words: str) -> None:
    assert value_words(value) == words


@given(st.text(max_size=3_000), st.integers(1, 200))
def test_texts_fit_and_stay_on_one_line(text: str, limit: int) -> None:
    assert len(shorten(text, limit)) <= limit
    assert shorten(text, len(text)) == text
    line = one_line(text)
    assert len(line) <= MAX_LINE
    assert line.isprintable()
    assert line.splitlines() in ([], [line])


@given(st.integers(0, 300), st.integers(1, 300))
def test_as_many_as_fit_and_at_least_one(count: int, most: int) -> None:
    kept, left = within(list(range(count)), lambda some, _: len(some) <= most)
    assert kept == list(range(min(count, most)))
    assert left == count - len(kept)


def test_a_headline_says_state_title_group_and_how_many_more() -> None:
    assert headline(notification()) == "[FIRING critical] The draft is dead (server=gpu1:30000)"
    assert headline(notification(card(1), card(2), truncated_alerts=3)).startswith(
        "[FIRING critical] The draft is dead and 4 more"
    )
    assert headline(notification(card(status="resolved"))).startswith("[RESOLVED]")
    assert headline(notification(cause="test")).startswith("[TEST FIRING")
    assert "[demo] The draft" in headline(notification(card(is_demo=True)))


def test_times_and_numbers() -> None:
    assert when(1_772_366_400_001) == "2026-03-01T12:00:00.001Z"
    assert number(123_456.0, "ms") == "123,456 ms"
