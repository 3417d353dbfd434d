"""`specscope reference calibrate` and `replay-torch`: what they write, and what they say when they cannot."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.collectors.references.boundary_states import MadeUpModel, sums_of_requests, write_calibration
from tests.collectors.references.writers import FORMATS, write_dump

from specscope_collectors.references.document import read_reference
from specscope_server.cli.reference import main


def test_a_calibration_becomes_a_reference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "spool").mkdir()
    path = tmp_path / "spool" / "specscope-states-1.json.gz"
    write_calibration(path, sums_of_requests(MadeUpModel(), range(20)), 1_790_000_000_000)
    assert main(["calibrate", "spool", "--name", "all of it", "--model", "made/up"]) == 0
    found = read_reference(tmp_path / "all-of-it.reference.json.gz")
    assert (found.kind, found.name, found.model, found.requests) == ("boundaries", "all of it", "made/up", 20)
    said = capsys.readouterr().out
    assert "all boundaries, calibration by the probe (made_by calibration, engine_version 0.5.23" in said
    assert "boundary 5" in said
    assert "note      Requests: 20. Use 64 or more" in said
    assert main(["inspect", "all-of-it.reference.json.gz"]) == 0


def test_an_empty_spool_is_refused_with_the_way_to_a_calibration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["calibrate", str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert "holds no calibration of the probe, but nothing" in said
    assert "SPECSCOPE_PROBE_CALIBRATE=1" in said


def test_torch_is_asked_for_where_it_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    dump = write_dump(tmp_path / "dump", FORMATS["hybrid"])
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    assert main(["replay-torch", str(dump), "--model", str(tmp_path)]) == 1
    assert "pip install 'specscope[states]'" in capsys.readouterr().err


WRITING = [("build", "--out"), ("calibrate", "--out"), ("replay-torch", "--out"), ("replay-torch", "--rows")]


@pytest.mark.parametrize(("command", "option"), WRITING, ids=[" ".join(each) for each in WRITING])
def test_a_result_goes_only_where_a_file_can_be(
    tmp_path: Path, command: str, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Said before anything is read: there is nothing readable in the folder."""
    pipe, folder, device = tmp_path / "pipe", tmp_path / "folder", tmp_path / "null"
    os.mkfifo(pipe)
    folder.mkdir()
    device.symlink_to(os.devnull)
    more = ["--model", str(tmp_path)]
    for place, words in (
        (pipe, "is no regular file"), (folder, "is no regular file"), (device, "is no regular file"),
        (tmp_path / "no" / "x.gz", f"there is no folder {tmp_path / 'no'}"),
        (pipe / "x.gz", f"there is no folder {pipe}"),
    ):  # fmt: skip
        rest = more if command != "build" else []
        assert main([command, str(folder), *rest, option, str(place)]) == 1
        said = capsys.readouterr().err
        assert f"{option} {place}" in said
        assert words in said
    assert pipe.is_fifo()
    assert device.is_symlink()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["folder", "null", "pipe"]
