"""Counters become growth: every rule once by hand, then laws over generated histories."""

from __future__ import annotations

import math
from dataclasses import dataclass

import msgspec
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from specscope_collectors import increments as module
from specscope_collectors.increments import (
    Advance,
    CheckpointError,
    CounterMemory,
    HistogramState,
    SeriesKey,
    advance,
)

CALLS: SeriesKey = ("spec.verify_calls", (("model_name", "m"), ("tp_rank", "0")))
TOKENS: SeriesKey = ("tokens.generated", ())
LATENCY: SeriesKey = ("latency.end_to_end", (("model_name", "m"),))


def scrape(
    memory: CounterMemory, time_ms: int, *, fresh_process: bool = False, **values: float
) -> tuple[Advance, dict[str, float]]:
    """Advance over counters named by keyword; return the result and increment per name."""
    counters: dict[SeriesKey, float] = {(name, ()): value for name, value in values.items()}
    result = advance(memory, counters, {}, time_ms, fresh_process=fresh_process)
    return result, {record.metric: record.value for record in result.increments}


def histogram(*buckets: float, total: float, bounds: tuple[float, ...] = (0.1, 1.0)) -> HistogramState:
    return HistogramState(bounds, buckets, sum(buckets), total)


def test_first_scrape_is_only_a_baseline() -> None:
    result = advance(CounterMemory(), {CALLS: 351.0}, {LATENCY: histogram(1, 2, 0, total=1.5)}, 1_000)
    assert result.increments == []
    assert result.distributions == []
    assert result.memory.counters[CALLS] == (351.0, 1_000)
    assert result.memory.scraped_ms == 1_000


def test_growth_names_its_interval_and_labels() -> None:
    first = advance(CounterMemory(), {CALLS: 351.0}, {}, 1_000)
    second = advance(first.memory, {CALLS: 360.0}, {}, 6_000)
    (record,) = second.increments
    assert (record.metric, record.labels) == ("spec.verify_calls", {"model_name": "m", "tp_rank": "0"})
    assert (record.time_ms, record.span_ms, record.value) == (6_000, 5_000, 9.0)


def test_no_growth_is_an_observed_zero() -> None:
    first, _ = scrape(CounterMemory(), 1_000, a=5.0)
    _, grown = scrape(first.memory, 2_000, a=5.0)
    assert grown == {"a": 0.0}


def test_a_series_that_appears_late_grew_from_zero_since_the_last_scrape() -> None:
    first, _ = scrape(CounterMemory(), 1_000, a=5.0)
    second, _ = scrape(first.memory, 3_000, a=6.0, b=7.0)
    late = next(record for record in second.increments if record.metric == "b")
    assert (late.value, late.span_ms) == (7.0, 2_000)


def test_growth_from_an_empty_first_scrape_is_seen() -> None:
    """An engine that has served nothing yet shows no counters; its first request must not be lost."""
    first = advance(CounterMemory(), {}, {}, 1_000)
    _, grown = scrape(first.memory, 2_000, a=3.0)
    assert grown == {"a": 3.0}


def test_a_fall_is_a_reset() -> None:
    first, _ = scrape(CounterMemory(), 1_000, a=100.0, b=50.0)
    second, grown = scrape(first.memory, 2_000, a=4.0, b=51.0)
    assert grown == {"a": 4.0, "b": 1.0}
    assert (second.fell, second.compared, second.all_fell) == (1, 2, False)


def test_all_fell_tells_a_restart() -> None:
    first, _ = scrape(CounterMemory(), 1_000, a=100.0, b=50.0, c=0.0)
    second, _ = scrape(first.memory, 2_000, a=4.0, b=0.0, c=9.0)
    assert second.all_fell
    assert (second.fell, second.compared) == (2, 2)


def test_counters_that_are_soon_full_hide_no_restart() -> None:
    warm = {"time.warm_up_cycles": 2.0, "time.warm_up": 0.04}
    first, _ = scrape(CounterMemory(), 1_000, a=100.0, **warm)
    second, _ = scrape(first.memory, 2_000, a=4.0, **{**warm, "time.warm_up": 0.08})
    assert second.all_fell
    assert (second.fell, second.compared) == (1, 1)


