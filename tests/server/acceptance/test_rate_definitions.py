"""Printed rates through the API: versions that are only a lower bound, and windows that mix definitions."""

from __future__ import annotations

import csv
import io
import math
from typing import Any

import pytest
from tests.server.client import Web
from tests.server.seed import SCRAPE_MS, SERVER, T0, Feed

from specscope_collectors.observations import Event
from specscope_server.kit.figures import decode_floats

MINUTE_MS = 60_000
STRICT, WITH_BONUS = "(τ−1)/(D−1)", "τ/D"
GUESSED = "0.5.8 or later (from the metric names)"


def asked(minutes: int) -> dict[str, Any]:
    return {"server": SERVER, "from_": T0, "to": T0 + minutes * MINUTE_MS, "step": "1m"}


def summary(web: Web, minutes: int = 2) -> dict[str, Any]:
    found = web.api("/acceptance/summary", server=SERVER, from_=T0, to=T0 + minutes * MINUTE_MS)
    assert isinstance(found, dict)
    return found


def trend(web: Web, minutes: int) -> dict[str, Any]:
    found = web.api("/acceptance/trend", **asked(minutes))
    assert isinstance(found, dict)
    return found


def unread(feed: Feed, version: str, width: int | None) -> None:
    """Begin a launch whose configuration cannot be read: only the metric names tell a version."""
    feed.launch(
        engine_version=version,
        version_source="metric_names",
        speculative={"num_steps": None, "num_draft_tokens": width},
    )


@pytest.mark.parametrize(
    ("version", "width", "rate", "formula"),
    [
        ("0.5.8", 6, 0.3, STRICT),  # τ = 2.5: a later version writes all names of 0.5.8 too
        ("0.5.8", 6, 2.5 / 6, WITH_BONUS),
        ("0.5.8", None, 0.3, "undetermined"),
        ("0.5.8", 6, 0.9, "undetermined"),
        ("0.5.2", 6, 0.3, STRICT),
        ("0.5.15", None, 0.3, STRICT),
        ("0.5.15", 6, 2.5 / 6, "undetermined"),
    ],
)
def test_a_version_told_from_metric_names_is_a_lower_bound(
    web: Web, feed: Feed, version: str, width: int | None, rate: float, formula: str
) -> None:
    unread(feed, version, width)
    feed.scrapes(11, tau=2.5, rate=rate, running=1)
    found = summary(web)["engine_reported_rate"]
    assert found["formula"] == formula
    assert (found["number"]["state"] == "undetermined") == (formula == "undetermined")
    assert f"SGLang {version} or later (from the metric names)" in found["number"]["source"]
    assert found["floor"] == (pytest.approx(1 / 6) if formula == WITH_BONUS else None)


@pytest.mark.parametrize(
    ("formula", "rates", "floor"), [(STRICT, [0.4, 0.5, 0.6], None), (WITH_BONUS, [0.55, 0.63, 0.7], 0.25)]
)
def test_a_width_that_the_numbers_leave_alone_gives_the_strict_share(
    web: Web, feed: Feed, formula: str, rates: list[float], floor: float | None
) -> None:
    """τ = 2.2, 2.5, 2.8 and D = 4, which a log without the dump of arguments does not say."""
    feed.launch(
        engine_version="0.5.3–0.5.22", version_source="log_lines", model=None,
        speculative={"algorithm": None, "num_steps": None, "num_draft_tokens": None},
    )  # fmt: skip
    for at, (length, rate) in enumerate(zip([2.2, 2.5, 2.8], rates, strict=True)):
        feed.scrapes(8, T0 + at * 8 * SCRAPE_MS, tau=length, rate=rate, running=1)
    found = summary(web)
    assert found["engine_reported_rate"]["formula"] == formula
    assert found["engine_reported_rate"]["floor"] == floor
    strict = found["draft_acceptance"]
    assert strict["value"] == pytest.approx((found["accept_length"]["value"] - 1) / 3)
    assert strict["note"].startswith("D = 4, the only one that accept length and printed rate fit")
    shares = [point["draft_acceptance"] for point in trend(web, 2)["points"]]
    assert any(share is not None and 0.4 <= share <= 0.6 for share in shares)


