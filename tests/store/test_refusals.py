"""What cannot be is refused by name and counted; what stands beside it in the batch is stored."""

from __future__ import annotations

import math
from typing import Any

import pytest
from sqlalchemy import Engine
from structlog.testing import capture_logs
from tests.store.conftest import NOW, T0, batch, histogram, increment, launch, level, rows

from specscope_collectors.observations import Distribution, Event, Observation, RequestRecord, SourceHealth
from specscope_collectors.observations import HealthState as H
from specscope_server.store.ingest import IngestWriter
from specscope_server.store.limits import MAX_AHEAD_MS, Limits, time_reason
from specscope_server.store.refusal import Reason

DAY_MS = 86_400_000


def request(**fields: Any) -> RequestRecord:
    values = {
        "request_id": "r1",
        "time_ms": T0,
        "verify_calls": 3,
        "accepted_drafts": 4,
        "proposed_drafts": 9,
    }
    return RequestRecord(**{**values, "accepted_histogram": (1, 0, 2), **fields})


def health(**fields: Any) -> SourceHealth:
    values = {"source": "s", "time_ms": T0, "state": H.OK, "url": "http://x", "duration_seconds": 0.1}
    return SourceHealth(**{**values, **fields})


IMPOSSIBLE: list[tuple[Reason, Observation]] = [
    (Reason.UNKNOWN_METRIC, level("no.such.metric")),
    (Reason.UNKNOWN_METRIC, histogram("no.such.metric")),
    (Reason.WRONG_KIND, level("spec.verify_calls")),
    (Reason.WRONG_KIND, increment("requests.running")),
    (Reason.WRONG_KIND, histogram("requests.running")),
    (Reason.TOO_MANY_LABELS, level(labels={str(i): "" for i in range(65)})),
    (Reason.LABEL_TOO_LONG, level(labels={"a": "x" * 1025})),
    (Reason.LABEL_TOO_LONG, level(labels={"é" * 513: ""})),
    (Reason.BAD_TEXT, level(labels={"a": "x\0"})),
    (Reason.BAD_TEXT, level(labels={"a": "\ud800"})),
    (Reason.NOT_FINITE, level(value=math.nan)),
    (Reason.NOT_FINITE, increment(value=math.inf)),
    (Reason.NOT_FINITE, histogram(sum=-math.inf)),
    (Reason.NOT_FINITE, histogram(buckets=(1.0, math.nan, 3.0))),
    (Reason.NEGATIVE_INCREMENT, increment(value=-1)),
    (Reason.BAD_SPAN, increment(span_ms=0)),
    (Reason.BAD_SPAN, increment(span_ms=-5)),
    (Reason.BAD_SPAN, histogram(span_ms=0)),
    (Reason.BAD_SPAN, increment(span_ms=2**70)),
    (Reason.FUTURE, level(time_ms=NOW + DAY_MS + 1)),
    (Reason.FUTURE, histogram(time_ms=NOW + DAY_MS + 1)),
    (Reason.TOO_OLD, level(time_ms=1_400_000_000_000)),
    (Reason.TOO_OLD, level(time_ms=-5)),
    (Reason.TOO_OLD, level(time_ms=2**70)),
    (Reason.RATIO_OUT_OF_RANGE, level("kv.usage", value=1.01)),
    (Reason.RATIO_OUT_OF_RANGE, level("spec.engine_accept_rate", value=-0.1)),
    (Reason.ACCEPT_LENGTH_BELOW_ONE, level("spec.accept_length", value=0.0)),
    (Reason.ACCEPT_LENGTH_BELOW_ONE, level("spec.lifetime_accept_length", value=0.99)),
    (Reason.BAD_BOUNDS, histogram(bounds=(2.0, 1.0))),
    (Reason.BAD_BOUNDS, histogram(bounds=(1.0, math.inf))),
    (Reason.BUCKET_COUNT_MISMATCH, histogram(buckets=(3.0, 3.0))),
    (Reason.BUCKET_SUM_MISMATCH, histogram(count=7.0)),
    (Reason.NEGATIVE_COUNT, histogram(buckets=(-1.0, 4.0, 3.0))),
    (Reason.TOO_LARGE, histogram(bounds=tuple(map(float, range(600))), buckets=(0.0,) * 601, count=0.0)),
    (Reason.HISTOGRAM_MISMATCH, request(verify_calls=4)),
    (Reason.HISTOGRAM_MISMATCH, request(accepted_drafts=5)),
    (Reason.ACCEPTED_ABOVE_PROPOSED, request(proposed_drafts=3)),
    (Reason.NEGATIVE_COUNT, request(prompt_tokens=-1)),
    (Reason.NEGATIVE_COUNT, request(accepted_histogram=(4, -2, 1), verify_calls=3, accepted_drafts=0)),
    (Reason.TOO_LARGE, request(completion_tokens=2**63)),
    (Reason.NOT_FINITE, request(e2e_seconds=math.nan)),
    (Reason.BAD_TEXT, request(request_id="a\0")),
    (Reason.FUTURE, request(time_ms=NOW + 2 * DAY_MS)),
    (Reason.TOO_LARGE, Event(kind="note", time_ms=T0, message="x" * 70_000)),
    (Reason.BAD_TEXT, Event(kind="note", time_ms=T0, message="a\0")),
    (Reason.TOO_OLD, Event(kind="note", time_ms=0, message="a")),
    (Reason.TOO_LARGE, health(http_status=2**63)),
    (Reason.NOT_FINITE, health(duration_seconds=math.inf)),
    (Reason.BAD_TEXT, launch("z", model="a\0b")),
    (Reason.TOO_LARGE, launch("z", config={"a": "x" * 1_000_001})),
]