def test_nothing_to_compare_is_not_a_restart() -> None:
    first, _ = scrape(CounterMemory(), 1_000, a=0.0)
    second, _ = scrape(first.memory, 2_000, a=0.0, b=1.0)
    assert not first.all_fell
    assert not second.all_fell


def test_a_known_restart_counts_from_zero_even_where_values_rose() -> None:
    first, _ = scrape(CounterMemory(), 1_000, a=100.0, gone=70.0)
    second, grown = scrape(first.memory, 4_000, fresh_process=True, a=130.0)
    assert grown == {"a": 130.0}
    assert second.increments[0].span_ms == 3_000
    _, later = scrape(second.memory, 5_000, a=130.0, gone=80.0)
    assert later == {"a": 0.0, "gone": 80.0}


def test_a_restarted_process_grew_only_since_the_last_time_that_nothing_served() -> None:
    first, _ = scrape(CounterMemory(), 1_000, a=100.0)
    state = {("a", ()): 30.0}
    after = advance(first.memory, state, {}, 10_000, fresh_process=True, down_ms=8_000)
    assert [(record.value, record.span_ms) for record in after.increments] == [(30.0, 2_000)]
    before = advance(first.memory, state, {}, 10_000, fresh_process=True, down_ms=500)
    assert before.increments[0].span_ms == 9_000


def test_a_known_restart_before_any_scrape_is_only_a_baseline() -> None:
    _, grown = scrape(CounterMemory(), 1_000, fresh_process=True, a=5.0)
    assert grown == {}


def test_a_missing_series_keeps_its_baseline_and_widens_its_span() -> None:
    first, _ = scrape(CounterMemory(), 1_000, a=5.0, b=1.0)
    second, _ = scrape(first.memory, 2_000, b=2.0)
    third, grown = scrape(second.memory, 3_000, a=9.0, b=3.0)
    assert grown == {"a": 4.0, "b": 1.0}
    assert {record.metric: record.span_ms for record in third.increments} == {"a": 2_000, "b": 1_000}


@pytest.mark.parametrize("jump_ms", [0, -1, -3_600_000])
def test_a_clock_that_goes_back_delays_growth_but_loses_none(jump_ms: int) -> None:
    first, _ = scrape(CounterMemory(), 10_000_000, a=5.0)
    back, grown = scrape(first.memory, 10_000_000 + jump_ms, a=8.0)
    assert grown == {}
    assert back.clock_went_back
    third, grown = scrape(back.memory, 10_001_000 + jump_ms, a=9.0)
    assert grown == {"a": 4.0}
    assert third.increments[0].span_ms == 1_000


def test_a_restart_with_a_clock_that_goes_back_still_counts_from_zero() -> None:
    first, _ = scrape(CounterMemory(), 9_000, a=5.0)
    back, grown = scrape(first.memory, 8_000, fresh_process=True, a=7.0)
    assert grown == {}
    _, grown = scrape(back.memory, 9_000, a=7.0)
    assert grown == {"a": 7.0}


def test_a_fall_within_rounding_is_no_reset() -> None:
    first, _ = scrape(CounterMemory(), 1_000, a=0.3 + 1e-16, b=1.0)
    second, grown = scrape(first.memory, 2_000, a=math.nextafter(0.3, 0), b=1.0)
    assert grown["a"] == 0.0
    assert second.fell == 0


def test_histogram_growth_is_per_bucket() -> None:
    first = advance(CounterMemory(), {}, {LATENCY: histogram(1, 2, 0, total=1.5)}, 1_000)
    second = advance(first.memory, {}, {LATENCY: histogram(1, 4, 1, total=6.5)}, 2_000)
    (record,) = second.distributions
    assert (record.bounds, record.buckets) == ((0.1, 1.0), (0.0, 2.0, 1.0))
    assert (record.count, record.sum, record.span_ms) == (3.0, 5.0, 1_000)


