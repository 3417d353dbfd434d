"""Settings of pushing: what cannot be used is told, and profiles wait only where nobody else can write."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from specscope_probe.states.options import read_state_options


@pytest.mark.parametrize(
    ("given", "server"),
    [
        ({"SERVER": "https://a.example:8443/", "SERVER_NAME": "llama"}, "https://a.example:8443/"),
        ({"SERVER": "https://a.example"}, ""),
        ({"SERVER": "a.example:80", "SERVER_NAME": "llama"}, ""),
        ({"SERVER": "https://me:secret@a.example", "SERVER_NAME": "llama"}, ""),
        ({"SERVER": "https://a.example:x", "SERVER_NAME": "llama"}, ""),
        ({"SERVER": "https://a.example", "SERVER_NAME": "a\tb"}, ""),
        ({}, ""),
    ],
)
def test_settings(
    given: dict[str, str], server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    options = read_state_options({f"SPECSCOPE_PROBE_{name}": value for name, value in given.items()})
    assert options.server == server
    assert options.is_on == bool(server), "where nothing can be pushed, nothing is written either"


def test_profiles_wait_only_where_nobody_else_can_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    given = {"SPECSCOPE_PROBE_SERVER": "https://a.example", "SPECSCOPE_PROBE_SERVER_NAME": "llama"}
    folder = tmp_path / f"specscope-probe-{os.getuid()}"
    assert read_state_options(given).spool == folder
    folder.chmod(0o777)
    assert read_state_options(given).spool is None
    folder.rmdir()
    folder.symlink_to(tmp_path)
    assert not read_state_options(given).is_on
    assert caplog.text.count("is somebody else's; set SPECSCOPE_SPOOL") == 2
    assert read_state_options(given | {"SPECSCOPE_SPOOL": "/x"}).spool == Path("/x")
