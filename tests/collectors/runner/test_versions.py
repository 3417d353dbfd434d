"""Every captured engine version through the whole collector: launch, levels, growth and hints."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest
from tests.collectors.fetch.servers import always, response
from tests.collectors.info.bodies import captured, v0_4_6, v0_5_2, v0_5_15
from tests.collectors.runner.engine import Bench, Engine, bench
from tests.collectors.sglang_metrics.captured import body_of

from specscope_collectors.catalogue import CATALOGUE
from specscope_collectors.observations import Distribution, HealthState, Increment, Level

DEVICE = "device time of draft and verify"
CALLS = "verify calls (exact accept length)"


@dataclass
class Captured:
    """One version: its metrics, its configuration, where that is found, and what is missing there."""

    fixture: str
    info: dict[str, Any]
    missing: dict[str, str]
    info_path: str = "/server_info"


UPGRADE_CALLS = {CALLS: "0.5.15"}
VERSIONS = [
    Captured(
        "0.4.6", v0_4_6(), UPGRADE_CALLS | {DEVICE: "0.5.8", "single ranks": "0.5.2"}, "/get_server_info"
    ),
    Captured("0.5.2", v0_5_2(), UPGRADE_CALLS | {DEVICE: "0.5.8"}, "/get_server_info"),
    Captured("0.5.8-real", captured("0.5.8"), UPGRADE_CALLS | {DEVICE: "DEVICE_TIMER=1"}),
    Captured("0.5.15", v0_5_15(), {}),
    Captured("0.5.23-real", captured("0.5.23"), {DEVICE: "DEVICE_TIMER=1"}),
    Captured(
        "0.5.23-base-real", captured("0.5.23-no-speculation"), {"speculative decoding": "--speculative-"}
    ),
]


def watching(case: Captured, *, with_info: bool = True) -> Any:
    answer = always(response(json.dumps(case.info).encode(), content_type="application/json"))
    nowhere = always(response(b"", "404 Not Found"))
    engine = Engine(overrides={"/server_info": nowhere, "/metrics": always(response(body_of(case.fixture)))})
    if with_info:
        engine.overrides[case.info_path] = answer
    return bench(engine)


@pytest.mark.parametrize("case", VERSIONS, ids=lambda case: case.fixture)
def test_launch_levels_and_hints(case: Captured) -> None:
    b: Bench
    with watching(case) as b:
        b.scrape(2)
        [launch] = b.sink.launches()
        assert launch.engine_version == case.info["version"]
        assert launch.speculative.algorithm == case.info["speculative_algorithm"]
        health = b.sink.health()
        assert health.state is HealthState.OK
        for subject, remedy in case.missing.items():
            assert remedy in health.missing[subject]
        accept_length = [each for each in b.sink.all(Level) if each.metric == "spec.accept_length"]
        assert bool(accept_length) is bool(launch.speculative.algorithm)
        for each in b.sink.all(Increment) + b.sink.all(Level) + b.sink.all(Distribution):
            assert each.metric in CATALOGUE
        assert {each.value for each in b.sink.all(Increment)} == {0}  # the same body twice: nothing grew


@pytest.mark.parametrize("case", VERSIONS, ids=lambda case: case.fixture)
def test_without_server_info_the_version_is_told_by_the_metrics(case: Captured) -> None:
    b: Bench
    with watching(case, with_info=False) as b:
        b.scrape(2)
        [launch] = b.sink.launches()
        assert launch.version_source == "metric_names"
        assert case.info["version"].startswith(launch.engine_version)
        hints = b.sink.health().missing
        assert not [hint for hint in hints.values() if "upgrade" in hint]  # it may be new enough already
        is_old = case.missing.get(CALLS) == "0.5.15"
        assert hints.get(CALLS) == ("SGLang 0.5.15 and later count verify calls" if is_old else None)


def test_two_data_parallel_ranks_both_report() -> None:
    case = Captured("0.5.23-dp2", captured("0.5.23") | {"dp_size": 2}, {})
    b: Bench
    with watching(case) as b:
        b.scrape()
        ranks = {each.labels["dp_rank"] for each in b.sink.all(Level) if each.metric == "requests.running"}
        assert ranks == {"0", "1"}
        assert not [subject for subject in b.sink.health().missing if "rank" in subject]


def test_a_data_parallel_rank_that_does_not_report_is_named() -> None:
    case = Captured("0.5.23-real", captured("0.5.23") | {"dp_size": 2}, {})
    b: Bench
    with watching(case) as b:
        b.scrape()
        assert "1 of 2 data-parallel ranks" in b.sink.health().missing