@pytest.mark.parametrize(
    ("reason", "observation"), IMPOSSIBLE, ids=[f"{i}-{reason}" for i, (reason, _) in enumerate(IMPOSSIBLE)]
)
def test_it_is_refused_and_its_neighbour_is_stored(
    sqlite_engine: Engine, reason: Reason, observation: Observation
) -> None:
    writer = IngestWriter(sqlite_engine, lambda: NOW)
    applied = writer.apply_counted(batch(launch(), observation, level("kv.used_tokens")))
    assert applied.refused == {reason: 1}
    assert (applied.samples, applied.distributions) == (1, 0)
    assert writer.statistics.refused == {reason: 1}
    assert len(rows(sqlite_engine, "sample")) == 1
    assert rows(sqlite_engine, "request") == []
    assert rows(sqlite_engine, "event") == []


POSSIBLE: list[Observation] = [
    level("kv.usage", value=0.0),
    level("kv.usage", value=1.0),
    level("spec.accept_length", value=1.0),
    increment(value=0.0),
    increment(span_ms=1),
    level(time_ms=NOW + DAY_MS),
    level(labels={str(i): "x" * 1024 for i in range(64)}),
    histogram(buckets=(0.0, 0.0, 0.0), count=0.0, sum=0.0),
    histogram(bounds=(), buckets=(6.0,)),
    level(value=1e308),
    level(labels={"a": "'; DROP TABLE sample; -- <script>"}),
]


@pytest.mark.parametrize("observation", POSSIBLE, ids=range(len(POSSIBLE)))
def test_the_edge_of_the_possible_is_stored(store_engine: Engine, observation: Observation) -> None:
    applied = IngestWriter(store_engine, lambda: NOW).apply_counted(batch(launch(), observation))
    assert applied.refused == {}
    assert applied.samples + applied.distributions == 1
    table = "distribution" if isinstance(observation, Distribution) else "sample"
    assert len(rows(store_engine, table)) == 1


def test_measurements_without_a_launch_are_refused(store_engine: Engine) -> None:
    writer = IngestWriter(store_engine, lambda: NOW)
    applied = writer.apply_counted(batch(level(), increment(), histogram(), launch=None))
    assert applied.refused == {Reason.NO_LAUNCH: 3}
    assert rows(store_engine, "sample") == []


def test_numbers_at_the_edge_of_the_columns_are_stored(store_engine: Engine) -> None:
    writer = IngestWriter(store_engine, lambda: NOW)
    largest = request(prompt_tokens=2**63 - 1, completion_tokens=2**31)
    assert writer.apply_counted(batch(launch(), largest)).refused == {}
    assert rows(store_engine, "request", "prompt_tokens") == [(2**63 - 1,)]


def test_samples_older_than_what_is_kept_are_refused_when_so_configured(sqlite_engine: Engine) -> None:
    writer = IngestWriter(sqlite_engine, lambda: NOW, Limits(max_age_ms=DAY_MS))
    applied = writer.apply_counted(
        batch(launch(), level(time_ms=NOW - DAY_MS), increment(time_ms=NOW - DAY_MS - 1))
    )
    assert (applied.samples, applied.refused) == (1, {Reason.TOO_OLD: 1})


def test_refusals_are_logged_when_they_change(sqlite_engine: Engine) -> None:
    writer = IngestWriter(sqlite_engine, lambda: NOW)
    with capture_logs() as logs:
        writer.apply(batch(launch(), level(value=math.nan)))
        writer.apply(batch(level(value=math.nan), sequence=2))
        writer.apply(batch(level(), sequence=3))
    assert [entry["refused"] for entry in logs] == [{Reason.NOT_FINITE: 1}, {}]


@pytest.mark.parametrize(
    ("time_ms", "reason"),
    [
        (T0 - 1, Reason.TOO_OLD),
        (T0, None),
        (NOW + MAX_AHEAD_MS, None),
        (NOW + MAX_AHEAD_MS + 1, Reason.FUTURE),
    ],
)
def test_the_oldest_and_the_latest_time_that_can_be_meant_are_taken(
    time_ms: int, reason: Reason | None
) -> None:
    assert time_reason(time_ms, T0, NOW) is reason
