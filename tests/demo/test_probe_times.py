"""The demo's probe speaks of the same cycles as its device timer, under the real probe's names."""

from __future__ import annotations

import pytest
from tests.demo.playing import families, running, single, telemetry

from specscope_collectors.sources.sglang_metrics.probe_table import probe_rows
from specscope_server.demo.model import CycleModel
from specscope_server.demo.story import Load

SECONDS = 120


def test_phases_are_the_device_timers_seconds_and_add_up_to_the_wall() -> None:
    subject = single(CycleModel(3), load=Load(rate=1.5))
    counted = telemetry(subject, SECONDS)
    by_name: dict[str, float] = {}
    held_back_ms = 0.0
    for sums in counted.probe.sums.values():
        held_back_ms += sums.warm_up_ms
        for name, spent_ms in sums.parts.items():
            by_name[name] = by_name.get(name, 0.0) + spent_ms
    assert by_name["verify"] == pytest.approx(counted.forward_ms["target_verify"], rel=0.05)
    assert by_name["verify"] < counted.forward_ms["target_verify"]
    assert sum(by_name.values()) + held_back_ms == pytest.approx(counted.probe.wall_ms)
    stages = sum(counted.stage_ms.values()) - counted.stage_ms["idle"]
    assert counted.probe.wall_ms == pytest.approx(stages)


@pytest.mark.parametrize(("num_steps", "phase"), [(3, "verify"), (0, "decode")])
def test_names_are_those_that_the_collector_reads(num_steps: int, phase: str) -> None:
    subject = single(CycleModel(num_steps))
    telemetry(subject, 30)
    known = {name for row in probe_rows(1, 0) for name in row.names if name}
    said = {
        sample.name: sample.labels
        for family in families(subject).values()
        for sample in family.samples
        if sample.name.startswith("specscope_") and sample.name != "specscope_demo_info"
    }
    assert said.keys() <= known
    phases = {
        sample.labels["phase"]
        for sample in families(subject)["specscope_phase_seconds"].samples
        if sample.value > 0
    }
    assert phase in phases
    assert running(subject).telemetry.probe.cycles_seen > 100


def test_an_engine_that_cannot_carry_the_probe_has_none() -> None:
    subject = single(CycleModel(3), "0.5.8")
    telemetry(subject, 30)
    assert not any("phase_seconds" in name for name in families(subject))