def test_without_a_width_the_strict_share_says_why_it_is_missing(web: Web, feed: Feed) -> None:
    unread(feed, "0.5.2", None)
    feed.scrapes(11, tau=2.5, running=1)
    assert "not known whether" in summary(web)["accept_length"]["note"]
    found = summary(web)["draft_acceptance"]
    assert found["value"] is None
    assert found["note"] == "D is not known: neither a gauge nor the launch says it"


@pytest.mark.parametrize(
    ("version", "source", "words"),
    [
        ("0.5.2", "server_info", "counts each prefill"),
        ("0.5.2", "metric_names", "not known whether"),
        ("0.5.8", "metric_names", ""),
    ],
)
def test_whether_prefill_pulls_the_length_down_follows_the_same_rule(
    web: Web, feed: Feed, version: str, source: str, words: str
) -> None:
    feed.launch(engine_version=version, version_source=source)
    feed.scrapes(11, tau=2.5, running=1)
    note = summary(web)["accept_length"]["note"]
    assert words in note
    assert bool(words) == bool(note)


def test_every_place_that_shows_a_guessed_version_says_what_it_is(web: Web, feed: Feed) -> None:
    unread(feed, "0.5.8", 6)
    feed.scrapes(11, tau=2.5, rate=0.3, running=1)
    assert summary(web)["launch"]["version_source"] == "metric_names"
    assert GUESSED in web.get("/acceptance", params={"server": SERVER, "from": str(T0)}).text
    found = trend(web, 1)
    assert GUESSED in found["launches"][0]["label"]
    assert {definition["engine_version"] for definition in found["rate_definitions"]} == {GUESSED}
    assert GUESSED in web.api("/figures/engine-rate", **asked(1))["layout"]["meta"]["definition"]


def upgraded(feed: Feed, printed: bool) -> None:
    """One minute of 0.5.8 at D = 6, then 0.5.23, which prints its first window at once or not yet."""
    width = {"num_steps": 5, "num_draft_tokens": 6}
    feed.launch("a1", engine_version="0.5.8", speculative=width)
    feed.scrapes(11, tau=1.12, rate=1.12 / 6, running=4)
    feed.launch("b2", T0 + MINUTE_MS, engine_version="0.5.23", speculative=width, reason="restarted")
    values = {"tau": 2.5, "rate": 0.3} if printed else {}
    feed.scrapes(11, T0 + MINUTE_MS, **values, running=4)


def test_each_point_of_an_upgrade_keeps_its_own_definition(web: Web, feed: Feed) -> None:
    upgraded(feed, printed=True)
    found = trend(web, 3)
    points = found["points"]
    assert [point["rate_formula"] for point in points] == [WITH_BONUS, STRICT, ""]
    assert [point["rate_engine_version"] for point in points] == ["0.5.8", "0.5.23", ""]
    assert [point["engine_rate_floor"] for point in points] == [pytest.approx(1 / 6), None, None]
    keys = ("formula", "engine_version", "from", "to")
    spans = [tuple(definition[key] for key in keys) for definition in found["rate_definitions"]]
    times = [point["time"] for point in points]
    assert spans == [(WITH_BONUS, "0.5.8", times[0], times[1]), (STRICT, "0.5.23", times[1], times[2])]
    assert found["rate_formula"] == STRICT
    answer = web.get("/api/v1/acceptance/trend", params={**asked_raw(3), "format": "csv"})
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert [(row["rate_formula"], row["rate_engine_version"]) for row in rows[:2]] == [
        (WITH_BONUS, "0.5.8"), (STRICT, "0.5.23"),
    ]  # fmt: skip


def asked_raw(minutes: int) -> dict[str, Any]:
    return {name.rstrip("_"): value for name, value in asked(minutes).items()}


