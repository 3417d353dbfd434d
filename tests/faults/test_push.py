"""Whoever is killed, whatever the network does: at the end the sum stored is the sum sent, exactly."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine
from tests.collectors.fetch.servers import serving
from tests.collectors.runner.engine import Engine as SglangEngine
from tests.faults.feeder import counts_of, expected
from tests.faults.processes import (
    COLLECT,
    FEEDER,
    Forks,
    Serving,
    forks,
    is_alive,
    kill,
    number,
    wait_for,
)
from tests.faults.proxy import Cutting, proxying

from specscope_server.store.engine import create_store_engine

ROUNDS = 20

pytestmark = pytest.mark.xdist_group("push-faults")


@pytest.fixture(scope="module")
def starting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forks]:
    with forks(tmp_path_factory.mktemp("logs")) as found:
        yield found


def check(url: str, folder: Path) -> None:
    """The database holds every batch that was spooled, once."""
    engine = create_store_engine(url)
    wanted = expected(counts_of(folder / "spool"))
    assert {query: number(engine, query) for query in wanted} == wanted
    engine.dispose()


def feed(starting: Forks, folder: Path, url: str) -> int:
    """Start a feeder that goes on until `finish`."""
    return starting.start(FEEDER, folder / "spool", url, folder / "enough")


def finish(feeder: int, starting: Forks, folder: Path) -> None:
    (folder / "enough").touch()
    wait_for("end of the feeder", lambda: not is_alive(feeder), starting)


def test_a_server_that_is_killed_again_and_again(store_url: str, starting: Forks, tmp_path: Path) -> None:
    chance = random.Random(1)
    rounds = ROUNDS if store_url.startswith("sqlite") else ROUNDS // 2
    server = Serving(starting, store_url)
    server.start()
    feeder = feed(starting, tmp_path, server.url)
    engine = create_store_engine(store_url)
    for _ in range(rounds):
        wait_for_progress(engine, starting)
        time.sleep(chance.random() / 20)  # somewhere inside one of the next requests
        server.kill()
        server.start()
    wait_for_progress(engine, starting)
    engine.dispose()
    finish(feeder, starting, tmp_path)
    check(store_url, tmp_path)


def wait_for_progress(engine: Engine, starting: Forks) -> None:
    before = number(engine, "SELECT count(*) FROM event")
    wait_for("progress", lambda: number(engine, "SELECT count(*) FROM event") > before, starting)


def test_a_collector_that_is_killed_twenty_times(sqlite_url: str, starting: Forks, tmp_path: Path) -> None:
    """A real `specscope collect`, whose engine counts on meanwhile: no growth is lost, none counted twice."""
    chance = random.Random(2)
    subject = SglangEngine()
    server = Serving(starting, sqlite_url)
    server.start()
    store = create_store_engine(sqlite_url)
    with serving(subject) as engine:
        command = [
            "--watch", f"gpu1={engine.url}", "--server", server.url, "--spool", tmp_path / "spool",
            "--scrape-interval-seconds", 0.1, "--flush-seconds", 5,
        ]  # fmt: skip
        collector = starting.start(COLLECT, *command)
        baseline = subject.verify_calls
        wait_for("baseline", lambda: has_scraped(store), starting)
        for _ in range(ROUNDS):
            for _ in range(chance.randrange(1, 12)):
                subject.serve(tokens=7, verify_calls=3)
                time.sleep(chance.random() / 20)
            kill(collector)
            subject.serve(tokens=7, verify_calls=3)
            collector = starting.start(COLLECT, *command)
        grown = subject.verify_calls - baseline
        assert grown >= 2 * 3 * ROUNDS
        wait_for("sum", lambda: stored_calls(store) >= grown, starting)
        kill(collector, signal.SIGTERM)
    assert stored_calls(store) == grown
    assert number(store, "SELECT count(*) FROM launch WHERE engine = 'sglang'") == 1
    assert number(store, "SELECT count(*) FROM collector WHERE id LIKE 'watch:gpu1%'") == 1
    store.dispose()


def has_scraped(store: Engine) -> bool:
    return number(store, "SELECT count(*) FROM source_status WHERE source = 'sglang_metrics'") > 0


def stored_calls(store: Engine) -> float:
    series = "SELECT id FROM series WHERE metric = 'spec.verify_calls'"
    return number(store, f"SELECT sum(value) FROM sample WHERE series_id IN ({series})")


def test_a_feeder_that_is_killed_twenty_times(sqlite_url: str, starting: Forks, tmp_path: Path) -> None:
    chance = random.Random(3)
    server = Serving(starting, sqlite_url)
    server.start()
    for _ in range(ROUNDS):
        before = contents(tmp_path / "spool")
        feeder = feed(starting, tmp_path, server.url)
        wait_for("a batch in the spool", lambda: contents(tmp_path / "spool") != before, starting)  # noqa: B023
        time.sleep(chance.random() / 5)
        assert is_alive(feeder), "it was killed while there was something to push"
        kill(feeder)
    finish(feed(starting, tmp_path, server.url), starting, tmp_path)
    check(sqlite_url, tmp_path)
    assert min(expected_counts := counts_of(tmp_path / "spool")) > ROUNDS, expected_counts


def contents(folder: Path) -> dict[str, int]:
    """Return the sizes of a spool's files: they change with every batch."""
    files = [path for path in folder.glob("*") if path.is_file()]
    return {path.name: size for path in files if (size := size_of(path)) is not None}


def size_of(path: Path) -> int | None:
    """Return the size of a file, None for one that has just gone."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return None


def test_a_network_that_cuts_resets_and_delays(sqlite_url: str, starting: Forks, tmp_path: Path) -> None:
    server = Serving(starting, sqlite_url)
    server.start()
    with proxying(server.port, Cutting(seed=4)) as proxy:
        feeder = feed(starting, tmp_path, f"http://127.0.0.1:{proxy.port}")
        wait_for("25 cuts", lambda: proxy.cuts >= 25, starting)
        finish(feeder, starting, tmp_path)
    server.kill()
    check(sqlite_url, tmp_path)
