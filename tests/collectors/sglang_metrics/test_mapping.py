"""Rules of the mapping that no captured answer shows: splits, priorities, spellings, impossible values."""

from __future__ import annotations

import pytest
from tests.collectors.sglang_metrics.captured import (
    body_of,
    map_body,
    mapped_fixture,
    the_value,
    values,
)

from specscope_collectors.exposition.parse import parse_exposition
from specscope_collectors.increments import CounterMemory, advance
from specscope_collectors.sources.sglang_metrics.mapping import map_exposition
from specscope_collectors.sources.sglang_metrics.table import WANTED

TTFT = "sglang:time_to_first_token_seconds"


def histogram(labels: str, cumulative: tuple[float, ...] = (1, 2, 3), *, total: float = 4.0) -> str:
    """A histogram with bounds 1 and 2; ``labels`` without braces."""
    bounds = ("1.0", "2.0", "+Inf")
    comma = "," if labels else ""
    buckets = "".join(
        f'{TTFT}_bucket{{{labels}{comma}le="{bound}"}} {count}\n'
        for bound, count in zip(bounds, cumulative, strict=True)
    )
    return f"{TTFT}_sum{{{labels}}} {total}\n{buckets}{TTFT}_count{{{labels}}} {cumulative[-1]}\n"


@pytest.mark.parametrize("name", ["0.4.6", "0.5.8-real", "0.5.23-dp2"])
def test_underscore_spelling_maps_alike(name: str) -> None:
    other = map_body(body_of(name).replace(b"sglang:", b"sglang_"))
    expected = mapped_fixture(name)
    assert (other.counters, other.levels) == (expected.counters, expected.levels)
    assert other.histograms == expected.histograms
    assert other.version_from_metric_set == expected.version_from_metric_set


def test_a_router_labels_its_workers_and_its_own_metrics_are_not_taken() -> None:
    mapped = map_body(
        'sglang_num_running_reqs{worker_addr="http://a:1"} 3\n'
        'sglang_num_running_reqs{worker_addr="http://b:1"} 4\n'
        "sglang_router_requests_total 99\n"
    )
    assert values(mapped.levels, "requests.running", "worker_addr") == {"http://a:1": 3, "http://b:1": 4}
    assert mapped.series == 2


def test_a_metric_in_both_spellings_is_not_counted_twice() -> None:
    mapped = map_body("sglang:num_requests_total 5\nsglang_num_requests_total 5\n")
    assert the_value(mapped.counters, "requests.finished") == 5
    assert mapped.refused == 1
    assert "is used instead" in mapped.refusals[0]


def test_another_engines_metrics_map_to_nothing() -> None:
    mapped = map_body('vllm:num_requests_running{model_name="m"} 1\nsglang_router_requests_total 99\n')
    assert (mapped.series, mapped.version_from_metric_set, mapped.models) == (0, None, set())


def test_streaming_is_summed_away() -> None:
    mapped = map_body(
        'sglang:generation_tokens_total{is_streaming="false",model_name="m"} 700\n'
        'sglang:generation_tokens_total{is_streaming="true",model_name="m"} 76\n'
    )
    assert mapped.counters == {("tokens.generated", (("model_name", "m"),)): 776.0}


def test_the_total_over_priorities_replaces_its_parts() -> None:
    mapped = map_body(
        'sglang:num_running_reqs{priority=""} 5\n'
        'sglang:num_running_reqs{priority="0"} 2\n'
        'sglang:num_running_reqs{priority="9"} 3\n'
    )
    assert mapped.levels == {("requests.running", ()): 5.0}


def test_a_series_without_priority_is_the_total_too() -> None:
    mapped = map_body('sglang:num_queue_reqs 5\nsglang:num_queue_reqs{priority="1"} 3\n')
    assert mapped.levels == {("requests.queued", ()): 5.0}


