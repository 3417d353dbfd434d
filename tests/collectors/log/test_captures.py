"""Every captured log gives exactly what it says."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.collectors.log.reading import captured, ms

from specscope_collectors.catalogue import CATALOGUE
from specscope_collectors.sources.sglang_log.rate_definition import NONE, STRICT, WITH_BONUS

VERSIONS = ("0.4.6.post5", "0.5.2", "0.5.8", "0.5.15", "0.5.23")
THROUGHPUTS = {
    "0.4.6.post5": [1074.68, 326.67, 1077.15, 1085.71],
    "0.5.2": [1079.44, 326.70, 1085.90, 1084.86],
    "0.5.8": [1084.03, 326.64, 1085.83, 1085.81, 1085.84],
    "0.5.15": [1082.47, 326.66, 1085.90, 1085.88, 1085.88, 1085.83],
    "0.5.23": [1083.23, 326.64, 1085.38, 1085.39, 1085.39, 1085.41],
}
DEFINITIONS = {
    "0.4.6.post5": (NONE, None), "0.5.2": (NONE, None), "0.5.8": (WITH_BONUS, 4), "0.5.15": (STRICT, 4),
    "0.5.23": (STRICT, 4),
}  # fmt: skip
FORMS = {
    "0.4.6.post5": {"0.4.6": 4}, "0.5.2": {"0.5.2": 4}, "0.5.8": {"0.5.8": 5},
    "0.5.15": {"0.5.15 or later": 6}, "0.5.23": {"0.5.15 or later": 5, "0.5.23 or later": 1},
}  # fmt: skip
RANGES = dict(
    zip(
        VERSIONS,
        ("0.5.1 or earlier", "0.4.7–0.5.7", "0.5.3–0.5.14", "0.5.9 or later", "0.5.16 or later"),
        strict=True,
    )
)


@pytest.mark.parametrize("version", VERSIONS)
def test_generated_lines_of_each_version(version: str) -> None:
    found = captured(f"log-{version}.txt")
    lines = len(THROUGHPUTS[version])
    assert (found.summary.decode_lines, found.summary.prefill_lines) == (lines, lines)
    assert found.values("throughput.generated") == THROUGHPUTS[version]
    assert set(found.values("spec.accept_length")) == {3.33}
    assert len(found.values("spec.accept_length")) == lines - 1  # one part has no speculation
    assert set(found.values("requests.running")) == {8.0}
    assert set(found.values("kv.usage")) == {0.31}
    assert len(found.values("requests.queued", dp_rank="0")) == 2
    assert not found.summary.refused
    assert found.summary.forms == FORMS[version]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_lines_bound_the_version(version: str) -> None:
    (launch,) = captured(f"log-{version}.txt").launches
    assert (launch.engine_version, launch.version_source) == (RANGES[version], "log_lines")


@pytest.mark.parametrize("version", VERSIONS)
def test_the_definition_of_the_rate_is_decided_from_the_numbers(version: str) -> None:
    (launch,) = captured(f"log-{version}.txt").summary.launches
    assert launch.definition is not None
    assert (launch.definition.definition, launch.definition.draft_tokens) == DEFINITIONS[version]


@pytest.mark.parametrize(("version", "occupancy"), [("0.5.15", 0.913), ("0.5.23", 0.913), ("0.5.8", None)])
def test_occupancy_is_a_share(version: str, occupancy: float | None) -> None:
    found = captured(f"log-{version}.txt").values("engine.forward_occupancy")
    assert found == ([] if occupancy is None else [pytest.approx(occupancy)])


def test_milliseconds_and_iterations_are_read() -> None:
    found = captured("log-0.5.23.txt")
    times = [level.time_ms for level in found.levels if level.metric == "throughput.generated"]
    assert ms("2026-11-29 20:50:47.353") in times


def test_an_adaptive_switch_is_an_event() -> None:
    (event,) = captured("log-0.5.15.txt").events("adaptive_switch")
    assert event.time_ms == ms("2026-11-29 20:50:46")
    assert (event.detail["old_steps"], event.detail["new_steps"], event.detail["accept_length"]) == (
        3,
        7,
        2.71,
    )


def test_a_running_server_with_its_configuration() -> None:
    found = captured("server-eagle3-chain-0.5.8.log")
    assert found.values("spec.accept_length") == [2.2, 2.0, 2.0, 2.2, 2.6, 2.0, 2.0, 2.17, 2.0, 1.2, 2.0]
    assert found.values("spec.engine_accept_rate")[0] == 0.55
    assert (found.summary.decode_lines, found.summary.prefill_lines) == (11, 14)
    (launch,) = found.launches
    assert launch.time_ms == ms("2026-11-29 21:29:35")
    assert (launch.speculative.algorithm, launch.speculative.num_draft_tokens) == ("EAGLE3", 4)
    assert (launch.speculative.num_steps, launch.speculative.eagle_topk) == (3, 1)
    assert (launch.parallelism.tp_size, launch.model) == (1, "models/tiny-target")
    assert {level.labels["model_name"] for level in found.levels} == {launch.served_model_name}
    definition = found.summary.launches[0].definition
    assert definition is not None
    assert (definition.definition, definition.pairs) == (WITH_BONUS, 11)


def test_the_dict_form_of_the_configuration() -> None:
    found = captured("server-base-0.5.23.log")
    (launch,) = found.launches
    assert launch.model == "models/tiny-target"
    assert launch.speculative.algorithm is None
    assert len(launch.config) > 300
    assert found.values("throughput.generated") == [1.16, 10.51, 8.33, 17.81, 54.07, 13.93, 26.38, 7.53]
    assert found.values("spec.accept_length") == []
    assert found.summary.lines == 116


def test_the_end_of_a_log_without_a_configuration() -> None:
    found = captured("server-eagle3-chain-0.5.23.log")
    lengths = [2.17, 2.25, 2.05, 2.61, 2.0, 2.5, 2.4, 1.6, 1.0, 1.0, 2.0, 2.4, 1.8, 2.6]
    assert found.values("spec.accept_length") == lengths
    assert found.values("spec.engine_accept_rate")[8:10] == [0.0, 0.0]  # nothing accepted: a value, not a gap
    (launch,) = found.launches
    assert (launch.engine_version, launch.config) == ("0.5.9 or later", {})
    assert not found.summary.refused
    (event,) = found.events("rate_definition")
    assert event.detail["definition"] == STRICT


@pytest.mark.parametrize("name", ["log-0.5.23.txt", "server-eagle3-chain-0.5.23.log"])
def test_lines_within_one_second_stay_apart_and_every_metric_is_known(name: str) -> None:
    found = captured(name)
    keys = [(level.metric, *level.labels.items(), level.time_ms) for level in found.levels]
    assert len(set(keys)) == len(keys)
    assert {level.metric for level in found.levels} <= set(CATALOGUE)


def test_the_cycle_rate_of_a_rank() -> None:
    (launch,) = captured("log-0.5.8.txt").summary.launches
    (rank,) = [found for rank, found in launch.ranks.items() if rank.dp == 0]
    assert rank.cycles_per_second.median == pytest.approx(1085.81 / (3.33 * 8))


def test_the_log_of_a_running_server_agrees_with_its_metrics() -> None:
    """The last line before `/metrics` was read says what the gauges say, rounded."""
    path = Path(__file__).parents[1] / "sglang_metrics" / "fixtures" / "0.5.8-real" / "metrics.txt"
    gauges = {
        line.split("{")[0]: float(line.split()[-1]) for line in path.read_text().splitlines() if "{" in line
    }
    found = captured("server-eagle3-chain-0.5.8.log")
    for metric, raw in (
        ("spec.accept_length", "spec_accept_length"),
        ("throughput.generated", "gen_throughput"),
    ):
        assert found.values(metric)[-1] == round(gauges[f"sglang:{raw}"], 2)
