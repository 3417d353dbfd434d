"""Single things that happen to a followed file, and what is said of them."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest
from tests.collectors.tailing.writing import Log, Reader

from specscope_collectors.tailing import Group, Tail, TailState
from specscope_collectors.tailing.rotation import tag_of


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the log will be."""
    return tmp_path / "app.log"


def test_what_was_written_before_is_left_alone_unless_asked_for(path: Path) -> None:
    path.write_bytes(b"old\nhalf")
    reader = Reader(path, from_beginning=False)
    reader.drain()
    with path.open("ab") as file:
        file.write(b" line\nnew\n")
    reader.drain()
    assert reader.lines == ["half line", "new"]


def test_a_file_that_is_not_there_yet_is_read_from_its_beginning_also_after_a_kill(path: Path) -> None:
    reader = Reader(path, from_beginning=False)
    reading = reader.look()
    assert (reading.state, reading.detail) == (TailState.MISSING, f"{path}: No such file or directory")
    log = Log(path)
    log.write(3)
    log.rename()
    log.write(2)
    log.close()
    reader.restart()
    reader.drain()
    assert reader.lines == log.lines


def test_files_that_were_rotated_away_between_two_looks_are_said_to_be_lost(path: Path) -> None:
    log, reader = Log(path), Reader(path)
    log.write(3)
    reader.drain()
    for _ in range(5):
        log.rename()
        log.write(2)
    for number in (3, 4, 5):
        path.with_name(f"app.log.{number}").unlink()
    log.close()
    reader.drain()
    assert reader.lines == [*log.lines[:3], *log.lines[-6:]]
    assert len(reader.lost) == 1
    assert "may be lost; keep more rotated files" in reader.lost[0]


def test_a_directory_that_is_not_there_is_said(path: Path) -> None:
    reading = Reader(path / "deeper" / "app.log").look()
    assert reading.state in (TailState.MISSING, TailState.FAILED, TailState.UNSUITABLE)


def test_a_directory_in_place_of_the_file_is_said(path: Path) -> None:
    path.mkdir()
    assert Reader(path).look().state is TailState.UNSUITABLE


def test_a_pipe_in_place_of_the_file_is_said_and_does_not_block(path: Path) -> None:
    os.mkfifo(path)
    assert Reader(path).look().state is TailState.UNSUITABLE


def test_a_truncation_without_a_copy_is_said(path: Path) -> None:
    log = Log(path)
    log.write(10)
    reader = Reader(path)
    reader.look()
    log.write(5)
    os.truncate(path, 0)
    log.write(2)
    log.close()
    reader.drain()
    assert reader.lines == [*log.lines[:10], *log.lines[15:]]
    (lost,) = reader.lost
    assert "app.log was truncated, replaced or removed" in lost


def test_a_truncated_file_that_has_outgrown_its_former_size_is_noticed(path: Path) -> None:
    log = Log(path)
    log.write(10)
    reader = Reader(path)
    reader.drain()
    os.truncate(path, 0)
    log.write(200)
    log.close()
    reader.drain()
    assert reader.lines == log.lines
    assert len(reader.lost) == 1


def test_a_writer_that_goes_on_at_its_old_offset_leaves_a_hole_that_is_skipped(path: Path) -> None:
    with path.open("wb", buffering=0) as file:
        file.write(b"first\n" * 50_000)
        reader = Reader(path)
        reader.drain()
        os.truncate(path, 0)
        file.write(b"second\n")
        reader.drain()
    assert path.stat().st_size > 300_000
    assert reader.data == b"first\n" * 50_000 + b"second\n"


def test_a_removed_file_is_read_to_its_end_and_its_successor_from_its_beginning(path: Path) -> None:
    log = Log(path)
    log.write(2)
    reader = Reader(path)
    reader.look()
    log.write(2)
    path.unlink()
    log.write(1)
    log.reopen()
    log.write(3)
    log.close()
    reader.drain()
    assert reader.lines == log.lines
    assert reader.lost == []