def test_priorities_without_a_total_are_summed() -> None:
    mapped = map_body(
        'sglang:num_requests_total{priority="0",is_streaming="true"} 2\n'
        'sglang:num_requests_total{priority="0",is_streaming="false"} 5\n'
        'sglang:num_requests_total{priority="1",is_streaming="false"} 3\n'
    )
    assert mapped.counters == {("requests.finished", ()): 10.0}


def test_an_empty_priority_of_request_counters_is_no_total_but_the_requests_without_one() -> None:
    """SGLang sets the label only for requests that carry a priority; the others stay under the empty one."""
    mapped = map_body(
        'sglang:spec_verify_calls_total{priority=""} 3600\n'
        'sglang:spec_verify_calls_total{priority="1"} 7200\n'
    )
    assert mapped.counters == {("spec.verify_calls", ()): 10800.0}


def test_priorities_do_not_mix_ranks() -> None:
    mapped = map_body(
        'sglang:num_running_reqs{dp_rank="0",priority=""} 5\n'
        'sglang:num_running_reqs{dp_rank="0",priority="1"} 5\n'
        'sglang:num_running_reqs{dp_rank="1",priority="1"} 4\n'
    )
    assert values(mapped.levels, "requests.running", "dp_rank") == {"0": 5.0, "1": 4.0}


def test_a_mean_cannot_be_put_together_from_priorities() -> None:
    mapped = map_body(
        'sglang:spec_accept_length{priority="0"} 2\nsglang:spec_accept_length{priority="1"} 3\n'
        'sglang:cache_hit_rate{priority="0"} 0.5\nsglang:cache_hit_rate{priority="1"} 0.5\n'
    )
    assert mapped.levels == {("cache.hit_rate", ()): 0.5}
    assert mapped.refused == 1
    assert "from 2 to 3" in mapped.refusals[0]


def test_a_process_number_is_no_label() -> None:
    mapped = map_body('sglang:num_queue_reqs{pid="77",tp_rank="0"} 1\n')
    assert mapped.levels == {("requests.queued", (("tp_rank", "0"),)): 1.0}


def test_labels_of_the_operator_stay() -> None:
    mapped = map_body('sglang:num_requests_total{cluster="eu",model_name="m"} 1\n')
    assert list(mapped.counters) == [("requests.finished", (("cluster", "eu"), ("model_name", "m")))]


def test_a_draft_engine_listed_beside_the_target_stays_apart() -> None:
    mapped = map_body(
        'sglang:num_requests_total{engine_type="unified",model_name="target"} 7\n'
        'sglang:num_requests_total{engine_type="unified",model_name="draft"} 9\n'
        'sglang:num_requests_total{engine_type="decode",model_name="target"} 4\n'
    )
    assert sorted(mapped.counters.values()) == [4.0, 7.0, 9.0]
    assert mapped.models == {"target", "draft"}


def test_ranks_and_models_are_those_that_reported() -> None:
    mapped = map_body(
        'sglang:num_queue_reqs{dp_rank="1",model_name="m",tp_rank="4"} 0\n'
        'sglang:num_requests_total{model_name="m"} 0\n'
        'other{tp_rank="9",model_name="x"} 0\n'
    )
    assert mapped.ranks == {(("dp_rank", "1"), ("tp_rank", "4"))}
    assert mapped.models == {"m"}


def test_the_demo_engine_is_known() -> None:
    assert map_body("specscope_demo_info 1\nsglang:num_queue_reqs 0\n").demo
    assert not map_body("sglang:num_queue_reqs 0\n").demo


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("num_requests_total", "NaN", "no measurement"),
        ("num_requests_total", "+Inf", "no measurement"),
        ("num_requests_total", "-1", "negative"),
        ("num_running_reqs", "NaN", "no measurement"),
        ("num_running_reqs", "-3", "negative"),
        ("token_usage", "1.2", "above 1"),
        ("cache_hit_rate", "1.01", "above 1"),
        ("fwd_occupancy", "+Inf", "no measurement"),
    ],
)
def test_an_impossible_value_is_refused_alone(name: str, value: str, reason: str) -> None:
    mapped = map_body(f'sglang:{name}{{tp_rank="0"}} {value}\nsglang:{name}{{tp_rank="1"}} 1\n')
    assert mapped.series == 1
    assert mapped.refused == 1
    assert reason in mapped.refusals[0]
    assert "tp_rank=0" in mapped.refusals[0]


