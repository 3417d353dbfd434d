"""vLLM's metrics in canonical terms: every spelling says the same; what cannot be is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.vllm import Rank, VllmEngine

from specscope_collectors.catalogue import CATALOGUE
from specscope_collectors.engines import engine_named, engine_of, wanted_names
from specscope_collectors.exposition.mapped import Mapped
from specscope_collectors.exposition.parse import parse_exposition
from specscope_collectors.increments import SeriesKey
from specscope_collectors.sources.vllm_metrics.mapping import map_exposition
from specscope_collectors.sources.vllm_metrics.table import ENGINE_VERSIONS, NOT_MAPPED, TABLE

MODEL = ("model_name", "tiny/target")
RANK_0 = (("dp_rank", "0"), MODEL)


def mapped(body: bytes) -> Mapped:
    return map_exposition(parse_exposition(body, max_series=1_000, wanted=wanted_names()))


def positions(found: Mapped, metric: str) -> dict[str, float]:
    """Return position → count of rank 0; "" = not by position."""
    return {dict(labels).get("position", ""): value for (name, labels), value in found.counters.items()
            if name == metric and dict(labels).get("dp_rank", "0") == "0"}  # fmt: skip


@pytest.fixture
def engine() -> VllmEngine:
    made = VllmEngine()
    made.ranks[0] = Rank(3, cycles=100, proposed=[100, 100, 100], accepted=[70, 40, 10], emitted=220)
    made.ranks[0].finish("stop")
    made.ranks[0].finish("abort")
    return made


def test_counts_by_position_take_the_place_of_totals(engine: VllmEngine) -> None:
    found = mapped(engine.metrics())
    assert found.refused == 0
    assert found.counters["spec.cycles", RANK_0] == 100
    assert positions(found, "spec.drafts_accepted") == {"1": 70, "2": 40, "3": 10}
    assert positions(found, "spec.drafts_proposed") == {"1": 100, "2": 100, "3": 100}
    assert found.levels["spec.num_steps", RANK_0] == 3
    assert found.levels["spec.num_draft_tokens", RANK_0] == 4


def test_other_metrics(engine: VllmEngine) -> None:
    found = mapped(engine.metrics())
    assert found.counters["tokens.emitted", RANK_0] == 222
    assert found.counters["tokens.prompt", RANK_0] == 20
    reasons = {dict(labels)["finished_reason"]: value for (name, labels), value in found.counters.items()
               if name == "requests.finished"}  # fmt: skip
    assert reasons == {"stop": 1, "length": 0, "abort": 1}
    assert found.counters["requests.aborted", RANK_0] == 1
    assert found.levels["kv.usage", RANK_0] == 0.25
    assert found.histograms["latency.time_to_first_token", RANK_0].count == 2
    assert found.histograms["latency.inter_token", RANK_0].buckets == (0, 2, 0, 0)
    assert found.models == {"tiny/target"}


@pytest.mark.parametrize("spelling", ["0.8", "0.9"])
def test_older_names_say_the_same(engine: VllmEngine, spelling: str) -> None:
    newest = mapped(engine.metrics())
    engine.spelling = spelling
    older = mapped(engine.metrics())
    assert older.version_from_metric_set == spelling
    assert older.levels == newest.levels
    assert older.histograms == newest.histograms
    assert positions(older, "spec.drafts_accepted") == positions(newest, "spec.drafts_accepted")
    assert positions(older, "spec.drafts_proposed") == {"": 300}


def test_names_without_total_say_the_same(engine: VllmEngine) -> None:
    spelled = mapped(engine.metrics())
    engine.without_total = True
    assert mapped(engine.metrics()).counters == spelled.counters


def test_both_spellings_are_counted_once(engine: VllmEngine) -> None:
    once = mapped(engine.metrics())
    engine.without_total = True
    both = engine.metrics()
    engine.without_total = False
    assert mapped(both + engine.metrics()).counters == once.counters


def test_a_router_without_colons_is_read_too(engine: VllmEngine) -> None:
    assert mapped(engine.metrics().replace(b"vllm:", b"vllm_")).counters == mapped(engine.metrics()).counters


def test_running_totals_of_the_old_engine_are_no_counts(engine: VllmEngine) -> None:
    engine.spelling = "0.5"
    found = mapped(engine.metrics())
    assert not [metric for metric, _ in found.counters if metric.startswith("spec.")]
    assert found.levels["spec.lifetime_draft_acceptance", (MODEL,)] == pytest.approx(120 / 300)
    assert found.levels["spec.lifetime_efficiency", (MODEL,)] == pytest.approx(220 / 400)
    assert found.version_from_metric_set == "0.5"
    assert found.refused == 0


def test_a_rate_before_the_first_draft_is_unknown() -> None:
    found = mapped(VllmEngine(spelling="0.5").metrics())
    assert not [metric for metric, _ in found.levels if metric.startswith("spec.")]
    assert found.refused == 0


def test_ranks_stay_apart() -> None:
    engine = VllmEngine(size=2)
    engine.serve(50)
    engine.ranks[1].cycle(3, 3)
    found = mapped(engine.metrics())
    cycles = {dict(labels)["dp_rank"]: value for (name, labels), value in found.counters.items()
              if name == "spec.cycles"}  # fmt: skip
    assert cycles == {"0": 50, "1": 51}


IMPOSSIBLE = [
    pytest.param(Rank(2, cycles=10, proposed=[10, 10], accepted=[5, 6]), id="survival rises"),
    pytest.param(Rank(2, cycles=10, proposed=[10, 10], accepted=[11, 2]), id="more than cycles"),
    pytest.param(Rank(2, cycles=10, proposed=[5, 0], accepted=[5, 3]), id="more than proposed"),
]


@pytest.mark.parametrize("rank", IMPOSSIBLE)
def test_contradictory_counts_are_refused_and_counted(rank: Rank) -> None:
    engine = VllmEngine(depth=2, size=2)
    engine.serve(20)
    engine.ranks[0] = rank
    found = mapped(engine.metrics())
    assert found.refused == 1
    told = {dict(labels)["dp_rank"] for metric, labels in found.counters if metric.startswith("spec.")}
    assert told == {"1"}
    assert ("tokens.emitted", RANK_0) in found.counters


def test_a_position_beyond_the_others_is_no_depth(engine: VllmEngine) -> None:
    name = "vllm:spec_decode_num_accepted_tokens_per_pos_total"
    line = f'{name}{{engine="0",model_name="tiny/target",position="99"}} 5\n'
    found = mapped(engine.metrics() + line.encode())
    assert found.refused == 1
    assert ("spec.num_steps", RANK_0) not in found.levels
    assert positions(found, "spec.drafts_accepted") == {}


def test_a_position_that_is_no_number_spoils_its_metric_alone(engine: VllmEngine) -> None:
    body = engine.metrics().replace(b'position="1"', b'position="x"')
    found = mapped(body)
    assert found.refused == 2
    assert positions(found, "spec.drafts_accepted") == {}
    assert found.counters["spec.cycles", RANK_0] == 100
    assert found.counters["tokens.emitted", RANK_0] == 222


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=60),
    st.sampled_from(ENGINE_VERSIONS[1:]),
)
def test_sums_over_positions_are_what_was_served(cycles: list[tuple[int, int]], spelling: str) -> None:
    engine = VllmEngine(depth=4, spelling=spelling)
    for drafts, accepted in cycles:
        engine.ranks[0].cycle(drafts, min(drafts, accepted))
    found = mapped(engine.metrics())
    assert found.refused == 0
    assert sum(positions(found, "spec.drafts_accepted").values()) == sum(min(pair) for pair in cycles)
    assert sum(positions(found, "spec.drafts_proposed").values()) == sum(drafts for drafts, _ in cycles)
    assert found.counters["spec.cycles", RANK_0] == len(cycles)
    assert found.counters["tokens.emitted", RANK_0] == len(cycles) + sum(min(pair) for pair in cycles)


@pytest.mark.parametrize("spelling", ENGINE_VERSIONS)
def test_the_engine_is_told_by_its_names(spelling: str) -> None:
    names = parse_exposition(VllmEngine(spelling=spelling).metrics(), max_series=99, wanted=None).names
    told = engine_of(names, last=engine_named("sglang"))
    assert told is not None
    assert told.name == "vllm"


def test_every_name_is_mapped_or_says_why_not() -> None:
    mapped_names = {name for row in TABLE.rows for name in row.names}
    assert not mapped_names & set(NOT_MAPPED)
    assert {row.metric for row in TABLE.rows} <= set(CATALOGUE)


def test_keys_are_series_of_the_catalogue(engine: VllmEngine) -> None:
    found = mapped(engine.metrics())
    keys: list[SeriesKey] = [*found.counters, *found.levels, *found.histograms]
    assert {metric for metric, _ in keys} <= set(CATALOGUE)
