"""The thread that finishes profiles: windows add up, a full spool costs windows, nothing grows for ever."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from specscope_probe.parts import Part, State
from specscope_probe.states.buffers import Sums
from specscope_probe.states.capture import RULE, Capture
from specscope_probe.states.counts import StateCounts
from specscope_probe.states.document import Identity
from specscope_probe.states.finishing import Finisher, Taken
from specscope_probe.states.limits import COMMON_IDS, Learnt
from specscope_probe.states.samples import SERVING_PHASES, Origin
from specscope_probe.states.spool import Spool

H, SLOTS, ROWS = 8, 2, 40
RANK = {"tp_rank": "0"}
CAPTURE = Capture((1, 2), (1, 2), RULE, H, SLOTS * H)


class Tensor:
    """What is asked of a tensor in host memory."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def numpy(self) -> Any:
        """Return the numbers."""
        return self.values


class Bench:
    """A finisher with a spool, and samples for it."""

    def __init__(self, folder: Path, max_bytes: int = 1 << 20) -> None:
        self.folder = folder
        self.part = Part("states")
        self.counts = StateCounts()
        self.learnt = Learnt(SLOTS, tuple(range(20)))
        identity = Identity(RANK, "0.5.23", "Llama", "0.1", 1, None)
        self.returned: list[Any] = []
        self.finisher = Finisher(
            self.part, identity, CAPTURE, SERVING_PHASES, self.learnt, self.counts, self.returned.append,
            Spool(folder, max_bytes, RANK),
        )  # fmt: skip

    def sample(self, seed: int, shift: float = 0.0, time_ms: int = 1_000) -> None:
        """Hand over one sampled forward; verify rows lie higher by ``shift``."""
        chance = np.random.default_rng(seed)
        phases = chance.integers(0, 3, ROWS)
        ln_norms = chance.normal(2, 0.1, (ROWS, SLOTS)).astype(np.float32)
        ln_norms[phases > 0] += np.float32(shift)
        buffer = SimpleNamespace(
            ln_norms=Tensor(ln_norms),
            sketches=Tensor(chance.standard_normal((ROWS, SLOTS, 16)).astype(np.float32)),
            first_values=Tensor(np.ones((ROWS, SLOTS, 5), np.float32)),
            ids=Tensor(chance.integers(0, 30, ROWS)),
            positions=Tensor(chance.integers(0, 100, ROWS)),
            phases=Tensor(phases),
        )
        origin = Origin(time_ms, chance.integers(0, 9, ROWS), self.learnt.limits, self.learnt.token_ids, None)
        self.finisher.take(Taken(buffer, origin))  # type: ignore[arg-type]

    def end(self) -> None:
        """End the window."""
        channels, tokens = np.zeros((3, SLOTS, 3, H), "<f4"), np.zeros((3, SLOTS, 21, 256), "<f4")
        self.finisher.take(Sums(Tensor(channels), Tensor(tokens)))

    def profiles(self) -> list[dict[str, Any]]:
        """Return all that was written."""
        paths = sorted(self.folder.glob("specscope-states-*"))
        files = [json.loads(gzip.decompress(path.read_bytes())) for path in paths]
        return [each for file in files for each in file["profiles"]]


def know_limits(bench: Bench) -> None:
    """Show rows until limits are known."""
    for seed in range(10):
        bench.sample(seed)
    assert bench.learnt.is_known


def summed(profiles: list[dict[str, Any]]) -> dict[tuple[Any, ...], Any]:
    """Add profiles up by place."""
    found: dict[tuple[Any, ...], Any] = {}
    for each in profiles:
        counts = found.setdefault((each["phase"], each["row_class"], each["slot"]), Counter())
        counts["rows"] += each["rows"]
        counts.update({f"bin {place}": count for place, count in each["ln_norms"]["bins"].items()})
        for token, rows in zip(each.get("token_ids", ()), each.get("token_rows", ()), strict=True):
            counts[f"token {token}"] += rows
    return found