def test_occupancy_is_a_share_and_its_nan_is_no_complaint() -> None:
    mapped = map_body('sglang:fwd_occupancy{tp_rank="0"} NaN\nsglang:fwd_occupancy{tp_rank="1"} 91.3\n')
    assert values(mapped.levels, "engine.forward_occupancy", "tp_rank") == {"1": 91.3 / 100}
    assert mapped.refused == 0


@pytest.mark.parametrize("bad", ["NaN", "-1", "oops"])
def test_a_sum_with_a_refused_part_is_left_out_and_its_growth_comes_later(bad: str) -> None:
    """Half of a sum would look like a reset: 700 after 776 would count 700 tokens twice."""
    template = (
        'sglang:generation_tokens_total{{is_streaming="false"}} 700\n'
        'sglang:generation_tokens_total{{is_streaming="true"}} {}\n'
        "sglang:num_requests_total 24\n"
    )
    first = map_body(template.format(76))
    damaged = map_body(template.format(bad))
    last = map_body(template.format(80))
    assert the_value(damaged.counters, "tokens.generated") is None
    assert the_value(damaged.counters, "requests.finished") == 24
    assert damaged.refused == 1
    memory, grown = CounterMemory(), 0.0
    for time_ms, mapped in ((1_000, first), (2_000, damaged), (3_000, last)):
        result = advance(memory, mapped.counters, mapped.histograms, time_ms)
        memory = result.memory
        grown += sum(record.value for record in result.increments if record.metric == "tokens.generated")
    assert grown == 4


def test_a_sum_with_a_contradicted_part_is_left_out_for_that_series_only() -> None:
    mapped = map_body(
        'sglang:num_requests_total{is_streaming="true",model_name="a"} 1\n'
        'sglang:num_requests_total{is_streaming="true",model_name="a"} 2\n'
        'sglang:num_requests_total{is_streaming="false",model_name="a"} 5\n'
        'sglang:num_requests_total{is_streaming="false",model_name="b"} 7\n'
    )
    assert values(mapped.counters, "requests.finished", "model_name") == {"b": 7.0}
    assert mapped.refused == 1


def test_a_family_cut_by_the_series_limit_is_left_out() -> None:
    body = "sglang:num_queue_reqs 1\n" + "".join(
        f'sglang:num_requests_total{{user="{at}"}} 1\n' for at in range(9)
    )
    mapped = map_body(body, max_series=5)
    assert mapped.counters == {}
    assert mapped.levels == {("requests.queued", ()): 1.0}
    assert mapped.refused == 5


@pytest.mark.parametrize("cut", [1, 7, 40_000])
def test_nothing_is_taken_from_an_answer_that_was_cut_off(cut: int) -> None:
    mapped = map_body(body_of("0.5.23-real")[:-cut])
    assert (mapped.series, mapped.is_truncated) == (0, True)
    assert mapped.models == {"models/tiny-target"}
    assert "cut off" in mapped.refusals[-1]


def test_sums_do_not_depend_on_the_order_of_lines() -> None:
    lines = [
        f'sglang:num_requests_total{{priority="{at}"}} {value}\n' for at, value in enumerate((0.1, 0.2, 0.3))
    ]
    assert map_body("".join(lines)).counters == map_body("".join(reversed(lines))).counters


