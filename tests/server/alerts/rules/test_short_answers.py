"""Engines that count when requests finish: what a draft wins past the end of an answer is never output."""

from __future__ import annotations

import numpy as np
import pytest
from sqlalchemy import Engine
from tests.server.alerts.rules.shipped import ask, at, fires
from tests.server.seed import NOW, Feed, growth, level, rank_labels

from specscope_collectors.observations import Observation
from specscope_server.alerts.rules.reading import Status
from specscope_server.store.ingest import IngestWriter

HOUR = 720
"""Scrapes."""


@pytest.fixture
def feed(sqlite_engine: Engine) -> Feed:
    return Feed(IngestWriter(sqlite_engine, lambda: NOW))


def answers(feed: Feed, start: int, count: int, alpha: float, length: int) -> None:
    """Send scrapes of an engine that counts finished requests: drafts past their end are never output."""
    random = np.random.default_rng(start + length)
    batch: list[Observation] = []
    for index in range(start + 1, start + count + 1):
        finished = max(800 // length, 1)
        calls = 0
        for _ in range(finished):
            left = length - 1  # the first token comes from prefill
            while left > 0:
                accepted = next((k for k in range(3) if random.random() >= alpha), 3)
                left -= accepted + 1
                calls += 1
        for metric, value in (
            ("spec.verify_calls", calls), ("tokens.generated", length * finished),
            ("requests.finished", finished),
        ):  # fmt: skip
            batch.append(growth(metric, value, at(index)))
        batch.append(growth("tokens.decoded", (length - 1) * finished, at(index), rank_labels()))
        batch.append(level("requests.running", 2, at(index)))
    feed.send(*batch)


def test_shorter_answers_alone_are_no_drop_of_acceptance(sqlite_engine: Engine, feed: Feed) -> None:
    feed.launch()
    answers(feed, 0, HOUR, 0.65, length=200)
    answers(feed, HOUR, 180, 0.65, length=5)
    [found] = ask(sqlite_engine, "acceptance-drop", at(HOUR + 180))
    assert found.evidence["conditions"][0]["change"] < -0.1, "what is output in a cycle fell"
    assert found.status is Status.OK
    answers(feed, HOUR + 180, 180, 0.45, length=5)
    assert fires(sqlite_engine, "acceptance-drop", at(HOUR + 360)) is not None


@pytest.mark.parametrize("length", [200, 40])
def test_a_worse_draft_is_a_drop_where_only_finished_requests_are_counted(
    sqlite_engine: Engine, feed: Feed, length: int
) -> None:
    feed.launch()
    answers(feed, 0, HOUR, 0.65, length=length)
    assert fires(sqlite_engine, "acceptance-drop", at(HOUR)) is None
    answers(feed, HOUR, 180, 0.5, length=length)
    assert fires(sqlite_engine, "acceptance-drop", at(HOUR + 180)) is not None


@pytest.mark.parametrize(
    ("alpha", "length", "is_dead"), [(0.65, 2, False), (0.02, 200, True), (0.02, 30, True)]
)
def test_dead_draft_is_not_said_of_answers_of_two_tokens(
    sqlite_engine: Engine, feed: Feed, alpha: float, length: int, is_dead: bool
) -> None:
    feed.launch()
    answers(feed, 0, 120, alpha, length=length)
    [found] = ask(sqlite_engine, "dead-draft", at(120))
    assert found.evidence["conditions"][0]["below"] == 1.15
    assert found.value is not None
    assert found.value < 1.1
    assert (found.status is Status.BREACH) is is_dead
