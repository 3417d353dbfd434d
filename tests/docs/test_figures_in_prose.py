"""Figures that the guides repeat from the code are the ones in the code."""

from __future__ import annotations

from tests.docs.pages import read

from specscope_collectors.config import CollectorOptions
from specscope_server.acceptance.statistics import MIN_CYCLES, MIN_WINDOWS
from specscope_server.acceptance.verdict import DEAD_LENGTH, WEAK_LENGTH
from specscope_server.demo.story import Story
from specscope_server.pages.requests import ROWS
from specscope_server.requests import statistics as outliers
from specscope_server.requests.population import MAX_REQUESTS
from specscope_server.settings import Settings


def test_thresholds_of_the_verdict() -> None:
    guide = read("docs/guide/reading-the-numbers.md")
    assert f"| Almost no draft is right | τ below {DEAD_LENGTH:g}:" in guide
    assert f"| Few drafts are right | τ below {WEAK_LENGTH:g} |" in guide
    assert f"Less than {MIN_CYCLES} cycles from counters, or fewer than {MIN_WINDOWS} windows" in guide


def test_pace_of_the_sources() -> None:
    guide = read("docs/guide/sources.md")
    settings, options = Settings(), CollectorOptions()
    assert f"`/metrics` | every {settings.scrape_interval_seconds:g} s" in guide
    assert f"every {settings.info_interval_seconds:g} s, and when a restart" in guide
    assert f"`/v1/loads` | every {options.loads_interval_seconds:g} s" in guide


def test_the_story_of_the_demo() -> None:
    guide = read("docs/guide/demo.md")
    starts = [f"{int(ms / 1000) // 60}:{int(ms / 1000) % 60:02d}" for ms in Story(30.0).starts_ms()]
    single = [start for start in starts if f"| {start} |" in guide]
    assert single == [start for start in starts if start not in starts[5:9]]


def test_the_worked_example() -> None:
    guide = read("docs/guide/reading-the-numbers.md")
    assert f"1.12 / 6 = {1.12 / 6:.3f}" in guide
    assert f"(1.12 − 1) / 5 = {0.12 / 5:.3f}" in guide
    assert f"0.47 · 6 = {0.47 * 6:.2f}" in guide
    assert f"(2.82 − 1) / 5 = {1.82 / 5:.0%}".replace("%", " %") in guide


def test_retention_in_words() -> None:
    assert Settings().retention_raw_days == 7, "the team guide says that samples are kept for a week"
    assert "Samples are kept for a week" in read("docs/guide/team.md")


def test_the_rules_of_the_requests_page() -> None:
    guide = read("docs/guide/requests.md")
    assert (
        f"when it has {outliers.MIN_CYCLES} cycles or more, at least {outliers.MIN_PEERS - 1} other" in guide
    )
    assert f"What remains below {outliers.FALSE_ALARMS:.0%}".replace("%", " %") in guide
    assert f"Of more than {MAX_REQUESTS:,} requests" in guide
    assert f"adds {ROWS} rows" in guide
    assert f"fewer than {MIN_CYCLES} cycles" in guide
