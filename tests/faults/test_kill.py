"""Kill -9 in the middle of ingest: nothing acknowledged is lost, nothing is half there or counted twice."""

from __future__ import annotations

import random
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from sqlalchemy import Engine, text
from tests.faults.ingest_worker import COLLECTOR, INCREMENTS, T0, make_batch

from specscope_server.store.engine import create_store_engine
from specscope_server.store.ingest import IngestWriter

ROOT = Path(__file__).resolve().parents[2]
ROUNDS = 8


def test_an_ingest_that_is_killed_again_and_again(store_url: str) -> None:
    chance = random.Random(20)
    acknowledged = 0
    for _ in range(ROUNDS):
        acknowledged = max(acknowledged, write_until_killed(store_url, chance))
        engine = create_store_engine(store_url)
        applied = IngestWriter(engine).resume(COLLECTOR).sequence
        assert applied >= acknowledged, "an acknowledged batch is lost"
        check_whole(engine, applied)
        engine.dispose()
    assert acknowledged >= ROUNDS
    resend_everything(store_url)


def write_until_killed(url: str, chance: random.Random) -> int:
    """Start a writer, kill it at a random moment after its first batches, return what it had acknowledged."""
    command = [sys.executable, str(ROOT / "tests/faults/ingest_worker.py"), url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(chance.randrange(1, 20))]
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=chance.random() / 50)  # somewhere inside one of the next batches
        process.kill()
        lines += process.stdout.readlines()
    assert process.returncode == -9, "the writer ended by itself"
    return max(int(line) for line in lines if line.endswith("\n"))


def check_whole(engine: Engine, applied: int) -> None:
    """Every batch up to ``applied`` is there as a whole, and nothing of the next one."""
    growth = INCREMENTS * sum(range(1, applied + 1))
    series = "SELECT id FROM series WHERE metric = 'spec.verify_calls'"
    expected = {
        "SELECT count(*) FROM sample": (INCREMENTS + 1) * applied,
        f"SELECT sum(value) FROM sample WHERE series_id IN ({series})": growth,
        "SELECT count(*) FROM distribution": applied,
        "SELECT count(*) FROM request": applied,
        "SELECT count(*) FROM event": applied,
        "SELECT count(*) FROM launch": 1,
        "SELECT count(*) FROM latest": 5,
        "SELECT time_ms FROM source_status": T0 + applied * 20_000,
        "SELECT max(value) FROM latest": applied,
    }
    for suffix in ("1m", "10m", "1h"):
        expected[f"SELECT sum(n) FROM sample_{suffix}"] = (INCREMENTS + 1) * applied
        expected[f"SELECT sum(sum) FROM sample_{suffix} WHERE series_id IN ({series})"] = growth
        expected[f"SELECT sum(count) FROM distribution_{suffix}"] = 3 * applied
    with engine.connect() as connection:
        found = {statement: connection.execute(text(statement)).scalar_one() for statement in expected}
        checkpoint = connection.execute(text("SELECT checkpoint FROM collector")).scalar_one()
    assert found == expected
    assert bytes(checkpoint) == str(applied).encode()


def resend_everything(url: str) -> None:
    """Send all again, as after a crash of the sender, and one more: only that one is applied."""
    engine = create_store_engine(url)
    writer = IngestWriter(engine, lambda: T0 + 86_400_000)
    applied = writer.resume(COLLECTOR).sequence
    results = [writer.apply_counted(make_batch(sequence)).applied for sequence in range(1, applied + 2)]
    assert results == [False] * applied + [True]
    check_whole(engine, applied + 1)
    with engine.connect() as connection:
        if engine.dialect.name == "sqlite":
            assert connection.exec_driver_sql("PRAGMA integrity_check").scalar_one() == "ok"
    engine.dispose()