@pytest.mark.parametrize(
    "now",
    [
        histogram(0, 9, 0, total=9.0),
        histogram(2, 2, 2, total=1.0),
        histogram(9, 9, 9, total=99.0, bounds=(0.2, 1.0)),
        HistogramState((0.1,), (9.0, 9.0), 18.0, 20.0),
    ],
    ids=["a bucket fell", "the sum fell", "other bounds", "fewer bounds"],
)
def test_a_histogram_that_cannot_have_grown_was_reset(now: HistogramState) -> None:
    first = advance(CounterMemory(), {}, {LATENCY: histogram(2, 2, 2, total=8.0)}, 1_000)
    (record,) = advance(first.memory, {}, {LATENCY: now}, 2_000).distributions
    assert (record.buckets, record.count, record.sum) == (now.buckets, now.count, now.sum)


def test_label_values_that_never_repeat_cannot_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_REMEMBERED_SERIES", 2)
    first, _ = scrape(CounterMemory(), 1_000, a=1.0)
    second, grown = scrape(first.memory, 2_000, a=2.0, b=1.0, c=1.0)
    assert grown == {"a": 1.0, "b": 1.0}
    assert second.refused == 1
    assert len(second.memory.counters) == 2


@dataclass(frozen=True)
class Moment:
    """One step of a generated history: growth of each series, then maybe a reset, then maybe a scrape."""

    growth: tuple[int, int]
    restart: bool
    is_scraped: bool


MOMENTS = st.lists(
    st.builds(Moment, st.tuples(st.integers(0, 9), st.integers(0, 9)), st.booleans(), st.booleans()),
    max_size=40,
)


def visible(moments: list[Moment]) -> list[Moment]:
    """Scrape right before each restart, so that no growth is hidden, and once at the end."""
    shown = []
    for at, moment in enumerate(moments):
        next_restarts = at + 1 == len(moments) or moments[at + 1].restart
        shown.append(Moment(moment.growth, moment.restart, moment.is_scraped or next_restarts))
    return shown


def play(moments: list[Moment], *, tell_restarts: bool) -> tuple[list[float], list[int]]:
    """Return (sum of increments, true growth) of two counters; each is also a two-bucket histogram."""
    values, truth, seen = [0, 0], [0, 0], [0.0, 0.0]
    keys: list[SeriesKey] = [("a", ()), ("b", ())]
    memory = advance(CounterMemory(), {}, {}, 0).memory
    restarted = False
    for time_ms, moment in enumerate(moments, start=1):
        if moment.restart:
            values, restarted = [0, 0], True
        for at, grown in enumerate(moment.growth):
            values[at] += grown
            truth[at] += grown
        if not moment.is_scraped:
            continue
        counters = {key: float(value) for key, value in zip(keys, values, strict=True)}
        result = advance(memory, counters, {}, time_ms, fresh_process=tell_restarts and restarted)
        memory, restarted = CounterMemory.decode(result.memory.encode()), False
        for record in result.increments:
            assert record.value >= 0
            assert record.span_ms > 0
            seen[0 if record.metric == "a" else 1] += record.value
    return seen, truth


@given(MOMENTS)
def test_increments_sum_to_the_true_growth_when_restarts_are_known(moments: list[Moment]) -> None:
    seen, truth = play(visible(moments), tell_restarts=True)
    assert seen == truth


@given(MOMENTS)
def test_increments_never_exceed_the_true_growth_when_restarts_must_be_guessed(moments: list[Moment]) -> None:
    seen, truth = play(visible(moments), tell_restarts=False)
    assert all(found <= true for found, true in zip(seen, truth, strict=True))


@given(st.lists(st.tuples(st.integers(0, 9), st.booleans()), min_size=1, max_size=40))
def test_omitting_scrapes_never_changes_the_sum(steps: list[tuple[int, bool]]) -> None:
    moments = [Moment((grown, 2 * grown), False, is_scraped) for grown, is_scraped in steps]
    some, truth = play(visible(moments), tell_restarts=False)
    everything = [Moment(moment.growth, False, True) for moment in moments]
    assert some == play(everything, tell_restarts=False)[0] == truth


