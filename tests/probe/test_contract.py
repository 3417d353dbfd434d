"""What the probe writes is what the collector reads: every family is mapped, every row is written."""

from __future__ import annotations

from collections import Counter

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from tests.probe.standin import Batch, ForwardMode, Request, engine
from tests.probe.test_probe import start

from specscope_collectors.catalogue import CATALOGUE
from specscope_collectors.exposition.mapped import Mapped
from specscope_collectors.exposition.parse import parse_exposition
from specscope_collectors.sources.sglang_metrics.mapping import map_exposition
from specscope_collectors.sources.sglang_metrics.table import TABLE, WANTED
from specscope_probe.states.counts import StateCounts
from specscope_probe.states.report import report_check, report_push, report_states

LABELS = {"engine_type": "unified", "tp_rank": 0, "pp_rank": 0, "moe_ep_rank": 0}
RANKS = tuple((name, str(value)) for name, value in LABELS.items())


@pytest.fixture
def exposed() -> tuple[CollectorRegistry, Mapped]:
    """The metrics of a stand-in engine that served, and what the collector makes of them."""
    scheduler = engine(accepts=lambda batch: [0, 2, 3])
    scheduler.metrics_collector = type("Collector", (), {"labels": LABELS})  # type: ignore[attr-defined]
    probe, registry = start(scheduler)
    requests = [Request(), Request("HEALTH_CHECK_1"), Request()]
    for mode in (ForwardMode.EXTEND, ForwardMode.DECODE):
        for _ in range(4):
            scheduler.run(Batch(requests, mode))
    probe.export()
    states = StateCounts(samples=Counter(verify=3), rows=Counter(verify_accepted=70), check_sample=16)
    states.check_ln_norms, states.device_seconds = (3.5,), 0.25
    assert probe._metrics is not None
    report_states(probe._metrics, states)
    report_check(probe._metrics, states)
    states.push_waiting = 2
    report_push(probe._metrics, states)
    exposition = parse_exposition(generate_latest(registry), max_series=10_000, wanted=WANTED)
    return registry, map_exposition(exposition)


def test_every_family_is_read_and_every_row_is_written(exposed: tuple[CollectorRegistry, Mapped]) -> None:
    registry, _ = exposed
    written = {
        sample.name
        for family in registry.collect()
        for sample in family.samples
        if not sample.name.endswith("_created")
    }
    assert written == {name for row in TABLE.guests for name in row.names}


def test_canonical_values_are_the_probes(exposed: tuple[CollectorRegistry, Mapped]) -> None:
    _, mapped = exposed
    assert mapped.refused == 0

    def counter(metric: str, **labels: str) -> float:
        return mapped.counters[(metric, tuple(sorted((*RANKS, *labels.items()))))]

    assert counter("spec.cycles") == 8
    assert counter("probe.worker_cycles") == 12
    assert counter("states.rows", phase="verify_accepted") == 70
    assert counter("states.invariants", kind="embedding") == 0
    assert counter("states.pushes", outcome="stored") == 0
    assert mapped.levels["states.push_waiting", tuple(sorted(RANKS))] == 2
    assert [counter("spec.drafts_accepted", position=k) for k in "123"] == [4, 4, 4]
    assert [counter("probe.worker_drafts_accepted", position=k) for k in "123"] == [8, 8, 4]
    assert [counter("spec.drafts_proposed", position=k) for k in "123"] == [8, 8, 8]
    assert counter("spec.cycles_by_accepted", accepted="3") == 4
    shape = {"batch": "3-4", "num_draft_tokens": "4", "overlap": "off", "clock": "host"}
    assert counter("time.cycles_timed", kind="speculative", **shape) == 2
    parts = [
        counter("time.phase", phase=phase, **shape)
        for phase in ("draft", "verify_prepare", "verify", "sampling", "draft_extend", "other")
    ]
    assert sum(parts) == pytest.approx(counter("time.cycle", kind="speculative", **shape))
    part = ("probe.part", tuple(sorted((*RANKS, ("part", "accepts"), ("state", "on")))))
    assert mapped.levels[part] == 1


def test_the_probe_says_nothing_of_the_engines_ranks_and_version(
    exposed: tuple[CollectorRegistry, Mapped],
) -> None:
    _, mapped = exposed
    assert mapped.ranks == set()
    assert mapped.models == set()


def test_every_row_is_catalogued() -> None:
    assert all(row.metric in CATALOGUE for row in TABLE.guests)
    labels = {label for row in TABLE.guests for label in CATALOGUE[row.metric].labels}
    assert {"position", "phase", "clock", "part", "state"} <= labels
