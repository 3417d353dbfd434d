"""Counts that cannot be, counts that may be off, and launches that a number does not cover."""

from __future__ import annotations

from typing import Any

import pytest
from tests.server.client import Web
from tests.server.seed import SCRAPE_MS, SERVER, T0, Feed, growth, rank_labels

PAST = {"from_": str(T0), "to": str(T0 + 900_000)}


def summary(web: Web, **parameters: Any) -> dict[str, Any]:
    found = web.api("/acceptance/summary", server=SERVER, **{**PAST, **parameters})
    assert isinstance(found, dict)
    return found


def check(found: dict[str, Any], name: str) -> dict[str, Any]:
    return next(dict(entry) for entry in found["checks"] if entry["name"] == name)


def test_more_accepted_than_proposed_is_never_speculation_that_works(web: Web, feed: Feed) -> None:
    feed.launch()
    feed.scrapes(60, calls=100, tokens=921, finished=1, running=1, tau=2.5, width=4)
    found = summary(web)
    length, strict = found["accept_length"], found["draft_acceptance"]
    assert (length["value"], length["state"], length["low"]) == (None, "undetermined", None)
    assert (strict["value"], strict["state"]) == (None, "undetermined")
    assert "49200 of 18000 proposed drafts (τ = 9.20 with D = 4)" in length["note"]
    assert found["verdict"]["headline"] == "The engine's counts contradict each other"
    assert found["verdict"]["reasons"] == [length["note"]]
    assert found["counts"]["accepted_drafts"] is None
    assert found["counts"]["verify_calls"] == 6000
    assert check(found, "accepted ≤ proposed")["passed"] is False
    assert check(found, "τ ≥ 1")["passed"] is None


def test_a_contradiction_of_one_launch_does_not_hide_in_the_sum(web: Web, feed: Feed) -> None:
    feed.launch("a1")
    feed.scrapes(20, calls=100, tokens=921, finished=1, running=1)
    feed.launch("b2", T0 + 300_000)
    feed.scrapes(60, start_ms=T0 + 300_000, calls=1000, tokens=1101, finished=1, running=1)
    found = summary(web)
    assert found["accept_length"]["state"] == "undetermined"
    assert summary(web, launch="newest")["accept_length"]["value"] == pytest.approx(1.1)


def test_all_drafts_accepted_is_possible(web: Web, feed: Feed) -> None:
    feed.launch()
    feed.scrapes(60, calls=100, tokens=401, finished=1, running=1)
    found = summary(web)
    assert (found["accept_length"]["value"], found["draft_acceptance"]["value"]) == (4.0, 1.0)


def test_with_a_changing_width_the_widest_bounds_the_accept_length(web: Web, feed: Feed) -> None:
    feed.launch()
    feed.scrapes(30, calls=100, tokens=621, finished=1, running=1, width=4)
    feed.scrapes(30, start_ms=T0 + 150_000, calls=100, tokens=621, finished=1, running=1, width=2)
    found = summary(web)
    assert found["accept_length"]["state"] == "undetermined"
    assert "τ = 6.20 with D ≤ 4" in found["accept_length"]["note"]


def test_launches_outside_the_counts_are_named_and_not_compared(web: Web, feed: Feed) -> None:
    feed.launch("a1", engine_version="0.5.8")
    feed.scrapes(50, tau=1.12, rate=1.12 / 6, running=4, tokens=252, finished=2)
    feed.launch("b2", T0 + 300_000, engine_version="0.5.23")
    feed.scrapes(50, start_ms=T0 + 300_000, tau=2.5, rate=0.5, running=4, calls=100, tokens=252, finished=2)
    found = summary(web)
    assert found["evidence"] == "counters"
    first = found["launch"]["id"] - 1
    assert f"Left out: launch {first} (SGLang 0.5.8 counts no verify calls)." in found["evidence_note"]
    agreement = check(found, "gauges agree with counters")
    assert (agreement["passed"], agreement["message"]) == (True, "τ 2.50 from gauges, 2.50 from counters")
    assert "Left out" not in summary(web, launch="newest")["evidence_note"]


def test_gauges_and_counters_are_compared_launch_by_launch(web: Web, feed: Feed) -> None:
    feed.launch("a1")
    feed.scrapes(20, tau=1.2, rate=0.07, running=4, calls=1_000, tokens=1_202, finished=2)
    feed.launch("b2", T0 + 300_000)
    feed.scrapes(50, start_ms=T0 + 300_000, tau=2.8, rate=0.6, running=4, calls=100, tokens=282, finished=2)
    agreement = check(summary(web), "gauges agree with counters")
    assert agreement["passed"] is True
    assert "in the launch of 2 where they differ most" in agreement["message"]
    feed.scrapes(20, start_ms=T0 + 560_000, tau=1.5, rate=0.2, running=4, calls=900, tokens=2_522, finished=2)
    assert check(summary(web), "gauges agree with counters")["passed"] is False