def test_the_figure_of_an_upgrade_draws_a_line_per_definition(web: Web, feed: Feed) -> None:
    upgraded(feed, printed=True)
    drawn = web.api("/figures/engine-rate", **asked(3))
    seen = [[not math.isnan(value) for value in decode_floats(trace["y"])] for trace in drawn["data"]]
    assert seen == [[True, False, False], [False, True, False], [True, False, False]]
    assert ["τ/D by SGLang 0.5.8" in trace["name"] for trace in drawn["data"]] == [True, False, False]
    answer = web.get("/api/v1/figures/engine-rate", params={**asked_raw(3), "format": "csv"})
    rows = [row for row in csv.DictReader(io.StringIO(answer.text)) if row["value"]]
    assert [row["definition"] for row in rows] == [
        "τ/D by SGLang 0.5.8", "(τ−1)/(D−1) by SGLang 0.5.23", "1/D, the floor of τ/D",
    ]  # fmt: skip


def test_an_older_rate_is_not_claimed_for_a_version_that_printed_none(web: Web, feed: Feed) -> None:
    upgraded(feed, printed=False)
    rate = summary(web)["engine_reported_rate"]
    assert rate["formula"] == WITH_BONUS
    assert rate["number"]["source"].endswith("SGLang 0.5.8")
    assert "earlier launch" in rate["number"]["note"]
    assert rate["number"]["as_of"] < trend(web, 2)["points"][1]["time"]
    words = web.api("/figures/engine-rate", **asked(2))["layout"]["meta"]["definition"]
    assert "τ/D by SGLang 0.5.8" in words
    assert "0.5.23" not in words


def test_a_number_names_only_the_versions_that_it_was_computed_from(web: Web, feed: Feed) -> None:
    upgraded(feed, printed=True)
    feed.scrapes(11, T0 + MINUTE_MS, calls=10, tokens=26, finished=1)
    found = summary(web)
    assert found["accept_length"]["source"].endswith("SGLang 0.5.23")
    assert found["engine_reported_rate"]["number"]["source"].endswith("SGLang 0.5.23")
    assert found["requests_running"]["source"].endswith("SGLang 0.5.23")


def test_in_a_bucket_that_two_launches_share_definitions_are_not_averaged(web: Web, feed: Feed) -> None:
    width = {"num_steps": 5, "num_draft_tokens": 6}
    feed.launch("a1", engine_version="0.5.8", speculative=width)
    feed.scrapes(5, tau=1.12, rate=1.12 / 6, running=4)
    feed.launch("b2", T0 + 6 * SCRAPE_MS, engine_version="0.5.23", speculative=width, reason="restarted")
    feed.scrapes(5, T0 + 6 * SCRAPE_MS, tau=2.5, rate=0.3, running=4)
    (point,) = trend(web, 1)["points"]
    assert (point["engine_reported_rate"], point["rate_formula"]) == (pytest.approx(0.3), STRICT)
    assert point["engine_rate_floor"] is None


def test_what_a_log_decided_line_by_line_stands_where_buckets_are_too_few(feed: Feed, web: Web) -> None:
    feed.launch("a1", T0, engine_version=None, version_source=None, speculative={"num_draft_tokens": None})
    feed.scrapes(1, tau=2.5, rate=0.3, running=1)
    assert summary(web)["engine_reported_rate"]["formula"] == "undetermined"
    detail = {"definition": "(τ−1)/(D−1)", "draft_tokens": 6, "pairs": 40, "source": "log"}
    feed.send(Event(kind="rate_definition", time_ms=T0 + 6_000, message="decided", detail=detail))
    found = summary(web)["engine_reported_rate"]
    assert found["formula"] == "(τ−1)/(D−1)"
    assert "40 pairs printed in its log" in str(found)


@pytest.mark.parametrize(
    "detail", [{}, {"definition": "τ", "pairs": 3}, {"definition": "τ/D", "pairs": "many"}]
)
def test_an_event_that_decides_nothing_changes_nothing(feed: Feed, web: Web, detail: dict[str, Any]) -> None:
    feed.launch("a1", T0, engine_version=None, version_source=None, speculative={"num_draft_tokens": None})
    feed.scrapes(1, tau=2.5, rate=0.3, running=1)
    feed.send(Event(kind="rate_definition", time_ms=T0 + 6_000, message="decided", detail=detail))
    assert summary(web)["engine_reported_rate"]["formula"] == "undetermined"
