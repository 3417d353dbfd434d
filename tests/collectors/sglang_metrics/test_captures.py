"""Every captured answer yields exactly the numbers that stand in it."""

from __future__ import annotations

import pytest
from tests.collectors.sglang_metrics.captured import (
    NAMES,
    mapped_fixture,
    the_value,
    values,
    version_of_fixture,
)

from specscope_collectors.catalogue import CATALOGUE, Kind

LLAMA = "meta-llama/Llama-3.1-8B-Instruct"

COUNTERS: dict[str, dict[str, float]] = {
    "0.4.6": {"tokens.prompt": 2060, "tokens.generated": 1280, "tokens.cached": 320, "requests.finished": 5},
    "0.5.2": {
        "tokens.prompt": 2060,
        "tokens.generated": 1280,
        "requests.retracted": 0,
        "requests.finished": 5,
    },
    "0.5.8": {"tokens.generated": 1280, "tokens.decoded": 1080, "tokens.prefill_computed": 2048},
    "0.5.15": {
        "spec.verify_calls": 375,
        "tokens.generated": 1280,
        "tokens.cached": 320,
        "tokens.decoded": 1080,
    },
    "0.5.23": {"spec.verify_calls": 375, "tokens.generated": 1280, "tokens.prefill_cached": 64},
    "0.5.8-real": {
        "tokens.prompt": 191,
        "tokens.generated": 180,
        "tokens.decoded": 164,
        "tokens.prefill_computed": 191,
        "tokens.prefill_cached": 0,
        "requests.finished": 16,
        "engine.graph_passes": 55,
    },
    "0.5.23-real": {
        "spec.verify_calls": 351,
        "tokens.prompt": 329,
        "tokens.generated": 776,
        "tokens.decoded": 779,
        "tokens.prefill_computed": 330,
        "requests.finished": 24,
        "time.scheduler_idle": 8.439706278000001,
    },
    "0.5.23-base-real": {"tokens.decoded": 752, "tokens.prefill_computed": 330, "requests.finished": 24},
}

LEVELS: dict[str, dict[str, float]] = {
    "0.4.6": {"spec.accept_length": 3.4375, "throughput.generated": 1123.47, "kv.usage": 0.31},
    "0.5.2": {"spec.accept_length": 3.4375, "requests.running": 8, "requests.queued": 2},
    "0.5.8": {"spec.accept_length": 3.4375, "spec.engine_accept_rate": 0.859375, "kv.max_tokens": 59456},
    "0.5.15": {
        "spec.accept_length": 3.4375,
        "spec.engine_accept_rate": 0.8125,
        "spec.num_steps": 3,
        "spec.num_draft_tokens": 4,
        "engine.forward_occupancy": 91.3 / 100,
    },
    "0.5.23": {
        "spec.engine_accept_rate": 0.8125,
        "spec.num_steps": 3,
        "memory.weights": 15.6,
        "memory.kv_cache": 7.3,
    },
    "0.5.8-real": {
        "spec.accept_length": 2.0,
        "spec.engine_accept_rate": 0.5,
        "requests.running": 1,
        "throughput.generated": 2.192898764832098,
    },
    "0.5.23-real": {
        "spec.accept_length": 2.0,
        "spec.engine_accept_rate": 0.3333333333333333,
        "spec.num_steps": 3,
        "spec.num_draft_tokens": 4,
        "engine.sum_sequence_lengths": 13,
        "kv.max_tokens": 8192,
        "memory.graphs": 0,
    },
}

HISTOGRAMS: dict[str, dict[str, tuple[float, float, int]]] = {
    "0.4.6": {
        "latency.time_to_first_token": (5, 0.41000000000000003, 18),
        "latency.end_to_end": (5, 8.65, 19),
    },
    "0.5.2": {"latency.inter_token": (50, 0.4350000000000001, 23), "latency.end_to_end": (5, 8.65, 22)},
    "0.5.8": {"latency.queue": (1, 0.013, 36)},
    "0.5.15": {"latency.queue": (1, 0.013, 40)},
    "0.5.23": {"latency.time_per_output_token": (5, 0.033, 23)},
    "0.5.8-real": {"latency.end_to_end": (16, 261.14271235466003, 22)},
    "0.5.23-real": {
        "latency.time_to_first_token": (24, 1.0065825051392494 + 0.018228191000162042, 18),
        "latency.end_to_end": (24, 44.58410831700053 + 0.14166474300009213, 22),
        "latency.inter_token": (15, 0.12284825799974897, 23),
        "latency.queue": (25, 0.02727226200045152, 40),
    },
}


@pytest.mark.parametrize("name", COUNTERS)
def test_counters(name: str) -> None:
    counters = mapped_fixture(name).counters
    for metric, expected in COUNTERS[name].items():
        found = [value for (key, _), value in counters.items() if key == metric]
        assert found, metric
        expected_series = 1 if metric != "engine.graph_passes" else len(found)
        assert (metric, sum(found), len(found)) == (metric, expected, expected_series)


@pytest.mark.parametrize("name", LEVELS)
def test_levels(name: str) -> None:
    levels = mapped_fixture(name).levels
    assert {metric: the_value(levels, metric) for metric in LEVELS[name]} == LEVELS[name]


