"""The probe inside a real SGLang: counts equal the requests' own, times add up, answers stay the same."""

from __future__ import annotations

import json
import time
from pathlib import Path

import httpx
import pytest
from tests.sglang_cpu.environment import SGLANG_VERSION
from tests.sglang_cpu.install import Rig
from tests.sglang_cpu.oracle import count_requests
from tests.sglang_cpu.other_versions import ensure_version
from tests.support.probe import Exposition, settled, variables
from tests.support.product import Document, serving
from tests.support.rig import Answer, Request, RunningRig

from specscope_probe.phases import PHASES

pytestmark = [pytest.mark.rig, pytest.mark.xdist_group("rig")]

REQUESTS = [Request(f"The {index}th cup of tea", 16 + 3 * index) for index in range(20)]
MAX_ADDED_BYTES = 60_000


def growth(before: Exposition, after: Exposition, name: str, label: str, **labels: str) -> dict[int, int]:
    """Return by how much counters grew, by the number in one label; without those that did not."""
    old, new = before.by(label, name, **labels), after.by(label, name, **labels)
    grown = {int(key): int(value - old.get(key, 0)) for key, value in new.items()}
    return {key: value for key, value in grown.items() if value}


def histogram_of(answers: list[Answer]) -> dict[int, int]:
    """Return cycles by accepted drafts as the requests' own answers say."""
    total: dict[int, int] = {}
    for answer in answers:
        for drafts, cycles in enumerate(answer["meta_info"]["spec_correct_drafts_histogram"]):
            total[drafts] = total.get(drafts, 0) + cycles
    return {drafts: cycles for drafts, cycles in total.items() if cycles}


def positions(histogram: dict[int, int]) -> dict[int, int]:
    """Return accepted drafts by position."""
    deepest = max(histogram)
    counts = {k: sum(n for d, n in histogram.items() if d >= k) for k in range(1, deepest + 1)}
    return {position: count for position, count in counts.items() if count}


def assert_requests_equal(before: Exposition, after: Exposition, answers: list[Answer]) -> dict[int, int]:
    """Compare the requests' view with the answers, exactly; return the histogram."""
    histogram = histogram_of(answers)
    view = {"view": "requests"}
    assert growth(before, after, "specscope_cycles_by_accepted_total", "accepted", **view) == histogram
    assert growth(before, after, "specscope_drafts_accepted_total", "position", **view) == positions(
        histogram
    )
    cycles = after.total("specscope_cycles_total", **view) - before.total("specscope_cycles_total", **view)
    assert cycles == sum(answer["meta_info"]["spec_verify_ct"] for answer in answers)
    return histogram


def test_counts_equal_the_oracle_and_the_answers(probed_rig: RunningRig) -> None:
    before = settled(probed_rig)
    answers = probed_rig.generate(REQUESTS, concurrency=4)
    after = settled(probed_rig)
    histogram = assert_requests_equal(before, after, answers)
    expected = count_requests((answer["output_ids"] for answer in answers), probed_rig.num_steps)
    assert [histogram.get(drafts, 0) for drafts in range(4)] == list(expected.histogram)
    view = {"view": "requests"}
    proposed = growth(before, after, "specscope_drafts_proposed_total", "position", **view)
    assert proposed == dict.fromkeys((1, 2, 3), expected.verify_calls)


def test_health_checks_are_work_and_no_requests(probed_rig: RunningRig) -> None:
    before = settled(probed_rig)
    httpx.get(f"{probed_rig.base_url}/health_generate", timeout=60.0).raise_for_status()
    [answer] = probed_rig.generate([Request("A cup of tea", 24)])
    after = settled(probed_rig)
    assert_requests_equal(before, after, [answer])
    name = "specscope_cycles_total"
    work = after.total(name, view="worker") - before.total(name, view="worker")
    credited = after.total(name, view="requests") - before.total(name, view="requests")
    assert work >= credited
    assert after.total("specscope_probe_refused_total") == 0


