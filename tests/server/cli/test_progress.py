"""The bar of an import: what was read of the file as it lies there, on a terminal only."""

from __future__ import annotations

import gzip
import io
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from specscope_server.cli.progress import ReadingBar, opened

LINE = (
    "[2026-11-29 20:50:45 TP0] Decode batch, #running-req: 8, #token: 18432, token usage: 0.31, "
    "accept len: 3.33, accept rate: 0.78, cuda graph: True, gen throughput (token/s): 10.39, #queue-req: 2\n"
)


def console(*, is_terminal: bool) -> tuple[Console, io.StringIO]:
    """Return a console and what is written to it."""
    out = io.StringIO()
    return Console(file=out, force_terminal=is_terminal, width=120, color_system=None), out


def test_bytes_are_those_of_the_compressed_file(tmp_path: Path) -> None:
    path = tmp_path / "server.log.gz"
    path.write_bytes(gzip.compress(os.urandom(300_000)))
    shown, out = console(is_terminal=True)
    with ReadingBar([path], shown) as bar, bar.open(path) as file, gzip.GzipFile(fileobj=file) as log:
        assert len(log.read()) == 300_000
    assert "server.log.gz" in out.getvalue()
    assert "300.1/300.1 kB" in out.getvalue()


def test_several_files_share_a_bar(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a.log", "b.log")]
    for path in paths:
        path.write_bytes(b"x" * 1_000)
    shown, out = console(is_terminal=True)
    with ReadingBar(paths, shown) as bar:
        with bar.open(paths[0]) as file:
            assert file.peek(1)
            assert file.readlines() == [b"x" * 1_000]
        assert bar.read_bytes == 1_000
        with bar.open(paths[1]) as file:
            file.read()
    assert "2.0/2.0 kB" in out.getvalue()


def test_of_standard_input_the_end_is_not_known() -> None:
    shown, out = console(is_terminal=True)
    with ReadingBar([None], shown) as bar:
        bar.moved(5_000)
        stream = bar.watch(io.BytesIO(b"x" * 3_000))
        assert stream.read(10_000) == b"x" * 3_000
    assert "8.0/? kB" in out.getvalue()


def test_elsewhere_nothing_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"x")
    for is_terminal, is_shown in ((False, True), (True, False)):
        shown, out = console(is_terminal=is_terminal)
        with ReadingBar([path], shown, is_shown=is_shown) as bar, bar.open(path) as file:
            assert file.read() == b"x"
        assert out.getvalue() == ""
    with opened(path) as file:
        assert file.read() == b"x"


def test_the_name_of_a_file_is_text_only(tmp_path: Path) -> None:
    path = tmp_path / "[red]\x1b[31mx.log"
    path.write_bytes(b"x")
    shown, out = console(is_terminal=True)
    with ReadingBar([path], shown) as bar, bar.open(path) as file:
        file.read()
    assert "[red] [31mx.log" in out.getvalue()


@pytest.mark.parametrize("is_terminal", [True, False])
def test_the_import_of_a_log_shows_its_bar_on_a_terminal(tmp_path: Path, is_terminal: bool) -> None:
    path = tmp_path / "server.log"
    path.write_text(LINE * 200, encoding="utf-8")
    arguments = ["import", "log", str(path), "--server", "gpu1", "--database", f"sqlite:///{tmp_path}/a.db"]
    out, code = run(arguments, is_terminal=is_terminal)
    assert code == 0
    assert ("kB" in out) == is_terminal
    assert "matched   200 Decode lines, 0 Prefill lines" in out
    assert out.index("stored ") < out.index("zone ") < out.index("read ")


def run(arguments: list[str], *, is_terminal: bool) -> tuple[str, int]:
    """Run the command; return what it writes to standard error, and its exit status."""
    ours, theirs = pty.openpty() if is_terminal else os.pipe()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    process = subprocess.Popen(
        [sys.executable, "-m", "specscope", *arguments], stderr=theirs, env=environment
    )
    os.close(theirs)
    pieces = []
    while piece := _piece(ours):
        pieces.append(piece)
    os.close(ours)
    return b"".join(pieces).decode(), process.wait()


def _piece(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65_536)
    except OSError:  # how a terminal says that nobody holds its other end any more
        return b""
