"""Synthetic captures of eight ranks: what was put in is found again, within 1 %."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.support.traces import Answer, Plan, write, write_merged

from specscope_collectors.observations import TracePhase, TraceRank, TraceSummary
from specscope_collectors.traces.accounts import unpacked
from specscope_collectors.traces.bounds import Bounds, TraceError
from specscope_collectors.traces.notes import FUSED, NO_PHASES
from specscope_collectors.traces.reading import ReadFile, read_file
from specscope_collectors.traces.summary import summarise

OFFSETS = {1: 4_000_000.0, 2: -77_000.0, 5: 123.456}
CYCLE = ("draft", "verify", "sampling", "draft_extend")


def read(paths: list[Path]) -> TraceSummary:
    """Reduce files."""
    return summarise(_opened(paths), "test", 0)


def _opened(paths: list[Path]) -> Iterator[ReadFile]:
    for path in paths:
        with path.open("rb") as stream:
            yield read_file(stream, path.name, Bounds())


def phase(rank: TraceRank, name: str) -> TracePhase:
    """Return a phase that must be there."""
    return next(each for each in rank.phases if each.phase == name)


def check_times(summary: TraceSummary, answer: Answer, cycles: int, phases: tuple[str, ...] = CYCLE) -> None:
    """Every rank's phases have the count, the wall times and the times by class that were simulated."""
    for number, rank in enumerate(summary.ranks):
        for name in phases:
            found = phase(rank, name)
            assert found.count == cycles
            assert unpacked(found.wall_ms) == pytest.approx(answer.wall_ms[number][name], rel=0.01)
            for kind, total in answer.exclusive_ms[number][name].items():
                array = found.gap_ms if kind == "gap" else found.class_ms[kind]
                assert unpacked(array).sum() == pytest.approx(total, rel=0.01), (number, name, kind)
            parts = sum(unpacked(each).sum() for each in (*found.class_ms.values(), found.gap_ms))
            assert parts == pytest.approx(unpacked(found.wall_ms).sum(), rel=1e-5)


@pytest.mark.parametrize("name", ["step[VERIFY bs=4]", "step[TARGET_VERIFY bs=4]", "specscope.target"])
def test_phases_and_classes_of_eight_ranks(tmp_path: Path, name: str) -> None:
    paths, answer = write(Plan(offsets_us=OFFSETS, verify_name=name), tmp_path, noise=200)
    summary = read(paths)
    assert [rank.labels["tp_rank"] for rank in summary.ranks] == [str(n) for n in range(8)]
    assert {rank.basis for rank in summary.ranks} == {"launches"}
    assert {rank.cycles for rank in summary.ranks} == {20}
    check_times(summary, answer, 20)
    if "bs=" in name:
        assert phase(summary.ranks[0], "verify").batch_sizes == {4: 20}


def test_where_the_engine_and_the_probe_name_a_phase_the_engines_name_counts(tmp_path: Path) -> None:
    paths, answer = write(Plan(ranks=2, also_own=True), tmp_path)
    alone = tmp_path / "alone"
    alone.mkdir()
    summary, of_engine = read(paths), read(write(Plan(ranks=2), alone)[0])
    check_times(summary, answer, 20)
    for rank, without in zip(summary.ranks, of_engine.ranks, strict=True):
        assert rank.ranges == without.ranges == {"draft": 20, "verify": 20, "draft_extend": 20}
        assert phase(rank, "verify").batch_sizes == {4: 20}


def test_hidden_communication_is_told_from_bare(tmp_path: Path) -> None:
    paths, answer = write(Plan(ranks=2, transfer_us=20), tmp_path)
    for rank in read(paths).ranks:
        verify = phase(rank, "verify")
        assert unpacked(verify.busy_ms["collective"]).sum() == pytest.approx(answer.hidden_ms, rel=0.01)
        assert "collective" not in verify.class_ms  # none of it is bare
        assert unpacked(verify.class_ms["all_reduce"]).sum() == pytest.approx(20 * 6 * 0.020, rel=0.01)


def test_a_straggler_is_found_whatever_the_clocks_say(tmp_path: Path) -> None:
    paths, answer = write(Plan(straggler=3, offsets_us=OFFSETS), tmp_path)
    summary = read(paths)
    verify = next(each for each in summary.collectives if each.phase == "verify")
    assert (verify.aligned, verify.not_aligned) == (20 * 6 * 2, 0)
    assert verify.last == {f"TP{number}": 120 if number == 3 else 0 for number in range(8)}
    hidden = answer.hidden_ms  # the same on all ranks: all of it is transfer
    assert verify.transfer_ms == pytest.approx(answer.transfer_ms["verify"] + hidden, rel=0.01)
    for number in range(8):
        expected = answer.waiting_ms[number]["verify"]
        assert verify.waiting_ms[f"TP{number}"] == pytest.approx(expected, rel=0.01, abs=1e-3)
    assert verify.waiting_ms["TP0"] == pytest.approx(20 * 6 * 0.030, rel=0.01)
    for number, rank in enumerate(summary.ranks):
        assert rank.clock_offset_ms == pytest.approx(OFFSETS.get(number, 0.0) / 1000, abs=0.02)