@given(st.lists(st.lists(st.integers(0, 9), min_size=3, max_size=3), min_size=1, max_size=20))
def test_histogram_growth_adds_up(rounds: list[list[int]]) -> None:
    memory = advance(CounterMemory(), {}, {}, 0).memory
    totals, seen = [0, 0, 0], [0.0, 0.0, 0.0]
    for time_ms, added in enumerate(rounds, start=1):
        totals = [total + more for total, more in zip(totals, added, strict=True)]
        result = advance(memory, {}, {LATENCY: histogram(*totals, total=float(sum(totals)))}, time_ms)
        memory = result.memory
        (record,) = result.distributions
        seen = [total + more for total, more in zip(seen, record.buckets, strict=True)]
        assert record.count == sum(record.buckets) == record.sum
    assert seen == totals


LABELS = st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3)
KEYS = st.tuples(st.text(max_size=8), LABELS.map(lambda labels: tuple(sorted(labels.items()))))
NUMBERS = st.floats(min_value=0, allow_nan=False, allow_infinity=False)
STATES = st.lists(st.tuples(NUMBERS, NUMBERS), max_size=4).map(
    lambda pairs: HistogramState(
        tuple(bound for bound, _ in pairs), (*(count for _, count in pairs), 1.0), 9.0, 2.5
    )
)
MEMORIES = st.builds(
    CounterMemory,
    st.none() | st.integers(0, 2**53),
    st.dictionaries(KEYS, st.tuples(NUMBERS, st.integers(0, 2**53)), max_size=8),
    st.dictionaries(KEYS, st.tuples(STATES, st.integers(0, 2**53)), max_size=4),
)


@given(MEMORIES)
def test_a_memory_survives_its_checkpoint(memory: CounterMemory) -> None:
    assert CounterMemory.decode(memory.encode()) == memory


@given(st.binary(max_size=80))
def test_garbage_is_no_checkpoint(data: bytes) -> None:
    with pytest.raises(CheckpointError, match="checkpoint"):
        CounterMemory.decode(data)


@pytest.mark.parametrize(
    "wire",
    [
        [2, None, [], [], []],
        [1, None, [], [("a", 0, 1.0, 5)], []],
        [1, None, [()], [("a", -1, 1.0, 5)], []],
        [1, None, [()], [("a", 0, math.nan, 5)], []],
        [1, None, [()], [], [("h", 0, [[1.0], [1.0], 1.0, 1.0], 5)]],
        [1, None, [()], [], [("h", 0, [[1.0], [1.0, math.inf], 1.0, 1.0], 5)]],
        {"format": 1},
    ],
    ids=[
        "other format",
        "no such label set",
        "negative position",
        "NaN",
        "buckets do not fit",
        "infinite",
        "other shape",
    ],
)
def test_a_damaged_checkpoint_is_refused(wire: object) -> None:
    data = zstandard.ZstdCompressor().compress(msgspec.msgpack.encode(wire))
    with pytest.raises(CheckpointError, match="checkpoint"):
        CounterMemory.decode(data)


def test_a_checkpoint_that_claims_to_be_huge_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("specscope_collectors.counter_memory.MAX_CHECKPOINT_BYTES", 1_000)
    with pytest.raises(CheckpointError, match="at most"):
        CounterMemory.decode(zstandard.ZstdCompressor().compress(b"\0" * 2_000))


def test_a_checkpoint_of_many_series_is_small() -> None:
    counters: dict[SeriesKey, tuple[float, int]] = {
        ("m", (("model_name", "some/model"), ("rank", str(at)))): (float(at), 1_000) for at in range(500)
    }
    assert len(CounterMemory(1_000, counters).encode()) < 10_000


def test_a_sum_that_falls_within_rounding_grows_by_nothing() -> None:
    before = HistogramState((1.0,), (2.0, 1.0), 3.0, 1e6)
    after = HistogramState((1.0,), (3.0, 1.0), 4.0, 1e6 - 1e-4)
    found = module.histogram_growth(before, after)
    assert (found.buckets, found.count, found.sum) == ((1.0, 0.0), 1.0, 0.0)
