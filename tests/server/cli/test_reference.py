"""`specscope reference`: build, stop and go on, look into files, and what is said when it cannot be done."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from tests.collectors.references.writers import FORMATS, WEIGHT, config_of_our_own, made, write_dump
from tests.support.dumps import safetensors_bytes, tensor, torch_bytes, write

from specscope.__main__ import COMMANDS
from specscope_collectors.references.document import LastState, read_reference
from specscope_server.cli.reference import main

HYBRID = FORMATS["hybrid"]


@pytest.fixture
def dump(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A dump in a folder, and the folder above it as the working directory."""
    monkeypatch.chdir(tmp_path)
    root = write_dump(tmp_path / "synth_100k", HYBRID)
    config_of_our_own(root)
    return root


def test_it_is_a_command() -> None:
    assert COMMANDS["reference"][0] == "specscope_server.cli.reference"


def test_build_writes_a_file_and_says_what_it_holds(
    dump: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["build", str(dump)]) == 0
    reference = read_reference(tmp_path / "synth_100k.reference.json.gz")
    assert (reference.name, reference.requests, reference.boundaries) == ("synth_100k", 20, (2, 4, 5))
    said = capsys.readouterr().out
    assert "slots     3 of 16; boundaries 2, 4, 5: boundaries as they are written (data_config.json)" in said
    assert "slot 1 sink  20 rows of 20 requests" in said
    assert "rows      800 (400 with loss_mask = 1) of 20 requests" in said
    assert not list(tmp_path.glob("*.partial"))


def test_options_are_taken(dump: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    weight = write(tmp_path / "w.safetensors", safetensors_bytes({"model.norm.weight": tensor(WEIGHT)}))
    write(tmp_path / "ids.json", b"[5, 9]")
    options = [
        "--name", "mine", "--out", "o.json.gz", "--budget", "640", "--norm-weight", str(weight),
        "--boundaries", "3,5,7,8", "--token-ids", "ids.json",
    ]  # fmt: skip
    assert main(["build", str(dump), *options]) == 0
    reference = read_reference(tmp_path / "o.json.gz")
    assert (reference.name, reference.requests, reference.boundaries) == ("mine", 10, (3, 5, 7))
    assert reference.last is not None
    assert (reference.last.norm, reference.last.boundary) == ("pre_norm", 8)
    assert "pre-norm" in capsys.readouterr().out
    assert main(["token-ids", "o.json.gz"]) == 0
    assert json.loads(capsys.readouterr().out) == [5, 9]


def test_inspect_shows_shapes_norms_and_first_values(dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = dump / "rows_0-2000" / "data_0.pt"
    assert main(["inspect", str(file)]) == 0
    said = capsys.readouterr().out
    assert "hidden_states[0]         [40, 16]           bfloat16" in said
    assert "tokens    40, 20 of them with loss_mask = 1; ids" in said
    assert "slot 1    hidden_states[1], bfloat16: norm at position 0" in said
    assert "first values at position 4" in said
    assert main(["inspect", str(file), "--format", "json"]) == 0
    seen = json.loads(capsys.readouterr().out)
    assert [state["place"] for state in seen["states"]] == ["slot 0", "slot 1", "slot 2", "last"]
    assert len(seen["states"][0]["norms"]) == 40
    assert seen["states"][2]["first_values"][0] == pytest.approx(float(made(0).states[2][4, 0]), rel=1e-5)
    assert seen["token_ids"] == made(0).ids.tolist()


def test_inspect_reads_a_reference_too(dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["build", str(dump), "--out", "a.reference.json.gz"]) == 0
    built = capsys.readouterr().out
    assert main(["inspect", "a.reference.json.gz"]) == 0
    assert capsys.readouterr().out.splitlines() == built.splitlines()[:-1]


def test_inspect_of_a_file_that_is_no_sample_still_shows_its_tensors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path / "x.pt", torch_bytes({"weights": tensor(WEIGHT), "note": "a\x1b[31mb"}))
    assert main(["inspect", str(file)]) == 0
    said = capsys.readouterr().out
    assert "weights" in said
    assert "no token ids" in said
    assert "\x1b" not in said


def test_names_that_are_no_text_and_keys_of_half_characters_end_no_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    file = write(tmp_path / "d" / "data_0\udcff.pt", HYBRID.content(made(0)))
    half = torch_bytes({"input_ids": tensor(made(0).ids), "QQQ": tensor(made(0).aux[:3])})
    write(tmp_path / "d" / "data_1.pt", half.replace(b"QQQ", "\ud800".encode("utf-8", "surrogatepass")))
    (tmp_path / "d" / "data_2.pt").symlink_to("data_2.pt")
    for output in ("text", "json"):
        assert main(["inspect", str(file), "--format", output]) == 0
        assert "data_0?.pt" in capsys.readouterr().out
    assert main(["build", str(file), "--name", "n\udcff", "--out", "n\udcff.gz"]) == 0
    assert main(["build", str(tmp_path / "d"), "--out", "d.gz"]) == 0
    said = capsys.readouterr().out
    assert "reference n?" in said
    assert "2 files" in said
    assert "? has 3 rows for 40 token ids" in said
    assert "symbolic links" in said


def test_what_a_reference_says_does_nothing_to_a_terminal(
    dump: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["build", str(dump), "--out", "a.gz"]) == 0
    built = msgspec.structs.replace(
        read_reference(tmp_path / "a.gz"), dtype="\x1b]0;t\x07", boundary_rule="\x1b[2J", last_told_by="\x1b"
    )
    evil = LastState(norm="\x1b[1m", rule="\x1b[3m")
    write(tmp_path / "b.json", msgspec.json.encode(msgspec.structs.replace(built, last=evil)))
    capsys.readouterr()
    assert main(["inspect", "b.json"]) == 0
    said = capsys.readouterr().out
    assert "?]0;t?" in said
    assert "\x1b" not in said


def test_boundaries_of_a_manifest_that_cannot_be_are_refused(
    dump: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(dump / "data_config.json", b'{"boundaries": [-1, -1, 4000]}')
    assert main(["build", str(dump)]) == 1
    assert "boundaries -1,-1,4000 cannot be: -1 is none, they go from 0 on" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["build", "inspect"])
def test_a_guessed_path_is_told_what_there_is(
    command: str, dump: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, str(dump / "rows_00000" / "data_0.pt")]) == 1
    said = capsys.readouterr().err
    assert "is not there" in said
    assert "data_config.json, rows_0-2000/, rows_2000-4000/" in said


