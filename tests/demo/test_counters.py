"""Counters grow as SGLang's do: together at the finish, never backwards, and they add up."""

from __future__ import annotations

import math

import pytest
from tests.demo.playing import families, leader_value, play, player, running, samples, single, telemetry

from specscope_server.demo.model import CycleModel
from specscope_server.demo.story import PHASES, Load, Story

CUMULATIVE = ("_total", "_bucket", "_count", "_sum")
ALL_PHASES_SECONDS = 345


@pytest.mark.parametrize("version", ["0.5.8", "0.5.23"])
def test_counters_fall_only_at_restarts(version: str) -> None:
    subject = player(version)
    before: dict[object, float] = {}
    launch, restarts = 0, 0
    for _ in play(subject, ALL_PHASES_SECONDS, 3_000):
        if subject.current is None:
            continue
        now = samples(subject)
        if running(subject).launch.index == launch:
            fallen = [
                key for key, value in before.items() if str(key[0]).endswith(CUMULATIVE) and now[key] < value
            ]
            assert fallen == []
            assert before.keys() <= now.keys()
        else:
            launch, restarts = running(subject).launch.index, restarts + 1
            tokens = running(subject).telemetry.realtime_tokens["decode"]
            assert tokens < 1000  # from zero again
        before = now
    assert restarts == 8


@pytest.mark.parametrize("version", ["0.5.8", "0.5.23"])
def test_tokens_are_requests_plus_calls_plus_delivered_drafts(version: str) -> None:
    subject = single(CycleModel(3), version, load=Load(rate=1.5))
    for _ in play(subject, 300, 10_000):
        counted = running(subject).telemetry
        requests = sum(counted.requests.values())
        tokens = sum(counted.generation_tokens.values())
        assert tokens == requests + counted.verify_calls + counted.accepted_delivered
    assert requests > 300


def test_realtime_tokens_run_ahead_of_finished_requests() -> None:
    counted = telemetry(single(CycleModel(5)), 300)
    finished = sum(counted.generation_tokens.values()) - sum(counted.requests.values())
    assert counted.realtime_tokens["decode"] > finished > 0


@pytest.mark.parametrize("version", ["0.5.8", "0.5.23"])
def test_acceptance_gauges_freeze_while_idle(version: str) -> None:
    story = Story(30)
    idle = next(index for index, phase in enumerate(PHASES) if phase.name == "idle")
    begins, ends = (story.starts_ms()[index] / 1000 for index in (idle, idle + 1))
    subject = player(version)
    telemetry(subject, ends - 6)
    assert not running(subject).running
    frozen = [
        leader_value(subject, name) for name in ("sglang:spec_accept_length", "sglang:spec_accept_rate")
    ]
    steps = running(subject).telemetry.decode_steps
    telemetry(subject, ends - 1)
    assert running(subject).telemetry.decode_steps == steps
    assert frozen == [
        leader_value(subject, name) for name in ("sglang:spec_accept_length", "sglang:spec_accept_rate")
    ]
    assert frozen[0] >= 1
    assert ends - begins > 20


def test_new_engine_shows_idle_at_once_and_old_one_after_half_a_minute() -> None:
    for version, expected in (("0.5.23", 0.0), ("0.5.8", 1.0)):
        subject = single(CycleModel(2), version, load=Load(rate=0.02))
        seen = set()
        for _ in play(subject, 600):
            if running(subject).telemetry.decode_steps >= 40 and not running(subject).running:
                seen.add(leader_value(subject, "sglang:num_running_reqs"))
        assert expected in seen
        assert 0.0 in seen


def test_occupancy_is_nan_before_and_after_but_not_during_work() -> None:
    subject = single(CycleModel(2), load=Load(rate=0.02))
    seen = [leader_value(subject, "sglang:fwd_occupancy") for _ in play(subject, 600)]
    assert any(math.isnan(value) for value in seen)
    assert all(0 < value <= 100 for value in seen if not math.isnan(value))


def test_every_rank_reports_its_times() -> None:
    subject = single(CycleModel(2))
    telemetry(subject, 30)
    verify = [
        sample
        for sample in families(subject)["sglang:forward_execution_seconds"].samples
        if sample.labels["category"] == "target_verify"
    ]
    assert sorted(sample.labels["tp_rank"] for sample in verify) == list("01234567")


def test_stages_fill_the_wall_time() -> None:
    subject = single(CycleModel(2), load=Load(rate=0.3))
    counted = telemetry(subject, 600)
    assert sum(counted.stage_ms.values()) == pytest.approx(600_000, rel=0.01)
    assert sum(counted.forward_ms.values()) <= sum(counted.stage_ms.values())


def test_histograms_agree_with_the_counters() -> None:
    subject = single(CycleModel(2), load=Load(rate=1.0))
    counted = telemetry(subject, 300)
    requests = sum(counted.requests.values())
    assert sum(h.count for h in counted.end_to_end.values()) == requests
    assert sum(h.count for h in counted.per_token.values()) == requests
    assert sum(h.count for h in counted.first_token.values()) >= requests
    assert counted.queue.count >= requests
    mean_ms = 1000 * counted.inter_token.sum / counted.inter_token.count
    assert 5 < mean_ms < 40