def test_windows_add_up_to_one(tmp_path: Path) -> None:
    several, one = Bench(tmp_path / "several"), Bench(tmp_path / "one")
    for bench in (several, one):
        know_limits(bench)
        bench.end()
        for seed in range(100, 130):
            bench.sample(seed)
            if bench is several and seed % 7 == 0:
                bench.end()
        bench.end()
    assert several.counts.files["written"] == one.counts.files["written"] + 4
    assert summed(several.profiles()) == summed(one.profiles())
    assert one.counts.rows.total() == sum(each["rows"] for each in one.profiles() if each["slot"] == 0)


def test_limits_of_other_states_are_forgotten(tmp_path: Path) -> None:
    """Other layers than before: at first all their rows seem sinks, then it is learnt anew what is one."""
    bench = Bench(tmp_path)
    know_limits(bench)
    before = bench.learnt.limits
    bench.end()
    for seed in range(40):
        bench.sample(seed, shift=3.0, time_ms=2_000)
    assert bench.learnt.is_known
    assert (bench.learnt.limits > before + 1).all()
    bench.end()
    later = [each for each in bench.profiles() if each["time_ms"] == 2_000 and each["phase"] != "prefill"]
    rows = {
        name: sum(each["rows"] for each in later if each["row_class"] == name) for name in ("other", "sink")
    }
    assert rows["other"] > 4 * rows["sink"] > 0


def test_buffers_come_back(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    know_limits(bench)
    assert len(bench.returned) == 10


def test_a_full_spool_costs_windows_and_nothing_else(tmp_path: Path) -> None:
    bench = Bench(tmp_path, max_bytes=10)
    know_limits(bench)
    for seed in (200, 201):
        bench.sample(seed)
        bench.end()
    assert bench.counts.files == {"dropped": 2}
    assert bench.part.state is State.ON
    assert bench.profiles() == []


def test_other_layers_in_verify_than_in_prefill_are_told(tmp_path: Path) -> None:
    for shift, told in ((0.0, 0), (0.25, 0), (1.0, SLOTS)):
        bench = Bench(tmp_path / str(shift))
        know_limits(bench)
        bench.learnt.limits = np.full(SLOTS, 9, np.float32)
        for seed in range(300, 330):
            bench.sample(seed, shift)
        bench.end()
        assert bench.counts.invariants["capture_differs"] == told


def test_an_exception_switches_the_part_off_and_the_thread_lives(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.finisher.entries.put(Sums(None, None))
    know_limits(bench)
    bench.sample(1)
    bench.finisher.entries.put(Taken(None, None))  # type: ignore[arg-type]
    bench.finisher.entries.put(None)
    bench.finisher.run()
    assert bench.part.state is State.FAILED
    assert bench.part.errors == 2


def test_a_day_of_samples_does_not_grow(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    know_limits(bench)
    for seed in range(1_000):
        bench.sample(seed % 50)
    window = bench.finisher._window
    assert len(window.tallies) <= 3 * 3 * SLOTS
    assert len(window.shown) == 3 * 4 * SLOTS
    assert all(len(tally.norms.bins) < 100 for tally in window.tallies.values())


def test_the_commonest_ids_are_found_once() -> None:
    learnt = Learnt(1)
    assert learnt.token_ids == ()
    chance = np.random.default_rng(3)
    for _ in range(120):
        ids = np.concatenate((np.arange(40), chance.integers(100, 100_000, 24)))
        learnt.add(
            SimpleNamespace(ids=ids, positions=np.full(64, 9), ln_norms=np.ones((64, 1), np.float32))  # type: ignore[arg-type]
        )
    assert set(range(40)) <= set(learnt.token_ids)
    assert len(learnt.token_ids) == COMMON_IDS
    assert list(learnt.token_ids) == sorted(learnt.token_ids)


def test_a_request_of_several_windows_is_new_in_the_first(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    know_limits(bench)
    for _ in range(3):
        bench.end()
        for seed in range(100, 104):
            bench.sample(seed)
    bench.end()
    found = [each for each in bench.profiles() if (each["row_class"], each["slot"]) == ("other", 0)]
    by_phase = {phase: [each for each in found if each["phase"] == phase][-3:] for phase in SERVING_PHASES}
    for profiles in by_phase.values():
        assert [each["requests"] for each in profiles] == [9, 9, 9]
        assert [each["new_requests"] for each in profiles][1:] == [0, 0]
        assert sum(each["new_requests"] for each in profiles) <= 9
