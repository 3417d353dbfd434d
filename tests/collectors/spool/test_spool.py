"""The spool keeps order, state and all that it took, over restarts; it is bounded, and says what it drops."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.collectors.spool.spools import (
    COLLECTOR,
    TARGET,
    Times,
    decoded,
    make_batch,
    opened,
    segments,
    sent,
    sequences,
)

from specscope_collectors.observations import Event, Resume
from specscope_collectors.spool import Spool
from specscope_collectors.spool_files import SpoolError
from specscope_collectors.spool_sink import SpoolSink

MIB = 1024 * 1024


def test_batches_wait_in_order_and_are_forgotten_when_acknowledged(tmp_path: Path) -> None:
    with opened(tmp_path) as spool:
        for sequence in (1, 2):
            assert spool.append(make_batch(sequence))
            assert spool.append(make_batch(sequence, "watch:b"))
        assert sent(spool) == [("watch:a", 1), ("watch:b", 1), ("watch:a", 2), ("watch:b", 2)]
        first = spool.waiting(1, 1)
        assert [each.entry.sequence for each in first] == [1]
        spool.acknowledge(first[0].number)
        assert sent(spool)[0] == ("watch:b", 1)
        assert spool.count == 3
        assert decoded(spool.waiting(1, 1)[0]).observations[0] == make_batch(1).observations[0]


def test_a_sequence_is_taken_once(tmp_path: Path) -> None:
    with opened(tmp_path) as spool:
        assert spool.append(make_batch(3))
        assert not spool.append(make_batch(3))
        assert not spool.append(make_batch(2))
        assert sequences(spool) == [3]


def test_a_restart_goes_on_where_it_was(tmp_path: Path) -> None:
    with opened(tmp_path) as spool:
        spool.append(make_batch(1))
        spool.append(make_batch(2, launch_key=None, checkpoint=None))
        spool.acknowledge(1)
        instance = spool.instance
    with opened(tmp_path) as spool:
        assert spool.instance == instance
        assert spool.resume("watch:a") == Resume(sequence=2, checkpoint=b"watch:a 1", launch_key="l")
        assert spool.resume("never seen") == Resume()
        assert sequences(spool) == [2]
        assert spool.append(make_batch(3))
        assert sequences(spool) == [2, 3]
        assert spool.take_notices() == []


def test_state_outlives_everything_that_was_sent(tmp_path: Path) -> None:
    for sequence in range(1, 6):
        with opened(tmp_path) as spool:
            assert spool.resume("watch:a").sequence == sequence - 1
            spool.append(make_batch(sequence))
            spool.acknowledge(spool.waiting(9, 10**9)[-1].number)
            assert spool.count == 0
    assert len(segments(tmp_path)) <= 2, "acknowledged segments are removed"


def test_a_new_folder_is_another_collector(tmp_path: Path) -> None:
    with opened(tmp_path / "a") as one, opened(tmp_path / "b") as other:
        one.append(make_batch(1))
        other.append(make_batch(1))
        names = {decoded(spool.waiting(1, 1)[0]).collector_id for spool in (one, other)}
        assert len(names) == 2
        assert all(name.startswith("watch:a#") for name in names)


def test_a_second_process_is_told_who_uses_the_folder(tmp_path: Path) -> None:
    with (
        opened(tmp_path),
        pytest.raises(SpoolError, match=rf"another process \({os.getpid()}\): stop that one"),
    ):
        Spool(tmp_path)
    with opened(tmp_path) as again:
        assert again.count == 0


@pytest.mark.parametrize("there", ["a file", "a folder in a file"])
def test_a_folder_that_cannot_be_is_named(tmp_path: Path, there: str) -> None:
    path = tmp_path / "spool"
    path.write_text("something")
    with pytest.raises(SpoolError, match=r"spool.* cannot be written: .*name another folder"):
        Spool(path if there == "a file" else path / "inner")


def test_files_of_others_are_left_alone(tmp_path: Path) -> None:
    strangers = {"notes.txt": b"mine", "1.spool": b"x", "00000000000000000099.spool.making": b"half"}
    with opened(tmp_path) as spool:
        spool.append(make_batch(1))
    for name, content in strangers.items():
        (tmp_path / name).write_bytes(content)
    with opened(tmp_path) as spool:
        assert sequences(spool) == [1]
        assert spool.take_notices() == []
    assert (tmp_path / "notes.txt").read_bytes() == b"mine"
    assert (tmp_path / "1.spool").exists()
    assert not (tmp_path / "00000000000000000099.spool.making").exists(), "ours, and never finished"


def test_a_full_spool_drops_the_oldest_and_says_what(tmp_path: Path) -> None:
    times = Times()
    with opened(tmp_path, times, max_bytes=4 * MIB) as spool:
        sink = SpoolSink(spool, COLLECTOR, times.wall)
        chance = random.Random(1)
        for sequence in range(1, 101):
            times.wall_ms += 1_000
            noise = Event(kind="n", time_ms=0, message=chance.randbytes(60_000).hex())
            sink.apply(make_batch(sequence, "watch:a", noise))
        sink.tell(at_once=True)
        assert spool.size <= 4 * MIB + MIB
        kept = [sequence for name, sequence in sent(spool) if name == "watch:a"]
        assert kept == list(range(kept[0], 101)), "the newest, without a gap"
        events = [
            decoded(each) for each in spool.waiting(10**6, 10**12) if each.entry.collector_id == "spool"
        ]
        lost = spool.counts.dropped
        told = [event for batch in events for event in batch.observations if isinstance(event, Event)]
        assert told
        assert {batch.target for batch in events} <= {TARGET}
        of_a = kept[0] - 1
        assert lost >= of_a
        assert told[-1].detail["to_ms"] < times.wall_ms
        assert (
            "batches were dropped before they reached this server, because the spool is full"
            in told[-1].message
        )
        assert spool.resume("watch:a").sequence == 100


def test_what_was_dropped_is_counted_exactly(tmp_path: Path) -> None:
    with opened(tmp_path, max_bytes=256 * 1024) as spool:
        chance = random.Random(2)
        for sequence in range(1, 201):
            noise = Event(kind="n", time_ms=0, message=chance.randbytes(3_000).hex())
            spool.append(make_batch(sequence, "watch:a", noise))
        notices = spool.take_notices(at_once=True)
        kept = sequences(spool)
        assert sum(notice.detail["batches"] for notice in notices) == 200 - len(kept) == spool.counts.dropped
        assert kept == list(range(201 - len(kept), 201))
        assert spool.count == len(kept)


def test_a_clock_that_is_set_back_changes_nothing(tmp_path: Path) -> None:
    times = Times()
    with opened(tmp_path, times) as spool:
        spool.append(make_batch(1))
        times.wall_ms -= 86_400_000
        spool.append(make_batch(2))
    with opened(tmp_path, times) as spool:
        assert sequences(spool) == [1, 2]


def test_a_collector_jumps_to_what_the_server_has(tmp_path: Path) -> None:
    with opened(tmp_path) as spool:
        spool.append(make_batch(1))
        spool.jump(spool.name_at_server("watch:a"), 7)
        spool.jump("watch:a#another", 70)
        spool.jump(spool.name_at_server("unknown"), 70)
        assert spool.resume("watch:a") == Resume(sequence=7, checkpoint=b"watch:a 1", launch_key="l")
        assert not spool.append(make_batch(2))
        assert spool.append(make_batch(8))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(["a", "b", "ack", "reopen", "big"]), max_size=30))
def test_whatever_happens_in_whatever_order_nothing_is_lost_or_repeated(
    tmp_path_factory: pytest.TempPathFactory, acts: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("spool")
    expected: list[tuple[str, int]] = []
    counts = {"a": 0, "b": 0}
    spool = Spool(folder, None, Times().wall)
    for act in acts:
        if act in counts or act == "big":
            name = act if act in counts else "b"
            counts[name] += 1
            noise = [Event(kind="n", time_ms=0, message="x" * 40_000)] if act == "big" else []
            assert spool.append(make_batch(counts[name], name, *noise))
            expected.append((name, counts[name]))
        elif act == "ack" and expected:
            some = spool.waiting(2, 10**9)
            spool.acknowledge(some[-1].number)
            del expected[: len(some)]
        elif act == "reopen":
            spool.close()
            spool = Spool(folder, None, Times().wall)
        assert sent(spool) == expected
        assert {name: spool.resume(name).sequence for name in counts} == counts
    spool.close()


def test_a_killed_process_has_lost_nothing_that_was_taken(tmp_path: Path) -> None:
    script = (
        "import sys; sys.path.insert(0, sys.argv[2])\n"
        "from pathlib import Path\n"
        "from tests.collectors.spool.spools import make_batch\n"
        "from specscope_collectors.spool import Spool\n"
        "spool = Spool(Path(sys.argv[1]))\n"
        "for sequence in range(1, 10**9):\n"
        "    spool.append(make_batch(sequence)); print(sequence, flush=True)\n"
    )
    root = str(Path(__file__).resolve().parents[3])
    command = [sys.executable, "-c", script, str(tmp_path), root]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for _ in range(50):
            process.stdout.readline()
        process.send_signal(signal.SIGKILL)
        last = max([50, *(int(line) for line in process.stdout.readlines() if line.endswith("\n"))])
    with opened(tmp_path) as spool:
        found = sequences(spool)
        assert found == list(range(1, len(found) + 1))
        assert len(found) >= last
        assert spool.resume("watch:a").sequence == len(found)
