"""Files cut at every byte, bits flipped anywhere: what can be read is sent, and nothing is counted twice."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest
from tests.collectors.spool.spools import make_batch, opened, segments, sequences

from specscope_collectors.spool import Spool
from specscope_collectors.spool_records import HEADER_BYTES, Damage, Kind, Stored, frame, record_at, scan


@pytest.fixture
def three(tmp_path: Path) -> Path:
    """A spool with three batches, of which none was sent."""
    with opened(tmp_path / "three") as spool:
        for sequence in (1, 2, 3):
            spool.append(make_batch(sequence))
    return tmp_path / "three"


def copy_of(folder: Path, tmp_path: Path) -> Path:
    target = tmp_path / "copy"
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(folder, target)
    return target


def test_cut_at_every_byte_of_its_last_record(three: Path, tmp_path: Path) -> None:
    """The batch was never sent: its collector goes on from the one before, as the same collector."""
    [segment] = segments(three)
    records = [part for part in scan(segment.read_bytes()) if isinstance(part, Stored)]
    start, end = records[-2].end, records[-1].end
    with opened(copy_of(three, tmp_path)) as spool:
        instance = spool.instance
    for size in range(start, end):
        copy = copy_of(three, tmp_path)
        os.truncate(segments(copy)[0], size)
        with opened(copy) as spool:
            assert sequences(spool) == [1, 2], size
            assert spool.resume("watch:a").sequence == 2
            assert spool.resume("watch:a").checkpoint == b"watch:a 2"
            assert spool.instance == instance
            assert spool.append(make_batch(3))
            assert sequences(spool) == [1, 2, 3]
            assert spool.take_notices() == []


def test_cut_although_it_was_sent(tmp_path: Path) -> None:
    """Its sequence must not be used again for something else: the spool becomes another collector."""
    with opened(tmp_path) as spool:
        for sequence in (1, 2, 3):
            spool.append(make_batch(sequence))
        spool.acknowledge(3)
        instance = spool.instance
    [segment] = segments(tmp_path)
    os.truncate(segment, segment.stat().st_size - 1)
    with opened(tmp_path) as spool:
        assert spool.instance != instance
        assert spool.resume("watch:a").sequence == 0
        assert "pushed are missing" in spool.take_notices()[0].message
        assert spool.append(make_batch(1))
        assert sequences(spool) == [1]


def test_a_flipped_bit_anywhere(three: Path, tmp_path: Path) -> None:
    [segment] = segments(three)
    size = segment.stat().st_size
    records = [part for part in scan(segment.read_bytes()) if isinstance(part, Stored)]
    chance = random.Random(3)
    with opened(copy_of(three, tmp_path)) as spool:
        instance = spool.instance
    for at in sorted({*range(0, size, 7), *(record.end - 1 for record in records)}):
        copy = copy_of(three, tmp_path)
        data = bytearray(segment.read_bytes())
        data[at] ^= 1 << chance.randrange(8)
        segments(copy)[0].write_bytes(data)
        hit = next(place for place, record in enumerate(records) if at < record.end)  # 0 is the state
        with opened(copy) as spool:
            found = sequences(spool)
            assert found == [sequence for sequence in (1, 2, 3) if sequence != hit], at
            if hit == 3:
                assert spool.instance == instance
                assert spool.resume("watch:a").sequence == 2
            else:
                assert spool.instance != instance, (
                    "it may have been sent: nobody can say where collectors were"
                )
                assert spool.resume("watch:a").sequence == 0
                assert spool.take_notices()[0].kind == "spool_damaged"


def test_damage_in_the_middle_of_older_segments_is_passed_and_counted(tmp_path: Path) -> None:
    with opened(tmp_path) as spool:
        for sequence in range(1, 11):
            spool.append(make_batch(sequence))
    with opened(tmp_path) as spool:
        spool.append(make_batch(11))
    old = segments(tmp_path)[0]
    data = bytearray(old.read_bytes())
    data[len(data) // 2] ^= 0xFF
    old.write_bytes(data)
    with opened(tmp_path) as spool:
        found = sequences(spool)
        assert len(found) == 10
        assert found[-1] == 11
        assert spool.damaged_bytes > 0
        before = spool.damaged_bytes
        assert sequences(spool) == found
        assert spool.damaged_bytes == before, "counted once"
        assert spool.resume("watch:a").sequence == 11, "the newest segment is whole"
        spool.acknowledge(11)
        assert spool.count == 0


def test_a_segment_that_somebody_removed_or_emptied_is_passed(tmp_path: Path) -> None:
    for sequence in (1, 2, 3):
        with opened(tmp_path) as spool:
            spool.append(make_batch(sequence))
    with opened(tmp_path) as spool:
        first, second, *_ = segments(tmp_path)
        first.unlink()
        second.write_bytes(b"")
        assert sequences(spool) == [3]


def test_the_newest_segment_is_garbage(three: Path) -> None:
    with opened(three) as spool:
        spool.append(make_batch(4))
        instance = spool.instance
    segments(three)[-1].write_bytes(b"\x00" * 5_000)
    with opened(three) as spool:
        assert spool.instance != instance
        assert sequences(spool) == [1, 2, 3]
        assert spool.append(make_batch(1))
    with opened(three) as spool:
        assert sequences(spool) == [1, 2, 3, 1]
        assert spool.take_notices() == [], "said once"
    assert len(list(three.glob("*.unreadable"))) == 1


@pytest.mark.parametrize("content", [b"", b"\xff" * 1024, b"\x00" * 1024, b"x"])
def test_not_knowing_how_far_the_server_got_sends_again(three: Path, content: bytes) -> None:
    with opened(three) as spool:
        spool.acknowledge(2)
    (three / "acknowledged").write_bytes(content)
    with opened(three) as spool:
        assert sequences(spool) == [1, 2, 3]
        spool.acknowledge(1)
    with opened(three) as spool:
        assert sequences(spool) == [2, 3]


def test_one_torn_slot_leaves_the_other(three: Path) -> None:
    with opened(three) as spool:
        spool.acknowledge(1)
        spool.acknowledge(2)
    data = bytearray((three / "acknowledged").read_bytes())
    newest = 512 * (max((data[place : place + 8], place) for place in (0, 512))[1] // 512)
    data[newest + 9] ^= 1
    (three / "acknowledged").write_bytes(data)
    with opened(three) as spool:
        assert sequences(spool) == [2, 3]


def test_records_are_found_again_behind_anything() -> None:
    one, two = (frame(Kind.BATCH, number, 5, b"payload") for number in (1, 2))
    noise = b"\xa5SpR" + b"\xff" * 60 + b"\xa5Sp"
    parts = list(scan(one + noise + two))
    assert [part.number for part in parts if isinstance(part, Stored)] == [1, 2]
    assert parts[1] == Damage(len(one), len(one) + len(noise))
    assert record_at(one[: HEADER_BYTES - 1], 0) is None
    huge = bytearray(one)
    huge[5:9] = (2**32 - 1).to_bytes(4, "little")
    assert [part for part in scan(bytes(huge)) if isinstance(part, Stored)] == []


def test_a_spool_is_not_opened_by_what_it_cannot_read(three: Path) -> None:
    """A record of a newer version has a payload of another shape: it is passed, and the state not trusted."""
    segment = segments(three)[0]
    with segment.open("ab") as file:
        file.write(frame(Kind.BATCH, 4, 5, b"\x93\x01\x02\x03"))
    spool = Spool(three)
    assert sequences(spool) == [1, 2, 3]
    assert "another version" in spool.take_notices()[0].message
    spool.close()


def test_a_folder_that_is_removed_while_in_use_is_made_anew(tmp_path: Path) -> None:
    """The newest segment is still open: nothing of it is lost, and what comes is not written into nowhere."""
    folder = tmp_path / "spool"
    with opened(folder) as spool:
        spool.append(make_batch(1))
        spool.acknowledge(1)
        spool.append(make_batch(2))
        shutil.rmtree(folder)
        spool.append(make_batch(3))
        spool.synchronise()
        spool.append(make_batch(4))
        assert sequences(spool) == [2, 3, 4]
        [notice] = spool.take_notices()
        assert notice.kind == "spool_damaged"
        assert "0 batches are lost" in notice.message
        spool.synchronise()
        assert spool.take_notices() == [], "said once"
    with opened(folder) as spool:
        assert sequences(spool)[-3:] == [2, 3, 4]
        assert spool.resume("watch:a").sequence == 4


def test_older_segments_that_are_removed_while_in_use_are_counted(tmp_path: Path) -> None:
    with opened(tmp_path, segment_bytes=1) as spool:
        for sequence in range(1, 6):
            spool.append(make_batch(sequence))
        spool.acknowledge(1)
        for path in segments(tmp_path)[:-1]:
            path.unlink()
        spool.synchronise()
        assert sequences(spool) == [5]
        assert (spool.counts.dropped, spool.damaged_bytes) == (3, 0)
        assert "3 batches are lost" in spool.take_notices()[0].message
