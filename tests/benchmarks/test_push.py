"""How fast batches go from a spool over HTTP into SQLite, and how much memory a collector of many needs."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text
from tests.benchmarks.test_ingest import BATCH, T0, batches, report
from tests.collectors.fetch.servers import serving as answering
from tests.collectors.runner.engine import Engine
from tests.support.product import serving

from specscope_collectors.observations import Batch, Level, Target
from specscope_collectors.push import Pusher
from specscope_collectors.push_options import PushOptions
from specscope_collectors.spool import Spool
from specscope_collectors.spool_sink import SpoolSink
from specscope_server.store.engine import create_store_engine
from specscope_server.store.ingest import IngestWriter
from specscope_server.store.migrate import upgrade

pytestmark = pytest.mark.benchmark

COUNT = 40
AT_LEAST = 50_000
ROUNDS = 4
TARGETS = 50
MOST_RSS_MB = 120


def recent(count: int) -> list[Batch]:
    """Return batches of ten thousand levels of now, since the server refuses what lies in the future."""
    shift_ms = int(time.time() * 1_000) - T0 - 3_600_000

    def moved(batch: Batch) -> Batch:
        levels = tuple(
            Level(metric=each.metric, labels=each.labels, time_ms=each.time_ms + shift_ms, value=each.value)
            for each in batch.observations
            if isinstance(each, Level)
        )
        return Batch(
            collector_id=batch.collector_id, sequence=batch.sequence, target=batch.target, launch_key="a",
            observations=levels,
        )  # fmt: skip

    return [moved(batch) for batch in batches(count, 1_000)]


def in_process(path: Path, parts: list[Batch]) -> float:
    """Return observations per second of the store alone."""
    engine = create_store_engine(f"sqlite:///{path}")
    upgrade(engine)
    writer = IngestWriter(engine)
    begun = time.perf_counter()
    for part in parts:
        writer.apply(part)
    seconds = time.perf_counter() - begun
    engine.dispose()
    return len(parts) * BATCH / seconds


@dataclass(frozen=True, slots=True, order=True)
class Pace:
    """Observations per second."""

    wall: float
    """On the clock, from the spool into the server's database."""
    cpu: float
    """The same, per second of CPU that the sender and the server spent: other load does not change it."""
    spooled: float
    """Into the spool, on the clock."""


def pushed(folder: Path, parts: list[Batch]) -> Pace:
    """Return how fast batches get into the spool, and from there into a server's database."""
    folder.mkdir()
    collector = Target(name="collector:bench", base_url="collector://bench")
    spool = Spool(folder / "spool")
    sink = SpoolSink(spool, collector)
    begun = time.perf_counter()
    for part in parts:
        sink.apply(part)
    spooled = time.perf_counter() - begun
    with serving(folder, {}) as product:
        pusher = Pusher(spool, sink, PushOptions(server=product.base_url), collector)
        begun, cpu = time.perf_counter(), time.process_time() + cpu_of(product.process.pid)
        while spool.count:
            pusher.step()
        wall = time.perf_counter() - begun
        cpu = time.process_time() + cpu_of(product.process.pid) - cpu
        pusher.stop()
    spool.close()
    engine = create_engine(f"sqlite:///{folder / 'specscope.db'}")
    with engine.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM sample")).scalar_one() == len(parts) * BATCH
    engine.dispose()
    return Pace(*(len(parts) * BATCH / seconds for seconds in (wall, cpu, spooled)))


def cpu_of(pid: int) -> float:
    """Return the seconds of CPU that a process has spent."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_push_over_loopback(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On the clock of a machine that has nothing else to do; of a busy one the CPU's seconds count."""
    parts = recent(COUNT)
    rounds: list[tuple[Pace, float]] = []
    while len(rounds) < ROUNDS and not (rounds and max(rounds)[0].wall >= AT_LEAST):
        folder = tmp_path / str(len(rounds))
        found = pushed(folder, parts)
        rounds.append((found, in_process(folder / "alone.sqlite3", parts)))
    found, alone = max(rounds)
    is_busy = os.getloadavg()[0] > (os.cpu_count() or 1)
    with capsys.disabled():
        report(f"\npush of {COUNT} × {BATCH} levels, 1000 series, best of {len(rounds)}:")
        report(f"  spool → HTTP → SQLite {found.wall / 1e3:.0f} k observations/s on the clock,")
        report(
            f"  {found.cpu / 1e3:.0f} k per CPU second of both; into the spool {found.spooled / 1e3:.0f} k/s"
        )
        report(f"  applied in process {alone / 1e3:.0f} k/s on the clock; ratio {found.wall / alone:.2f}")
    assert max(pace.cpu for pace, _ in rounds) >= AT_LEAST
    assert is_busy or found.wall >= AT_LEAST


def test_memory_of_a_collector_of_fifty_targets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Fifty engines with 200 series each, read every second, while the server is away: the spool fills."""
    series = "".join(
        f'sglang:num_queue_reqs{{model_name="m",tp_rank="{number}"}} {number}\n' for number in range(200)
    )
    subject = Engine(extra=series)
    with answering(subject) as engine:
        command = [sys.executable, "-m", "specscope", "collect", "--server", "http://127.0.0.1:9"]
        command += [
            "--spool",
            str(tmp_path / "spool"),
            "--scrape-interval-seconds",
            "1",
            "--flush-seconds",
            "0",
        ]
        for number in range(TARGETS):
            command += ["--watch", f"gpu{number}={engine.url}"]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
            asked = 0
            deadline = time.monotonic() + 120
            while asked < 15 * TARGETS and time.monotonic() < deadline:
                time.sleep(0.2)
                asked = engine.paths().count("/metrics")
            status = Path(f"/proc/{process.pid}/status").read_text()
            process.terminate()
            process.communicate(timeout=30)
    rss_mb, peak_mb = (_kib(status, name) / 1024 for name in ("VmRSS", "VmHWM"))
    spooled = sum(path.stat().st_size for path in (tmp_path / "spool").glob("*.spool"))
    with capsys.disabled():
        report(
            f"\ncollector of {TARGETS} targets, {asked} scrapes: RSS {rss_mb:.0f} MB, peak {peak_mb:.0f} MB"
        )
        report(f"  spooled {spooled / max(asked, 1):.0f} bytes a scrape")
    assert asked >= 15 * TARGETS
    assert peak_mb < MOST_RSS_MB


def _kib(status: str, name: str) -> int:
    return int(next(line for line in status.splitlines() if line.startswith(name + ":")).split()[1])
