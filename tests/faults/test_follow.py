"""Kill -9 of what follows a log, again and again, while another process writes it and it is rotated."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Engine, text

from specscope_server.settings import Settings
from specscope_server.startup import prepare_store
from specscope_server.store.engine import create_store_engine

ROOT = Path(__file__).resolve().parents[2]
LINES, KILLS = 6_000, 8
DEADLINE_SECONDS = 90.0


def test_a_follower_that_is_killed_while_the_log_is_written_and_rotated(
    store_url: str, tmp_path: Path
) -> None:
    engine = create_store_engine(store_url)
    prepare_store(engine, Settings(database=store_url))
    path, chance, kills = tmp_path / "sglang.log", random.Random(3), 0
    with started("log_writer.py", str(path), str(LINES)) as writer:
        while writer.poll() is None or kills < KILLS:
            with started("follow_worker.py", store_url, str(path)) as follower:
                wait_for_more(engine, follower)
                rotate(path)
                time.sleep(chance.random() / 5)  # a real process, killed somewhere inside a step
                follower.kill()
            kills += 1
    with started("follow_worker.py", store_url, str(path)) as follower:
        wait_for_all(engine, follower)
        follower.kill()
    check(engine)
    engine.dispose()


@contextmanager
def started(script: str, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run one of the scripts beside this file."""
    command = [sys.executable, str(ROOT / "tests/faults" / script), *arguments]
    with subprocess.Popen(command, cwd=ROOT) as process:
        try:
            yield process
        finally:
            process.kill()


def rotate(path: Path) -> None:
    """Rename as logrotate does with ``delaycompress``: the second newest is compressed, by gzip itself."""
    if not path.exists() or not path.stat().st_size:
        return
    for number in range(40, 0, -1):
        for end in ("", ".gz"):
            old = path.with_name(f"{path.name}.{number}{end}")
            if old.exists():
                old.rename(path.with_name(f"{path.name}.{number + 1}{end}"))
    path.rename(path.with_name(f"{path.name}.1"))
    second = path.with_name(f"{path.name}.2")
    if second.exists():
        subprocess.run(["gzip", str(second)], check=True)


def samples(engine: Engine) -> int:
    """Return how many values of one metric are stored."""
    query = (
        "SELECT count(*) FROM sample WHERE series_id IN "
        "(SELECT id FROM series WHERE metric = 'kv.used_tokens')"
    )
    with engine.connect() as connection:
        return int(connection.execute(text(query)).scalar_one())


def wait_for_more(engine: Engine, follower: subprocess.Popen[bytes]) -> None:
    """Wait until something new is stored, or everything is."""
    before, deadline = samples(engine), time.monotonic() + DEADLINE_SECONDS
    while (found := samples(engine)) == before and found < LINES:
        assert time.monotonic() < deadline, f"nothing is stored beyond {before} lines"
        assert follower.poll() is None, "the follower ended by itself"
        time.sleep(0.02)


def wait_for_all(engine: Engine, follower: subprocess.Popen[bytes]) -> None:
    """Wait until everything is stored."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while samples(engine) < LINES:
        assert time.monotonic() < deadline, f"{samples(engine)} of {LINES} lines are stored"
        assert follower.poll() is None, "the follower ended by itself"
        time.sleep(0.05)


def check(engine: Engine) -> None:
    """Every line is there, once, with its own values, in one launch."""
    query = (
        "SELECT time_ms, value FROM sample WHERE series_id IN "
        "(SELECT id FROM series WHERE metric = 'kv.used_tokens') ORDER BY time_ms"
    )
    with engine.connect() as connection:
        rows = [tuple(row) for row in connection.execute(text(query))]
        launches = connection.execute(text("SELECT count(*) FROM launch")).scalar_one()
        gaps = connection.execute(text("SELECT count(*) FROM event WHERE kind = 'log_gap'")).scalar_one()
    first_ms = rows[0][0]
    assert rows == [(first_ms + 1000 * number, float(number)) for number in range(LINES)]
    assert (launches, gaps) == (1, 0)
