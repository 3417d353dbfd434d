"""Wherever taking files from the spool is killed, everything is stored once in the end."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.collectors.probe.files import World, content, profile
from tests.collectors.runner.engine import MemorySink, StoreDownError

from specscope_collectors.observations import Batch, Observation, SourceHealth
from specscope_collectors.sources.probe import records


class KilledSink(MemorySink):
    """After batch number ``kill_at`` is stored, nobody hears of it."""

    kill_at = 0

    def apply(self, batch: Batch) -> bool:
        """Keep the batch."""
        is_new = super().apply(batch)
        if len(self.batches) == self.kill_at:
            raise StoreDownError("killed")
        return is_new


def taken(folder: Path, pool: ThreadPoolExecutor, kill_at: int) -> MemorySink:
    """Take three files, killed once; each step is one of a new process."""
    folder.mkdir()
    sink = KilledSink()
    sink.kill_at = kill_at
    world = World(folder, pool, sink)
    world.launch()
    for number in range(3):
        layers = [profile(slot=slot, boundary=slot + number // 2) for slot in range(3)]
        world.write(str(number), content(profiles=layers))
    for _ in range(2):
        try:
            world.steps()
        except StoreDownError:
            continue
    assert world.left() == []
    return sink


def rows(sink: MemorySink) -> list[tuple[str | None, Observation]]:
    """Return what was stored but health."""
    found = [(batch.launch_key, each) for batch in sink.batches for each in batch.observations]
    return [
        each for each in found if not isinstance(each[1], SourceHealth) and "scrape." not in repr(each[1])
    ]


def test_killed_after_any_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "PART_BYTES", 1)
    with ThreadPoolExecutor(1) as pool:
        expected = taken(tmp_path / "whole", pool, 0)
        stops = range(1, len(expected.batches) + 1)
        differing = [at for at in stops if rows(taken(tmp_path / str(at), pool, at)) != rows(expected)]
    assert len(stops) > 9
    assert differing == []