def test_a_renamed_file_is_left_when_its_writer_has_been_silent_for_a_while(path: Path) -> None:
    log = Log(path)
    log.write()
    reader = Reader(path, settle_seconds=2.0)
    reader.drain()
    log.rename(reopen=False)
    path.write_bytes(b"of the next\n")
    for _ in range(3):
        reader.look()
    log.write(2)
    reader.now += 1.9
    reader.drain()
    reader.now += 1.9
    reader.drain()
    assert reader.lines == log.lines
    reader.now += 2.1
    reader.drain()
    log.close()
    assert reader.lines == [*log.lines, "of the next"]


def test_the_last_line_of_a_file_that_ended_in_mid_line_is_handed_over_as_cut(path: Path) -> None:
    path.write_bytes(b"whole\nhal")
    reader = Reader(path)
    reader.drain()
    path.rename(path.with_name("app.log.1"))
    path.write_bytes(b"next\n")
    readings = [reader.look() for _ in range(8)]
    assert reader.data == b"whole\nhalnext\n"
    assert [reading.data for reading in readings if reading.is_cut] == [b"hal"]


def test_a_line_longer_than_a_piece_comes_in_pieces(path: Path) -> None:
    path.write_bytes(b"x" * 2_500 + b"\nshort\n")
    tail = Tail(path, from_beginning=True, piece_bytes=1_000)
    position, pieces = None, []
    for _ in range(6):
        reading = tail.read(position)
        position = reading.position
        pieces.append((len(reading.data), reading.is_cut))
    tail.close()
    assert pieces == [(1_000, True), (1_000, True), (507, False), (0, False), (0, False), (0, False)]


def test_a_damaged_compressed_file_is_read_as_far_as_it_goes_and_said(path: Path) -> None:
    log = Log(path)
    log.write(3_000)
    reader = Reader(path)
    reader.look()
    reader.restart()
    log.write(3_000)
    log.rename()
    rotated = path.with_name("app.log.1")
    packed = gzip.compress(rotated.read_bytes())
    path.with_name("app.log.1.gz").write_bytes(packed[: len(packed) * 9 // 10])
    rotated.unlink()
    log.write(5)
    log.close()
    reader.drain()
    assert reader.lines[:3_000] == log.lines[:3_000]
    assert reader.data.endswith("".join(f"{line}\n" for line in log.lines[-5:]).encode())
    assert 3_005 < len(reader.lines) < 6_005
    assert reader.lost == ["app.log.1.gz: the compressed file ends too early"]


def test_a_file_that_may_not_be_read_is_said(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_bytes(b"line\n")
    real = os.open

    def refusing(name: object, flags: int, *rest: int) -> int:
        if Path(str(name)) == path:
            raise PermissionError(13, "Permission denied")
        return real(str(name), flags, *rest)

    reader = Reader(path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refusing)  # root may read everything
        assert reader.look().state is TailState.DENIED
    reader.drain()
    assert reader.lines == ["line"]


def test_a_pattern_follows_files_as_they_appear_and_leaves_rotated_ones_to_their_followers(
    tmp_path: Path,
) -> None:
    for name in ("node0.log", "node0.log.1", "node0.log.2.gz", "other.txt"):
        (tmp_path / name).write_bytes(b"line\n")
    group = Group(str(tmp_path / "node*.log*"), lambda path, is_new: Tail(path, from_beginning=is_new))
    first = group.tails(None)
    assert [Path(path).name for path in first] == ["node0.log"]
    assert first[str(tmp_path / "node0.log")].read(None).data == b""
    (tmp_path / "node1.log").write_bytes(b"new\n")
    second = group.tails(list(first))
    assert second[str(tmp_path / "node1.log")].read(None).data == b"new\n"
    group.close()


@pytest.mark.parametrize(
    ("other", "tag"),
    [
        ("app.log.1", "1"),
        ("app.log.12.gz", "12.gz"),
        ("app.log-20261129", "20261129"),
        ("app-20261129.log", "20261129"),
        ("app-20261129.log.gz", "20261129.gz"),
        ("app.log.old", "old"),
        ("app.log", None),
        ("app-1.log", None),
        ("app.log.1.xz", None),
        ("apple.log", None),
    ],
)
def test_which_names_are_of_one_rotation(other: str, tag: str | None) -> None:
    assert tag_of("app.log", other) == tag
