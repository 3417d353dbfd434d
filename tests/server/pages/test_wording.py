"""Numbers in words: missing is a dash, units are right, states are shown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.acceptance_samples import engine_rate, number, summary

from specscope_server.acceptance.schemas import NumberState
from specscope_server.pages.number_views import engine_rate_card, headline_cards, load_card, number_card
from specscope_server.pages.wording import (
    age_text,
    bytes_text,
    count_text,
    flags,
    number_text,
    shorten,
    span_text,
)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (None, "1", "–"), (0.0, "1", "0.0"), (1 / 3, "1", "33.3"), (2.0, "tokens/cycle", "2.00"),
        (12.34, "/s", "12.3"), (1234.5, "tokens/s", "1,234"), (0.0, "tokens/s", "0.00"),
        (3.0, "drafts", "3"), (2.4, "drafts", "2.40"),
    ],
)  # fmt: skip
def test_numbers(value: float | None, unit: str, text: str) -> None:
    assert number_text(value, unit) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (89, "89 s"), (120, "2 min"), (7_200, "2 h"), (300_000, "3 d"), (-1, "0 s")],
)
def test_lengths_of_time(seconds: float, text: str) -> None:
    assert span_text(seconds) == text


def test_missing_is_a_dash() -> None:
    assert {age_text(None), count_text(None), bytes_text(None), number_text(None)} == {"–"}


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0 B"), (999, "999 B"), (90_321, "90 kB"), (2_000_000_000, "2.0 GB")]
)
def test_sizes(value: int, text: str) -> None:
    assert bytes_text(value) == text


@given(st.text(), st.integers(1, 100))
def test_shortened_text_is_printable_and_short(text: str, limit: int) -> None:
    assert len(shorten(text, limit)) <= limit
    assert shorten(text, limit).isprintable()


@pytest.mark.parametrize("state", NumberState)
def test_only_a_sound_number_is_shown_without_a_word_of_caution(state: NumberState) -> None:
    card = number_card("x", "X", number(2.0, state=state))
    assert (card.state_words == "") == (state is NumberState.OK)
    assert card.is_grey == (state is not NumberState.OK)


def test_a_number_shows_interval_sample_size_and_age() -> None:
    card = number_card("x", "X", number(2.0, low=1.94, high=2.07))
    assert card.facts == ("95 %: 1.94 to 2.07", "n = 1,234 cycles", "4 s ago")
    assert dict(card.explanation)["Source"] == "sglang:spec_accept_length, SGLang 0.5.8"


def test_an_unknown_number_has_no_unit() -> None:
    card = number_card("x", "X", number(None, state=NumberState.NO_DATA))
    assert (card.text, card.unit) == ("–", "")


def test_the_engine_rate_stands_beside_its_formula_floor_and_strict_value() -> None:
    card = engine_rate_card(engine_rate())
    assert card.formula == "= τ/D"
    assert card.facts[:2] == ("strict 33.3 %", "floor 1/D = 25.0 %")
    assert ("Bonus token", "included") in card.explanation


def test_a_strict_rate_is_not_said_twice() -> None:
    card = engine_rate_card(engine_rate(formula="(τ−1)/(D−1)", includes_bonus=False, floor=None))
    assert not any(fact.startswith("strict") for fact in card.facts)


def test_among_several_launches_the_rate_says_which_it_is_of() -> None:
    facts = [card.facts[:1] for card in headline_cards(summary(), adds_up=True)]
    assert [index for index, first in enumerate(facts) if first == ("of the newest launch only",)] == [2]


def test_a_missing_number_says_why() -> None:
    card = number_card(
        "x", "X", number(None, state=NumberState.NO_DATA, n=None, age_seconds=None, note="why")
    )
    assert card.facts == ("why",)


def test_an_undetermined_rate_claims_no_formula() -> None:
    card = engine_rate_card(
        engine_rate(formula="undetermined", includes_bonus=None, floor=None, strict_equivalent=None)
    )
    assert card.formula == ""
    assert ("Bonus token", "not known") in card.explanation


def test_running_and_queued_share_a_card_that_shows_the_worse_state() -> None:
    card = load_card(number(3, "requests"), number(None, "requests", state=NumberState.NO_DATA))
    assert card.text == "3 / –"
    assert card.state_words == "no data"


def test_the_overview_has_six_numbers() -> None:
    assert len({card.key for card in headline_cards(summary())}) == 6


def test_flags_are_code_and_everything_else_stays_text() -> None:
    assert flags("<b> start with --enable-metrics, not a--b") == (
        '&lt;b&gt; start with <code class="flag">--enable-metrics</code>, not a--b'
    )