def test_the_phases_of_cycles_add_up(probed_rig: RunningRig) -> None:
    probed_rig.generate(REQUESTS[:4], concurrency=2)
    found = settled(probed_rig)
    for kind, phases in PHASES.items():
        cycle = found.total("specscope_cycle_seconds_total", kind=kind)
        parts = {phase: found.total("specscope_phase_seconds_total", phase=phase) for phase in phases}
        if kind in ("plain", "gap"):  # the one is not served here, the other is its own only phase
            assert cycle == 0
            continue
        assert all(seconds >= 0 for seconds in parts.values())
        assert sum(parts.values()) == pytest.approx(cycle, rel=1e-9)
    speculative = found.by("phase", "specscope_phase_seconds_total", num_draft_tokens="4", clock="host")
    assert all(speculative[phase] > 0 for phase in PHASES["speculative"])
    assert speculative["other"] < 0.2 * found.total("specscope_cycle_seconds_total", kind="speculative")


def test_the_product_shows_what_the_answers_say(probed_rig: RunningRig, tmp_path: Path) -> None:
    """Positions come from the probe's counters, without a client that reports requests."""
    with serving(tmp_path, {"rig": probed_rig.base_url}) as product:
        product.wait_for("good scrape", lambda: product.has_read("rig"))
        histogram = histogram_of(probed_rig.generate(REQUESTS, concurrency=4))
        cycles = sum(histogram.values())

        def counted() -> Document | None:
            groups = product.get("/acceptance/positions", server="rig")["groups"]
            return groups[0] if groups and groups[0]["cycles"] >= cycles else None

        group = product.wait_for("the probe's counts", counted)
        assert (group["evidence"], group["cycles"]) == ("draft_counters", cycles)
        assert {each["position"]: each["accepted"] for each in group["positions"]} == positions(histogram)
        [probe] = product.get("/sources")["servers"][0]["probes"]
        assert probe["is_well"]
        assert probe["worker"] == "EAGLEWorkerV2"


def test_every_part_works_and_the_cost_is_told(probed_rig: RunningRig) -> None:
    found = settled(probed_rig)
    on = found.by("part", "specscope_probe_part", state="on")
    assert on == {"timing": 1, "accepts": 1, "states": 1, "output": 1, "ranges": 1}
    assert found.total("specscope_probe_errors_total") == 0
    assert found.total("specscope_probe_host_seconds_total", where="cycle") > 0
    assert found.total("specscope_probe_wall_seconds_total") > 0
    [info] = [labels for name, labels, _ in found.samples if name == "specscope_probe_info"]
    assert info["worker"] == "EAGLEWorkerV2"
    assert (info["overlap"], info["clock"]) == ("off", "host")
    ours = [line for line in found.body.splitlines() if line.partition(" ")[0].startswith("specscope_")]
    assert sum(len(line) + 1 for line in ours) < MAX_ADDED_BYTES


def test_loaded_twice_it_is_installed_once(probed_rig: RunningRig) -> None:
    log = probed_rig.log_path.read_text(encoding="utf-8", errors="replace")
    assert log.count("specscope: measuring") == 1
    assert "hook_factory" in log, "the engine was not started with --forward-hooks"


def test_greedy_answers_are_the_same_without_the_probe(
    probed_rig: RunningRig, shared_rig: RunningRig
) -> None:
    requests = REQUESTS[:8]
    with_probe = probed_rig.generate(requests)
    without = shared_rig.generate(requests)
    assert [a["output_ids"] for a in with_probe] == [a["output_ids"] for a in without]
    assert [histogram_of([a]) for a in with_probe] == [histogram_of([a]) for a in without]


