"""A log that comes through a pipe, as real processes hand it over; and logs of several services."""

from __future__ import annotations

import gzip
import io
import subprocess
import sys
import time
from datetime import UTC
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text
from tests.collectors.log.reading import BODY, FIXTURES, captured

from specscope.__main__ import main as specscope
from specscope_collectors.sources.sglang_log.services import SeveralServicesError
from specscope_server.cli.import_log import LogImport, LogPart
from specscope_server.settings import Settings

CAPTURE = FIXTURES / "server-eagle3-chain-0.5.8.log"
DEADLINE_SECONDS = 60.0


@pytest.fixture
def database(tmp_path: Path) -> str:
    """A fresh SQLite file."""
    return f"sqlite:///{tmp_path}/store.sqlite3"


def imported(database: str, *more: str) -> subprocess.Popen[bytes]:
    """Start the command with a pipe."""
    command = [sys.executable, "-m", "specscope", "import", "log", "-", "--server", "gpu1"]
    return subprocess.Popen(
        [*command, "--database", database, *more], stdin=subprocess.PIPE, stderr=subprocess.PIPE
    )


def counted(database: str, table: str) -> int:
    """Return how many rows a table has; 0 before it is made."""
    engine = create_engine(database)
    try:
        with engine.connect() as connection:
            tables = connection.execute(text("SELECT name FROM sqlite_master")).scalars().all()
            if table not in tables:
                return 0
            return int(connection.execute(text(f"SELECT count(*) FROM {table}")).scalar_one())
    finally:
        engine.dispose()


def wait_for(database: str, table: str, count: int) -> None:
    """Wait until a table has so many rows."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while counted(database, table) < count:
        assert time.monotonic() < deadline, f"{counted(database, table)} rows of {table}, not {count}"
        time.sleep(0.05)


def test_what_comes_is_stored_before_the_pipe_ends(database: str) -> None:
    with imported(database) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(f"[2026-11-29 20:00:00 TP0] {BODY}\n[2026-11-29 20:00:01 TP0] Decode".encode())
        process.stdin.flush()
        wait_for(database, "sample", 7)
        process.stdin.write(BODY.removeprefix("Decode").encode() + b"\n")
        process.stdin.flush()
        wait_for(database, "sample", 14)
        process.stdin.close()
        said = process.stderr.read().decode()
    assert process.returncode == 0
    assert "stored    standard input: 14 values" in said
    assert "2 Decode lines" in said


def test_a_pipe_gives_what_the_file_gives_and_once(database: str) -> None:
    for _ in range(2):
        with imported(database) as process:
            process.communicate(CAPTURE.read_bytes(), timeout=DEADLINE_SECONDS)
        assert process.returncode == 0
        assert counted(database, "sample") == len(captured(CAPTURE.name).levels)
        assert counted(database, "launch") == 1
        assert counted(database, "event") == 2


def test_a_compressed_log_may_come_through_a_pipe(database: str) -> None:
    with imported(database) as process:
        process.communicate(gzip.compress(CAPTURE.read_bytes()), timeout=DEADLINE_SECONDS)
    assert process.returncode == 0
    assert counted(database, "sample") == len(captured(CAPTURE.name).levels)


COMPOSE, KUBECTL = "{}  | ", "[pod/{}/main] "


def composed(form: str = COMPOSE) -> bytes:
    """Return a log of two servers as Docker Compose or ``kubectl logs --prefix`` writes it."""
    names = (form.format("sglang-1"), form.format("sglang-2"))
    return b"".join(
        f"{names[at % 2]}[2026-11-29 20:{at // 60:02}:{at % 60:02} TP0] {BODY}\n".encode()
        for at in range(3_000)
    )


@pytest.mark.parametrize("form", [COMPOSE, KUBECTL])
def test_several_services_are_named_and_nothing_is_stored(
    database: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    (tmp_path / "compose.log").write_bytes(composed(form))
    arguments = ["import", "log", str(tmp_path / "compose.log"), "--server", "gpu1", "--database", database]
    assert specscope(arguments) == 2
    said = capsys.readouterr().err
    assert "several servers write into this log: sglang-1, sglang-2; choose one, --service sglang-1" in said
    assert counted(database, "sample") == 0
    assert specscope([*arguments, "--service", "sglang-2"]) == 0
    assert counted(database, "sample") == 1_500 * 7


def test_a_service_is_read_the_same_when_its_log_has_grown(database: str) -> None:
    log, settings = composed(), Settings(database=database)
    for size in (len(log) // 3 - 17, len(log)):
        parts = [LogPart("compose.log", partial(io.BytesIO, log[:size]))]
        LogImport("gpu1", UTC, service="sglang-1").store(parts, settings)
    assert counted(database, "sample") == 1_500 * 7


def test_a_second_server_far_behind_the_beginning_is_noticed(database: str) -> None:
    log = composed().replace(b"sglang-2 ", b"sglang-1 ") + b"sglang-2  | " + BODY.encode() + b"\n"
    parts = [LogPart("compose.log", partial(io.BytesIO, log))]
    with pytest.raises(SeveralServicesError, match="sglang-1, sglang-2"):
        LogImport("gpu1", UTC).store(parts, Settings(database=database))