@pytest.mark.parametrize(("rounds", "passed"), [(6, True), (80, False)], ids=["few", "many"])
def test_few_requests_of_unlike_kinds_are_no_contradiction(
    web: Web, feed: Feed, rounds: int, passed: bool
) -> None:
    """Gauges weigh scrapes alike (2.10), counters cycles (1.65): that is chance until there are many."""
    feed.launch()
    for turn in range(rounds):
        start_ms = T0 + turn * 10_000
        feed.scrapes(1, start_ms=start_ms, tau=3.0, running=1, calls=20, tokens=61, finished=1)
        feed.scrapes(1, start_ms=start_ms + 5_000, tau=1.2, running=1, calls=60, tokens=73, finished=1)
    agreement = check(summary(web), "gauges agree with counters")
    assert (agreement["passed"], agreement["message"]) == (passed, "τ 2.10 from gauges, 1.65 from counters")


def test_a_counted_launch_without_gauges_is_not_compared_either(web: Web, feed: Feed) -> None:
    feed.launch("a1")
    feed.scrapes(50, running=4, calls=100, tokens=102, finished=2)
    feed.launch("b2", T0 + 300_000)
    feed.scrapes(50, start_ms=T0 + 300_000, tau=2.5, running=4, calls=100, tokens=252, finished=2)
    agreement = check(summary(web), "gauges agree with counters")
    assert (agreement["passed"], agreement["message"]) == (True, "τ 2.50 from gauges, 2.50 from counters")


def test_gauges_of_some_launches_only_say_which(web: Web, feed: Feed) -> None:
    feed.launch("a1", engine_version="0.5.8", speculative={"algorithm": None, "num_draft_tokens": None})
    feed.scrapes(20, running=4)
    feed.launch("b2", T0 + 300_000, engine_version="0.5.8")
    feed.scrapes(20, start_ms=T0 + 300_000, running=4, tau=2.0)
    assert "(it decodes without speculation)" in summary(web)["evidence_note"]


def test_aborts_and_retractions_bound_the_error_of_derived_counts(web: Web, feed: Feed) -> None:
    feed.launch()
    feed.scrapes(60, calls=100, tokens=201, finished=1, running=1)
    assert "off by" not in summary(web)["counts"]["explanation"]
    feed.send(
        growth("requests.aborted", 30, T0 + 50 * SCRAPE_MS),
        growth("requests.retracted", 12, T0 + 50 * SCRAPE_MS, rank_labels()),
        growth("requests.retracted", 12, T0 + 50 * SCRAPE_MS, rank_labels(tp=1)),
    )
    found = summary(web)
    for text in (found["accept_length"]["note"], found["counts"]["explanation"]):
        assert "up to 30 too low: 30 aborted requests" in text
        assert "up to 12 too high: 12 retractions" in text
        assert "τ is off by at most 0.005" in text
    assert found["accept_length"]["value"] == pytest.approx(2.0)
    assert any("30 aborted" in reason for reason in found["verdict"]["reasons"])


def test_aborts_of_zero_are_not_spoken_of(web: Web, feed: Feed) -> None:
    feed.launch()
    feed.scrapes(60, calls=100, tokens=201, finished=1, running=1)
    feed.send(growth("requests.aborted", 0, T0 + SCRAPE_MS))
    assert summary(web)["accept_length"]["note"] == ""


@pytest.mark.parametrize(
    ("speculative", "gauges", "note"),
    [
        ({"num_draft_tokens": None}, {"tau": 2.0}, "D is not known"),
        ({"adaptive": True}, {"tau": 2.0, "width": 4}, "adaptive"),
        ({"num_draft_tokens": 1}, {"tau": 1.0}, "nothing is proposed with D = 1"),
        ({"num_draft_tokens": 4}, {"tau": 4.9}, "accept length and D contradict each other"),
        ({}, {}, "no accept length in this range"),
    ],
)
def test_without_a_strict_share_the_note_says_why(
    web: Web, feed: Feed, speculative: dict[str, Any], gauges: dict[str, float], note: str
) -> None:
    feed.launch(engine_version="0.5.8", speculative=speculative)
    feed.scrapes(20, running=1, **gauges)
    strict = summary(web)["draft_acceptance"]
    assert (strict["value"], strict["state"]) == (None, "no_data")
    assert note in strict["note"]
