"""The spool folder: files are whole or not there; a full folder or a kill costs a window and nothing else."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from specscope_collectors.sources.probe.folder import Folder
from specscope_probe.states import spool as module
from specscope_probe.states.outbox import Outbox
from specscope_probe.states.spool import Spool, SpoolFullError

RANK = {"tp_rank": "0", "dp_rank": "../x y"}


def names(folder: Path) -> list[str]:
    """Return what lies in a folder."""
    return sorted(path.name for path in folder.iterdir())


def test_files_are_named_by_time_and_rank_and_hold_what_was_given(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "new" / "folder", 1_000, RANK)
    first, second = spool.write(b"a" * 10, 17), spool.write(b"b", 17)
    assert first.read_bytes() == b"a" * 10
    assert first.name.startswith("specscope-states-0000000000017-")
    assert first.name.endswith("-tprank0-dprankxy.json.gz")
    assert names(tmp_path / "new" / "folder") == sorted([first.name, second.name])


def test_what_does_not_fit_is_given_up_until_there_is_room(tmp_path: Path) -> None:
    spool = Spool(tmp_path, 100, RANK)
    path = spool.write(b"x" * 80, 1)
    with pytest.raises(SpoolFullError, match="let a"):
        spool.write(b"y" * 30, 2)
    assert names(tmp_path) == [path.name]
    path.unlink()
    spool.write(b"y" * 30, 2)


def test_other_files_do_not_count(tmp_path: Path) -> None:
    (tmp_path / "mine").write_bytes(b"x" * 1_000)
    assert Spool(tmp_path, 100, RANK).write(b"x" * 80, 1).stat().st_size == 80


def test_what_is_being_pushed_counts_and_no_job_takes_it(tmp_path: Path) -> None:
    spool = Spool(tmp_path, 100, RANK)
    spool.write(b"x" * 80, 1)
    [waiting] = Outbox(spool).waiting()
    claimed = Outbox(spool).claim(waiting, 7)
    assert Folder(tmp_path).waiting() == []
    with pytest.raises(SpoolFullError):
        spool.write(b"y" * 30, 2)
    assert Outbox(spool).waiting() == [claimed]
    assert Outbox(spool).release(claimed) == waiting
    assert Folder(tmp_path).waiting() == [waiting.path.name]


@pytest.mark.parametrize("call", ["fsync", "rename"])
def test_no_space_left_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(*((os, "fsync") if call == "fsync" else (Path, "rename")), refuse)
    with pytest.raises(OSError, match="No space"):
        Spool(tmp_path, 1_000, RANK).write(b"x", 1)
    assert names(tmp_path) == []


def test_a_place_that_cannot_be_written_is_an_error_of_the_window(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="Not a directory"):
        Spool(tmp_path / "file" / "spool", 1_000, RANK).write(b"x", 1)


def test_killed_between_write_and_rename_only_a_hidden_file_is_left_and_swept(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from specscope_probe.states.spool import Spool\n"
        "Path.rename = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        f"Spool(Path({str(tmp_path)!r}), 1000, {{'tp_rank': '0'}}).write(b'x' * 10, 1)\n"
    )
    outcome = subprocess.run([sys.executable, "-c", code], check=False)
    assert outcome.returncode == -signal.SIGKILL
    [hidden] = names(tmp_path)
    assert hidden.startswith(".specscope-states-")
    spool = Spool(tmp_path, 1_000, RANK)
    spool.write(b"y", 2)
    assert hidden in names(tmp_path), "it may be another rank's that is being written"
    old = time.time() - module.SWEEP_SECONDS - 1
    os.utime(tmp_path / hidden, (old, old))
    spool.write(b"z", 3)
    assert hidden not in names(tmp_path)
    assert len(names(tmp_path)) == 2