@pytest.mark.parametrize("name", HISTOGRAMS)
def test_histograms(name: str) -> None:
    histograms = {metric: state for (metric, _), state in mapped_fixture(name).histograms.items()}
    for metric, (count, total, bounds) in HISTOGRAMS[name].items():
        state = histograms[metric]
        assert (state.count, state.sum, len(state.bounds)) == (count, total, bounds)
        assert sum(state.buckets) == count


@pytest.mark.parametrize("name", NAMES)
def test_whole_answers_are_read_without_complaint(name: str) -> None:
    mapped = mapped_fixture(name)
    assert (mapped.refused, mapped.refusals, mapped.is_truncated, mapped.demo) == (0, [], False, False)
    assert mapped.version_from_metric_set == version_of_fixture(name)
    assert mapped.models == {"models/tiny-target" if "real" in name else LLAMA}


@pytest.mark.parametrize("name", NAMES)
def test_only_catalogued_metrics_of_the_right_kind_come_out(name: str) -> None:
    mapped = mapped_fixture(name)
    assert mapped.series == len(mapped.counters) + len(mapped.levels) + len(mapped.histograms) > 10
    for kind, series in (
        (Kind.INCREMENT, mapped.counters),
        (Kind.LEVEL, mapped.levels),
        (Kind.DISTRIBUTION, mapped.histograms),
    ):
        assert {CATALOGUE[metric].kind for metric, _ in series} == {kind}


def test_the_same_windows_print_different_rates_in_different_versions() -> None:
    """0.5.8 prints τ/D: at D = 4 its 0.50 is a strict acceptance of (2.00 − 1)/3, which 0.5.23 prints."""
    old, new = mapped_fixture("0.5.8-real").levels, mapped_fixture("0.5.23-real").levels
    length = the_value(old, "spec.accept_length")
    assert length == the_value(new, "spec.accept_length") == 2.0
    assert the_value(old, "spec.engine_accept_rate") == length / 4
    assert the_value(new, "spec.engine_accept_rate") == pytest.approx((length - 1) / 3)


def test_two_data_parallel_ranks_are_kept_apart() -> None:
    mapped = mapped_fixture("0.5.23-dp2")
    assert values(mapped.levels, "spec.accept_length", "dp_rank") == {"0": 3.1, "1": 3.3000000000000003}
    assert values(mapped.levels, "throughput.generated", "dp_rank") == {"0": 500.0, "1": 600.0}
    assert values(mapped.counters, "tokens.decoded", "dp_rank") == {"0": 1080.0, "1": 1080.0}
    assert {dict(rank)["dp_rank"]: dict(rank)["tp_rank"] for rank in mapped.ranks} == {"0": "0", "1": "1"}


def test_046_labels_no_ranks() -> None:
    mapped = mapped_fixture("0.4.6-dp2")
    assert mapped.ranks == set()
    assert len(values(mapped.levels, "spec.accept_length")) == 1


def test_without_speculation_there_is_no_acceptance() -> None:
    """0.5.23 prints 0 for every speculative gauge then; none of them is a measurement."""
    mapped = mapped_fixture("0.5.23-base-real")
    assert [metric for metric, _ in (*mapped.levels, *mapped.counters) if metric.startswith("spec.")] == []


def test_occupancy_without_the_device_timer_is_silently_absent() -> None:
    assert the_value(mapped_fixture("0.5.23-real").levels, "engine.forward_occupancy") is None


def test_streaming_and_other_requests_are_one_count() -> None:
    """24 requests, of which one streamed: 23 + 1."""
    keys = [key for key in mapped_fixture("0.5.23-real").counters if key[0] == "requests.finished"]
    assert keys == [("requests.finished", (("engine_type", "unified"), ("model_name", "models/tiny-target")))]


def test_device_time_keeps_the_categories_of_its_version() -> None:
    old = values(mapped_fixture("0.5.8").counters, "time.forward", "category")
    new = values(mapped_fixture("0.5.15").counters, "time.forward", "category")
    assert old == {"forward_extend": 0.21, "forward_decode": 0.83}
    assert new == {"extend": 0.21, "eagle_draft": 0.11, "target_verify": 0.62, "eagle_draft_extend": 0.07}


def test_processor_time_names_the_scheduler_too() -> None:
    found = values(mapped_fixture("0.5.23-real").counters, "time.process_cpu", "component")
    assert found == {
        "tokenizer": 0.38000000000000134,
        "detokenizer": 0.0600000000000005,
        "scheduler": 7.709691204999999,
    }


def test_graph_memory_is_the_sum_of_its_phases() -> None:
    assert the_value(mapped_fixture("0.5.23").levels, "memory.graphs") == pytest.approx(0.4 + 0.1 + 0.1)


def test_scheduler_stages_stay_apart() -> None:
    stages = {
        (dict(labels)["category"], dict(labels)["forward_overlap"]): value
        for (metric, labels), value in mapped_fixture("0.5.23").counters.items()
        if metric == "time.scheduler_stage"
    }
    assert stages["run_batch", "partial"] == 0.5
    assert stages["process_batch_result", "full"] == 0.2
    assert len(stages) == 11
