"""A disk that takes nothing: collecting goes on in memory, loudly, and back on disk when there is room."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.collectors.spool.spools import COLLECTOR, Times, decoded, make_batch, opened, sent, sequences

from specscope_collectors import spool_disk, spool_files
from specscope_collectors.observations import Event
from specscope_collectors.spool import RETRY_DISK_SECONDS, Spool, SpoolLimits
from specscope_collectors.spool_files import SpoolError
from specscope_collectors.spool_sink import SpoolSink

KIB = 1024


class FullDisk:
    """Takes so many more bytes, then a part of a write, then nothing."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.number = errno.ENOSPC

    def write_all(self, descriptor: int, data: bytes) -> None:
        fits, self.room = min(self.room, len(data)), max(0, self.room - len(data))
        os.write(descriptor, data[:fits])
        if fits < len(data):
            raise OSError(self.number, os.strerror(self.number))


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> FullDisk:
    made = FullDisk(10**9)
    monkeypatch.setattr(spool_files, "write_all", made.write_all)
    monkeypatch.setattr(spool_disk, "write_all", made.write_all)
    return made


@pytest.mark.parametrize("room", [0, 1, 20, 60, 200])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EDQUOT])
def test_nothing_is_lost_while_there_is_memory(
    tmp_path: Path, disk: FullDisk, room: int, number: int
) -> None:
    times = Times()
    disk.number = number
    with opened(tmp_path, times) as spool:
        sink = SpoolSink(spool, COLLECTOR, times.wall)
        sink.apply(make_batch(1))
        disk.room = room
        for sequence in (2, 3, 4):
            assert sink.apply(make_batch(sequence))
        assert spool.problem == os.strerror(number)
        assert spool.in_memory >= 3
        mine = [sequence for name, sequence in sent(spool) if name == "watch:a"]
        assert mine == [1, 2, 3, 4], "disk first, then memory"
        disk.room = 10**9
        sink.apply(make_batch(5))
        assert spool.in_memory, "tried again only after a while"
        times.seconds += RETRY_DISK_SECONDS
        sink.apply(make_batch(6))
        assert (spool.problem, spool.in_memory) == ("", 0)
        before = sent(spool)
    with opened(tmp_path, times) as spool:
        assert sent(spool) == before
        assert [sequence for name, sequence in before if name == "watch:a"] == [1, 2, 3, 4, 5, 6]
        assert spool.resume("watch:a").sequence == 6
        kinds = [
            event.kind
            for each in spool.waiting(99, 10**9)
            for event in decoded(each).observations
            if isinstance(event, Event)
        ]
        assert kinds == ["spool_in_memory", "spool_on_disk"]


def test_memory_is_bounded_and_what_is_dropped_is_said(tmp_path: Path, disk: FullDisk) -> None:
    with opened(tmp_path, memory_bytes=10 * KIB) as spool:
        disk.room = 0
        for sequence in range(1, 101):
            spool.append(make_batch(sequence))
        kept = sequences(spool)
        assert kept == list(range(101 - len(kept), 101))
        assert 5 < len(kept) < 25
        notices = [each for each in spool.take_notices(at_once=True) if each.kind == "spool_dropped"]
        assert sum(each.detail["batches"] for each in notices) == 100 - len(kept) == spool.counts.dropped
        assert "because the memory for it is full" in notices[-1].message
        disk.room = 10**9


def test_what_is_said_about_losses_does_not_crowd_out_the_rest(tmp_path: Path, disk: FullDisk) -> None:
    """Each batch that is dropped must not cost room for a batch that says so."""
    times = Times()
    with opened(tmp_path, times, memory_bytes=20 * KIB) as spool:
        sink = SpoolSink(spool, COLLECTOR, times.wall)
        disk.room = 0
        for sequence in range(1, 301):
            times.seconds += 0.1
            sink.apply(make_batch(sequence))
        names = [name for name, _ in sent(spool)]
        assert names.count("spool") <= 3
        assert names.count("watch:a") > 10
        disk.room = 10**9


