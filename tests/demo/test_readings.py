"""What an operator would read off the metrics is what the story tells (seeded, on a simulated clock)."""

from __future__ import annotations

import pytest
from tests.demo.playing import leader_value, play, running, single, telemetry

from specscope_server.demo.model import DEAD, CycleModel
from specscope_server.demo.player import Player
from specscope_server.demo.story import Load

SECONDS = 900


def mean_gauges(subject: Player, *names: str) -> list[float]:
    """Return the means of gauges that are read once a second."""
    readings = [
        [leader_value(subject, f"sglang:{name}") for name in names]
        for _ in play(subject, SECONDS)
        if running(subject).telemetry.decode_steps >= 40
    ]
    assert len(readings) > SECONDS * 0.9
    return [sum(column) / len(readings) for column in zip(*readings, strict=True)]


@pytest.mark.parametrize(
    ("num_steps", "wanted"), [(0, 88.8), (1, 86.3), (2, 94.0), (3, 91.7), (4, 85.8), (5, 79.0)]
)
def test_single_stream_throughput(num_steps: int, wanted: float) -> None:
    counted = telemetry(single(CycleModel(num_steps)), 1800)
    assert counted.realtime_tokens["decode"] / 1800 == pytest.approx(wanted, rel=0.008)


def test_throughput_gauge_reads_the_same() -> None:
    assert mean_gauges(single(CycleModel(2)), "gen_throughput") == [pytest.approx(94.0, rel=0.015)]


@pytest.mark.parametrize(
    ("version", "alphas", "length", "rate"),
    [
        ("0.5.8", DEAD, 1.12, 0.187),
        ("0.5.8", CycleModel(5).alphas, 2.82, 0.47),
        ("0.5.23", DEAD, 1.12, 0.024),
        ("0.5.23", CycleModel(5).alphas, 2.82, 0.364),
    ],
)
def test_acceptance_gauges(version: str, alphas: tuple[float, ...], length: float, rate: float) -> None:
    subject = single(CycleModel(5, alphas, network_tuned=False), version, load=Load(rate=0.5))
    read = mean_gauges(subject, "spec_accept_length", "spec_accept_rate")
    assert read == [pytest.approx(length, rel=0.02), pytest.approx(rate, rel=0.03)]


def test_verify_share_and_cut_in_the_device_timer() -> None:
    spent = {}
    for tuned in (False, True):
        counted = telemetry(single(CycleModel(5, network_tuned=tuned)), SECONDS)
        cycle_ms = sum(counted.stage_ms.values()) - counted.forward_ms["extend"]
        spent[tuned] = counted.forward_ms["target_verify"] / counted.decode_steps
        if not tuned:
            assert counted.forward_ms["target_verify"] / cycle_ms == pytest.approx(0.95, abs=0.005)
    assert spent[True] / spent[False] == pytest.approx(0.73, abs=0.005)


def test_counters_of_finished_requests_give_the_accept_length() -> None:
    counted = telemetry(single(CycleModel(3), load=Load(rate=1.5)), SECONDS)
    per_call = sum(counted.generation_tokens.values()) / counted.verify_calls
    assert per_call == pytest.approx(CycleModel(3).accept_length, rel=0.02)


def test_no_speculation_shows_zero_not_one() -> None:
    subject = single(CycleModel(0))
    assert telemetry(subject, 60).decode_steps > 40
    assert leader_value(subject, "sglang:spec_accept_length") == 0
    assert leader_value(subject, "sglang:spec_num_steps") == 0
    assert running(subject).telemetry.verify_calls == 0