def test_histogram_splits_are_summed_per_bucket() -> None:
    mapped = map_body(
        histogram('is_streaming="true"') + histogram('is_streaming="false"', (0, 5, 5), total=1.5)
    )
    ((key, state),) = mapped.histograms.items()
    assert key == ("latency.time_to_first_token", ())
    assert (state.bounds, state.buckets, state.count, state.sum) == ((1.0, 2.0), (1, 6, 1), 8, 5.5)


def test_request_histograms_add_up_over_priorities_and_the_requests_without_one() -> None:
    mapped = map_body(histogram('priority=""') + histogram('priority="1"') + histogram('priority="2"'))
    ((_, state),) = mapped.histograms.items()
    assert state.count == 9


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (histogram("", (3, 2, 3)), "fall with le"),
        (histogram("", (1, 2, 3)).replace("_count{} 3", "_count{} 4"), "count 4 and +Inf bucket 3"),
        (histogram("").replace(f"{TTFT}_sum{{}} 4.0\n", ""), "incomplete"),
        (histogram("").replace(f"{TTFT}_count{{}} 3\n", ""), "incomplete"),
        (histogram("").replace('le="+Inf"', 'le="3.0"'), "incomplete"),
        (histogram("").replace('le="1.0"', 'le="one"'), "le='one'"),
        (histogram("").replace(',le="1.0"', "").replace('le="1.0"', ""), "le=None"),
        (histogram("", total=-1.0), "negative"),
        (histogram("").replace("} 4.0", "} NaN"), "no measurement"),
        (
            histogram('is_streaming="true"') + histogram('is_streaming="false"').replace("2.0", "3.0"),
            "different buckets",
        ),
    ],
)
def test_an_impossible_histogram_is_refused(body: str, reason: str) -> None:
    mapped = map_body(body + "sglang:num_queue_reqs 1\n")
    assert mapped.histograms == {}
    assert the_value(mapped.levels, "requests.queued") == 1
    assert mapped.refused == 1
    assert reason in mapped.refusals[0]


def test_a_histogram_with_a_bad_line_is_left_out() -> None:
    mapped = map_body(histogram("").replace("} 2\n", "} two\n"))
    assert (mapped.histograms, mapped.refused) == ({}, 1)


def test_refusals_of_parser_and_mapping_are_one_count_with_few_examples() -> None:
    body = "sglang:num_queue_reqs x\n" + "".join(
        f'sglang:num_running_reqs{{tp_rank="{at}"}} -1\n' for at in range(9)
    )
    mapped = map_body(body + "sglang:token_usage 0\n")
    assert mapped.refused == 10
    assert len(mapped.refusals) == 5
    assert mapped.refusals[0].startswith("line 1")


def test_a_refusal_shows_little_of_a_long_label() -> None:
    mapped = map_body(f'sglang:num_queue_reqs{{a="{"x" * 5_000}"}} -1\n')
    assert len(mapped.refusals[0]) < 300


@pytest.mark.parametrize(
    ("names", "version"),
    [
        ("sglang:num_running_reqs 1\n", "0.4.6"),
        ('sglang:num_running_reqs{tp_rank="0"} 1\n', "0.5.2"),
        ('sglang:num_running_reqs{tp_rank="0"} 1\nsglang:realtime_tokens_total{mode="decode"} 1\n', "0.5.8"),
        ("sglang:spec_accept_rate 0.5\n", "0.5.8"),
        ("sglang:spec_num_steps 0\n", "0.5.15"),
        ("sglang:spec_num_steps 0\nsglang:spec_cap_length 0\n", "0.5.23"),
        ("sglang_spec_cap_length 0\n", "0.5.23"),
    ],
)
def test_the_metric_set_tells_the_oldest_possible_version(names: str, version: str) -> None:
    assert map_body(names).version_from_metric_set == version


def test_mapping_is_pure() -> None:
    exposition = parse_exposition(body_of("0.5.23-dp2"), max_series=1_000, wanted=WANTED)
    assert map_exposition(exposition) == map_exposition(exposition)