def test_what_is_sent_from_memory_is_forgotten(tmp_path: Path, disk: FullDisk) -> None:
    with opened(tmp_path) as spool:
        disk.room = 0
        spool.append(make_batch(1))
        spool.append(make_batch(2))
        spool.acknowledge(spool.waiting(1, 1)[0].number)
        assert sequences(spool) == [2]


def test_killed_while_in_memory_it_goes_on_from_what_is_on_disk(tmp_path: Path, disk: FullDisk) -> None:
    """What was in memory is measured again: the checkpoint is as old as the disk."""
    with opened(tmp_path / "spool") as spool:
        spool.append(make_batch(1))
        disk.room = 0
        spool.append(make_batch(2))
        shutil.copytree(tmp_path / "spool", tmp_path / "killed")
    disk.room = 10**9
    with opened(tmp_path / "killed") as spool:
        assert spool.resume("watch:a").sequence == 1
        assert spool.resume("watch:a").checkpoint == b"watch:a 1"
        assert sequences(spool) == [1]


def test_killed_after_sending_from_memory_it_is_another_collector(tmp_path: Path, disk: FullDisk) -> None:
    with opened(tmp_path / "spool") as spool:
        spool.append(make_batch(1))
        disk.room = 0
        spool.append(make_batch(2))
        spool.acknowledge(spool.waiting(9, 10**9)[-1].number)
        instance = spool.instance
        shutil.copytree(tmp_path / "spool", tmp_path / "killed")
    disk.room = 10**9
    with opened(tmp_path / "killed") as spool:
        assert spool.instance != instance
        assert spool.resume("watch:a").sequence == 0, "its sequences are used up, its state unknown"
        assert sequences(spool) == []


def test_a_disk_that_is_full_at_the_start(tmp_path: Path, disk: FullDisk) -> None:
    disk.room = 10
    with opened(tmp_path) as spool:
        assert spool.append(make_batch(1))
        assert (sequences(spool), spool.in_memory) == ([1], 1)
        disk.room = 10**9
    with opened(tmp_path) as spool:
        assert sequences(spool) == [1], "closing brought it to the disk"


def test_trouble_that_comes_and_goes_is_not_said_every_time(tmp_path: Path, disk: FullDisk) -> None:
    times = Times()
    with opened(tmp_path, times) as spool:
        for sequence in range(1, 10):
            disk.room = 0 if sequence % 2 else 10**9
            times.seconds += RETRY_DISK_SECONDS
            spool.append(make_batch(sequence))
        assert [notice.kind for notice in spool.take_notices()] == ["spool_in_memory", "spool_on_disk"]
        disk.room = 10**9


@pytest.fixture
def tiny(tmp_path: Path) -> Iterator[Path]:
    """A real file system of 256 KiB."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)]
    try:
        outcome = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("there is no mount here")
    if outcome.returncode:
        pytest.skip(f"no file system can be mounted here: {outcome.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_real_disk_that_is_full(tiny: Path) -> None:
    times = Times()
    with opened(tiny / "spool", times) as spool:
        sequence = 0
        while not spool.problem:
            sequence += 1
            spool.append(make_batch(sequence, "watch:a", checkpoint=os.urandom(3_000)))
        assert spool.problem == "No space left on device"
        more = sequence + 20
        for each in range(sequence + 1, more + 1):
            spool.append(make_batch(each))
        assert sequences(spool) == list(range(1, more + 1))
        sent_ones = spool.waiting(sequence // 2, 10**9)
        spool.acknowledge(sent_ones[-1].number)
        times.seconds += RETRY_DISK_SECONDS
        assert sequences(spool) == list(range(sequence // 2 + 1, more + 1))
        while spool.count:
            spool.acknowledge(spool.waiting(10, 10**9)[-1].number)
        spool.append(make_batch(more + 1))
        assert sequences(spool) == [more + 1]


def test_a_read_only_folder_is_said_at_the_start(tiny: Path) -> None:
    with opened(tiny / "spool") as spool:
        spool.append(make_batch(1))
    subprocess.run(["mount", "-o", "remount,ro", str(tiny)], check=True)
    try:
        with pytest.raises(SpoolError, match="Read-only file system"):
            Spool(tiny / "spool", SpoolLimits())
    finally:
        subprocess.run(["mount", "-o", "remount,rw", str(tiny)], check=True)
