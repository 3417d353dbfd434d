"""The pure parts: lengths of time, selectors, scrapes put together, chunk sizes, checkpoints."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.collectors.sglang_metrics.captured import NAMES, body_of, mapped_fixture, version_of_fixture

from specscope_collectors.alternation import Seen
from specscope_collectors.checkpoint import KnownCodec
from specscope_collectors.engines import engine_named
from specscope_collectors.exposition.parse import parse_exposition
from specscope_collectors.increments import CheckpointError, CounterMemory, SeriesKey
from specscope_collectors.sources.prometheus import chunks, state
from specscope_collectors.sources.prometheus.answers import RawSeries
from specscope_collectors.sources.prometheus.durations import duration_ms, moment_ms, promql_duration
from specscope_collectors.sources.prometheus.engines import engine_names
from specscope_collectors.sources.prometheus.replay import agrees
from specscope_collectors.sources.prometheus.scrapes import exposition, put_together, target_labels
from specscope_collectors.sources.prometheus.selectors import check_matcher, equals, named, selector
from specscope_collectors.sources.prometheus.settings import Config

NOW_MS = 1_800_000_000_000


@pytest.mark.parametrize(
    ("text", "length_ms"), [("30d", 2_592_000_000), ("1d12h", 129_600_000), ("90s", 90_000), ("250ms", 250)]
)
def test_lengths_of_time(text: str, length_ms: int) -> None:
    assert duration_ms(text) == length_ms
    assert moment_ms(text, NOW_MS) == NOW_MS - length_ms
    assert duration_ms(promql_duration(length_ms)) == length_ms


@pytest.mark.parametrize("text", ["", "30", "d", "-3d", "3 d", "3y", "1" * 20 + "s", "2026-13-01", "now"])
def test_what_is_no_time_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="30d"):
        moment_ms(text, NOW_MS)


def test_moments_are_utc_unless_they_say() -> None:
    assert moment_ms("2020-01-02", NOW_MS) - moment_ms("2020-01-01T00:00Z", NOW_MS) == 86_400_000
    assert moment_ms("2020-01-01T01:00+01:00", NOW_MS) == moment_ms("2020-01-01", NOW_MS)
    assert moment_ms("99999d", NOW_MS) == moment_ms("1999-01-01", NOW_MS) == moment_ms("2015-01-01", NOW_MS)


@given(st.text())
def test_a_value_never_leaves_its_quotes(value: str) -> None:
    matcher = equals("instance", value)
    assert check_matcher(matcher) == matcher or "\n" in matcher
    inside = matcher.removeprefix('instance="').removesuffix('"')
    assert not re.search(r'(?<!\\)(?:\\\\)*"', inside)


@pytest.mark.parametrize(
    "text", ["", "a", 'a="b"} or vector(1)', 'a="b",c="d"', "a='b'", 'a="\n"', '"a"="b"', 'a="b" #']
)
def test_what_is_no_matcher_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="matcher"):
        check_matcher(text)
    with pytest.raises(ValueError, match="match"):
        Config(url="http://p", match=(text,))


def test_names_share_their_prefix_and_match_exactly() -> None:
    matcher = named(["sglang:a_total", "sglang:b", "up"])
    assert matcher == '__name__=~"sglang:(?:a_total|b)|(?:up)"'
    assert selector(matcher, 'x="y"') == "{" + matcher + ',x="y"}'
    pattern = re.compile(named(engine_names())[len('__name__=~"') : -1])
    assert all(pattern.fullmatch(name) for name in engine_names())


@pytest.mark.parametrize("name", NAMES)
def test_a_captured_answer_comes_back_from_its_series(name: str) -> None:
    """All that Prometheus adds is taken off, and the mapping sees what it sees in the answer itself."""
    whole = parse_exposition(body_of(name), max_series=100_000, wanted=None)
    added = {"instance": "a:1", "job": "j", "zone": "z"}
    series = [
        RawSeries({"__name__": each, **dict(labels), **added}, [(1.5, repr(value))])
        for (each, labels), value in whole.samples.items()
        if each in engine_names()
    ]
    series.append(RawSeries({"__name__": "up", **added}, [(1.5, "1")]))
    together = put_together(series, target_labels(series), 0)
    (scrape,) = together.scrapes
    assert (scrape.time_ms, scrape.up, dict(scrape.witness)) == (1_500, 1.0, added)
    theirs = engine_named("sglang").map(exposition(scrape, 100_000, together.doubled), adaptive=False)
    ours = mapped_fixture(name)
    assert (theirs.counters, theirs.levels, theirs.histograms) == (
        ours.counters, ours.levels, ours.histograms,
    )  # fmt: skip
    assert theirs.version_from_metric_set == ours.version_from_metric_set == version_of_fixture(name)


def test_a_label_that_clashed_gets_its_name_back() -> None:
    metric = {"__name__": "sglang:x", "exported_job": "mine", "job": "prometheus-job", "instance": "a"}
    (scrape,) = put_together([RawSeries(metric, [(1, "2")])], frozenset(), 0).scrapes
    assert scrape.samples == {("sglang:x", (("job", "mine"),)): 2.0}
    assert scrape.witness == (("instance", "a"), ("job", "prometheus-job"))


def test_series_that_cannot_be_told_apart_are_left_out() -> None:
    metric = {"__name__": "sglang:x", "instance": "a"}
    twice = [RawSeries(metric, [(1, "2")]), RawSeries(metric, [(1, "3")])]
    together = put_together(twice, frozenset(), 0)
    assert together.doubled == {"sglang:x"}
    assert not together.scrapes[0].samples


def test_more_series_than_allowed_are_cut_and_counted() -> None:
    series = [RawSeries({"__name__": "sglang:num_running_reqs", "a": str(i)}, [(1, "1")]) for i in range(20)]
    (scrape,) = put_together(series, frozenset(), 0).scrapes
    found = exposition(scrape, 5, frozenset())
    assert (len(found.samples), found.over_limit, found.refused) == (5, 15, 15)
    assert found.damaged == {"sglang:num_running_reqs"}


@given(st.lists(st.tuples(st.integers(0, 10**7), st.integers(1, 10**9)), max_size=50))
def test_chunks_stay_within_their_bounds(answers: list[tuple[int, int]]) -> None:
    size = chunks.ChunkSize()
    for samples, _ in answers:
        size.got(samples, size.length_ms)
        assert size.least_ms <= size.length_ms <= size.most_ms
        if samples == 0:
            assert size.length_ms <= size.empty_most_ms
    while size.halve(size.length_ms):
        pass
    assert size.length_ms == size.least_ms


@given(st.binary(max_size=200))
def test_bytes_that_are_no_checkpoint_are_refused(data: bytes) -> None:
    with pytest.raises(CheckpointError):
        state.decode(data)


def test_witnesses_agree_as_far_as_both_say() -> None:
    one = (("instance", "a"), ("job", "j"))
    assert agrees(one, (*one, ("zone", "z")))
    assert not agrees(one, (("instance", "b"), ("job", "j")))
    assert not agrees(one, (("replica", "a"),))


KEYS = st.sampled_from([("tokens.generated", (("tp_rank", "0"),)), ("requests.finished", ()), ("x", ())])
COUNTERS = st.dictionaries(KEYS, st.floats(0, 1e12))


@settings(deadline=None)  # other tests share the processors
@given(COUNTERS, COUNTERS, st.booleans(), st.integers(0, 12), st.none() | st.floats(0, 1e10))
def test_a_checkpoint_gives_back_the_whole_state(
    taken: dict[SeriesKey, float],
    waiting: dict[SeriesKey, float],
    is_calm: bool,
    left: int,
    fell_at: float | None,
) -> None:
    last = taken if is_calm else waiting
    memory = CounterMemory(5_000, {key: (value, 5_000) for key, value in taken.items()})
    seen = Seen(last=last, engine="sglang", fell_at=fell_at, held=left, calm_in=left)
    place = state.Place(asked_from_ms=1, done_to_ms=6_000, last_ms=5_000, close_to_ms=9_000)
    whole = state.State(place=place, memory=memory, seen=seen)
    assert state.decode(state.encode(whole, KnownCodec())) == whole