def test_a_capture_that_begins_a_cycle_later_is_aligned_by_its_pattern(tmp_path: Path) -> None:
    from tests.support.traces import Simulation, document

    simulation = Simulation(Plan(ranks=2, straggler=1, offsets_us={1: 5e6}))
    late = simulation.ranks[1]
    first = sorted(e["ts"] for e in late.events if e["name"] == "draft")[1]
    launches = {e["args"]["correlation"] for e in late.events if "Launch" in e["name"] and e["ts"] < first}
    late.events = [
        e for e in late.events
        if not ((e["ts"] < first and e["cat"] != "kernel") or e["args"].get("correlation") in launches)
    ]  # fmt: skip
    import json

    paths = []
    for rank in simulation.ranks:
        paths.append(tmp_path / f"1-TP-{rank.number}.trace.json")
        paths[-1].write_text(json.dumps(document(rank, 2)))
    summary = read(paths)
    assert [rank.cycles for rank in summary.ranks] == [20, 19]
    verify = next(each for each in summary.collectives if each.phase == "verify")
    assert verify.aligned == 19 * 12
    assert verify.not_aligned == 12
    assert verify.waiting_ms["TP0"] == pytest.approx(19 * 6 * 0.030, rel=0.01)
    assert any("different numbers of cycles" in note for note in summary.notes)


def test_ranges_on_the_gpu_serve_when_launches_are_missing(tmp_path: Path) -> None:
    paths, answer = write(Plan(ranks=2, named=False, mirrored=True, hidden_us=0), tmp_path)
    summary = read(paths)
    assert {rank.basis for rank in summary.ranks} == {"gpu_ranges"}
    check_times(summary, answer, 20)


@pytest.mark.parametrize("eager", [True, False])
def test_structure_serves_when_nothing_is_named(tmp_path: Path, eager: bool) -> None:
    paths, answer = write(Plan(ranks=2, named=False, eager_extend=eager), tmp_path)
    summary = read(paths)
    for rank in summary.ranks:
        assert rank.basis == "structure"
        assert rank.confidence == 1.0
        assert rank.cycles == 20
    check_times(summary, answer, 20, ("draft", "verify"))
    if eager:
        assert phase(summary.ranks[0], "after_verify").count == 20
    else:
        check_times(summary, answer, 20)
    assert any("CUDA graphs; 100% of cycles" in note for note in summary.notes)


def test_no_phases_are_invented(tmp_path: Path) -> None:
    paths, _ = write(Plan(ranks=1, named=False, cycles=2), tmp_path)
    summary = read(paths)
    assert summary.ranks[0].basis == "none"
    assert summary.ranks[0].phases == ()
    assert NO_PHASES in summary.notes
    assert summary.ranks[0].unattributed_ms > 0


def test_fused_all_reduce_is_a_class_of_its_own(tmp_path: Path) -> None:
    paths, answer = write(Plan(ranks=2, fused=True), tmp_path)
    summary = read(paths)
    assert FUSED in summary.notes
    check_times(summary, answer, 20)
    assert "all_reduce" not in phase(summary.ranks[0], "verify").class_ms


def test_cycles_add_up_to_wall_time(tmp_path: Path) -> None:
    paths, answer = write(Plan(ranks=1), tmp_path)
    rank = read(paths).ranks[0]
    cycle, rest = unpacked(phase(rank, "cycle").wall_ms), unpacked(phase(rank, "unattributed").wall_ms)
    assert len(cycle) == 19
    covered = sum(np.array(answer.wall_ms[0][name][:19]) for name in CYCLE)
    assert cycle == pytest.approx(covered + rest, rel=1e-4)
    assert rest == pytest.approx(np.full(19, 0.020 + 4 * 0.003), rel=0.01)


def test_a_merged_file_says_the_same_as_its_parts(tmp_path: Path) -> None:
    paths, _ = write(Plan(ranks=3, straggler=1), tmp_path)
    merged, _ = write_merged(Plan(ranks=3, straggler=1), tmp_path)
    parts, whole = read(paths), read([merged])
    assert [rank.labels for rank in whole.ranks] == [rank.labels for rank in parts.ranks]
    assert [rank.phases for rank in whole.ranks] == [rank.phases for rank in parts.ranks]
    assert whole.collectives == parts.collectives


def test_two_files_of_one_rank_are_refused(tmp_path: Path) -> None:
    paths, _ = write(Plan(ranks=2, cycles=3), tmp_path)
    with pytest.raises(TraceError, match="2 files are of TP1: name the files of one capture"):
        read([*paths, paths[1]])