@pytest.mark.parametrize(
    ("version", "algorithm"),
    [
        (SGLANG_VERSION, "eagle3-tree"),
        (SGLANG_VERSION, "standalone"),
        (SGLANG_VERSION, "ngram"),
        ("0.5.20", "eagle3"),
        ("0.5.20", "eagle3-tree"),
        # With `make bench`: as above.
        pytest.param("0.5.20", "standalone", marks=pytest.mark.benchmark),
        pytest.param("0.5.20", "ngram", marks=pytest.mark.benchmark),
    ],
)
def test_other_drafts_and_versions(
    version: str, algorithm: str, installed_rig: Rig, probe_site: Path, tmp_path: Path
) -> None:
    """Trees, a draft model of its own, lookups, an older engine; at the end the probe takes itself out."""
    own = variables(probe_site, tmp_path)
    sglang = None if version == SGLANG_VERSION else ensure_version(version)
    running = RunningRig(installed_rig, tmp_path / "engine.log", algorithm, 3, variables=own, sglang=sglang)
    try:
        running.start()
        before = settled(running)
        answers = running.generate(REQUESTS[:8], concurrency=4)
        after = settled(running)
        histogram = assert_requests_equal(before, after, answers)
        proposed = growth(before, after, "specscope_drafts_proposed_total", "position", view="requests")
        steps = range(1, running.num_steps + 1)
        assert proposed == ({} if algorithm == "ngram" else dict.fromkeys(steps, sum(histogram.values())))
        if algorithm == "standalone":
            assert set(histogram) == {3}, "a target that drafts for itself is always right"
        assert after.by("part", "specscope_probe_part", state="on")["timing"] == 1
        assert after.by("engine_version", "specscope_probe_info") == {version: 1}
        phases = after.by("phase", "specscope_phase_seconds_total")
        assert phases["draft"] > 0
        assert phases["verify"] > 0
        assert_it_goes_away(running, tmp_path / "stop", answers[0])
    finally:
        running.stop()


def test_depths_that_adapt(installed_rig: Rig, probe_site: Path, tmp_path: Path) -> None:
    """The engine changes K as it sees fit; each cycle is counted with the K that it had."""
    config = tmp_path / "adaptive.json"
    config.write_text(json.dumps({"1": {"candidate_steps": [3]}, "2": {"candidate_steps": [1]}}))
    extra = ["--speculative-adaptive", "--speculative-adaptive-config", str(config)]
    own = variables(probe_site, tmp_path)
    running = RunningRig(installed_rig, tmp_path / "engine.log", "eagle3", 3, extra, own)
    try:
        running.start()
        before = settled(running)
        answers = running.generate(REQUESTS[:3]) + running.generate(REQUESTS[:9], concurrency=4)
        after = settled(running)
        histogram = assert_requests_equal(before, after, answers)
        proposed = growth(before, after, "specscope_drafts_proposed_total", "position", view="requests")
        assert proposed[1] == sum(histogram.values())
        assert 0 < proposed[2] == proposed[3] < proposed[1], "some cycles went to depth 1, some to depth 3"
        told = sum(answer["meta_info"]["spec_num_proposed_drafts"] for answer in answers)
        assert told == 3 * proposed[1], "the engine counts three for every cycle, whatever the depth was"
        assert set(after.by("num_draft_tokens", "specscope_cycles_timed_total")) >= {"2", "4"}
        assert after.total("specscope_probe_refused_total") == 0
    finally:
        running.stop()


def assert_it_goes_away(running: RunningRig, stop_file: Path, known: Answer) -> None:
    """Write the stop file and check that the engine goes on and nothing is counted any more."""
    stop_file.touch()
    deadline = time.monotonic() + 30
    while not Exposition(running.base_url).values("specscope_probe_part", part="timing", state="removed"):
        assert time.monotonic() < deadline, "the stop file was not seen"
        time.sleep(0.2)
    gone = settled(running)
    [answer] = running.generate(REQUESTS[:1])
    assert answer["output_ids"] == known["output_ids"]
    later = settled(running)
    assert later.total("specscope_cycles_seen_total") == gone.total("specscope_cycles_seen_total")
    assert later.total("specscope_cycles_total") == gone.total("specscope_cycles_total")