def test_inspect_of_a_folder_lists_it(dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(dump / "rows_0-2000")]) == 1
    assert "it has data_0.pt, data_1.pt" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "words", "status"),
    [
        (["--boundaries", "2;30"], "no list of boundaries", 2),
        (["--boundaries", "2,30"], "names 2, and the dump has 3 slots", 1),
        (["--budget", "3"], "64", 2),
        (["--draft-config", "nothing.json"], "nothing.json cannot be read", 1),
        (["--norm-weight", "nothing.safetensors"], "nothing.safetensors is not there", 1),
        (["--token-ids", "bad.json"], "no JSON list", 1),
        (["--hidden-size", "5"], "hidden size is 5", 1),
        (["--boundaries", "2,5,5"], "5 stands there twice", 1),
        (["--boundaries", "2,4,9"], "9 is none, they go from 0 to 8", 1),
        (["--draft-config", "pipe"], "pipe is no regular file", 1),
        (["--token-ids", "pipe"], "pipe is no regular file", 1),
        (["--norm-weight", "pipe"], "pipe: it is no regular file", 1),
        (["--draft-config", "\x1b[2J\udcff"], "?[2J? cannot be read", 1),
        (["--out", "no/such/folder.gz"], "there is no folder", 1),
    ],
)
def test_wrong_usage_is_explained(
    options: list[str], words: str, status: int, dump: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(dump.parent / "bad.json", b'["a"]')
    os.mkfifo(dump.parent / "pipe")
    assert main(["build", str(dump), *options]) == status
    assert words in capsys.readouterr().err


def test_a_build_that_is_interrupted_goes_on(dump: Path, tmp_path: Path) -> None:
    write_dump(dump, HYBRID, requests=600)
    command = [sys.executable, "-m", "specscope", "reference", "build", str(dump), "--out", "o.json.gz"]
    environment = {**os.environ, "COLUMNS": "100"}
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE) as process:
        _wait_until_it_reads(process)
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        said = process.stderr.read().decode()
        status = process.wait()
    if status != 0:  # it may have been quicker than the signal
        assert status == 130, said
        assert "run the same again to go on" in said
    assert main(["build", str(dump), "--out", str(tmp_path / "o.json.gz")]) == 0
    assert read_reference(tmp_path / "o.json.gz").requests == 600


def _wait_until_it_reads(process: subprocess.Popen[bytes]) -> None:
    """Wait until the process has files of the dump mapped: then it reads."""
    maps = Path(f"/proc/{process.pid}/maps")
    while process.poll() is None:
        if "synth_100k" in maps.read_text():
            return
