"""Back-fill goes on where it was: after a crash of the API or of the store; and twice changes nothing."""

from __future__ import annotations

import contextlib
import random
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.collectors.prometheus.recorded import (
    INSTANCE,
    measured,
    night,
    read,
    scraped_by_us,
    stored_by_prometheus,
)
from tests.collectors.runner.engine import MemorySink, StoreDownError
from tests.support.prometheus import need_prometheus, running

from specscope_collectors.board import Board, Watched
from specscope_collectors.observations import Batch, Event, HealthState, Increment, Launch, Target
from specscope_collectors.sources.prometheus import chunks
from specscope_collectors.sources.prometheus.job import Config


def _small(init: Any) -> Any:
    """Make chunks that do not grow beyond 10 minutes."""

    def made(self: Any, length_ms: int = 300_000, *_: int) -> None:
        init(self, min(length_ms, 300_000), 30_000, 600_000, 600_000)

    return made


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "TARGET_SAMPLES", 20_000)
    monkeypatch.setattr(chunks.ChunkSize, "__init__", _small(chunks.ChunkSize.__init__))


def test_a_prometheus_that_dies_in_the_middle_is_gone_on_with(tmp_path: Path) -> None:
    need_prometheus()
    scraped = night(2_400, speed=4)
    ours, theirs = scraped_by_us(scraped), MemorySink()
    with running(tmp_path, stored_by_prometheus(scraped)) as prometheus:
        config = Config(url=prometheus.url, back_fill="7h", raw="7h")

        def kill(count: int, wait: float) -> None:
            if measured(theirs):
                prometheus.kill()

        assert read(theirs, config, after_step=kill) > 2
        assert theirs.health("prometheus").state is HealthState.UNREACHABLE
        assert "9090" in theirs.health("prometheus").remedy
        assert 0 < len(measured(theirs)) < len(measured(ours))
        prometheus.start()
        read(theirs, config)
    assert measured(theirs) == measured(ours)
    assert theirs.health("prometheus").state is HealthState.OK


@pytest.mark.parametrize("is_killed", [True, False], ids=["we are killed", "we try again"])
def test_a_store_that_fails_once_and_at_random_gets_everything_once(tmp_path: Path, is_killed: bool) -> None:
    need_prometheus()
    scraped = night(1_500, speed=4 if is_killed else 0.5)
    chance, tried = random.Random(3), set[int]()

    class Moody(MemorySink):
        def apply(self, batch: Batch) -> bool:
            if batch.sequence not in tried or chance.random() < 0.3:
                tried.add(batch.sequence)
                raise StoreDownError("down")
            return super().apply(batch)

    ours, theirs = scraped_by_us(scraped), Moody()
    with running(tmp_path, stored_by_prometheus(scraped)) as prometheus:
        config = Config(url=prometheus.url, back_fill="7h", raw="7h")
        if is_killed:
            for _ in range(200):
                with contextlib.suppress(StoreDownError):
                    read(theirs, config)
                    break
        else:
            read(theirs, config, tolerated=StoreDownError)
    assert measured(theirs) == measured(ours)


def test_the_same_again_changes_nothing_and_an_older_past_is_put_in_front(tmp_path: Path) -> None:
    need_prometheus()
    scraped = night(3_600, speed=0.5)
    ours, theirs = scraped_by_us(scraped), MemorySink()
    middle_ms = scraped[120][0]
    with running(tmp_path, stored_by_prometheus(scraped)) as prometheus:
        short = Config(url=prometheus.url, back_fill="5h29m", raw="9h", follow=False)
        read(theirs, short)
        first = min(key[3] for key in measured(theirs))
        assert abs(first - middle_ms) < 300_000
        before = len(measured(theirs))
        read(theirs, short)
        assert len(measured(theirs)) == before
        read(theirs, Config(url=prometheus.url, back_fill="8h", raw="9h"))
        again = len(measured(theirs))
        read(theirs, Config(url=prometheus.url, back_fill="8h", raw="9h"))
    assert again == len(measured(theirs))
    assert measured(theirs) == measured(ours)


def test_a_server_that_is_scraped_by_us_is_left_alone(tmp_path: Path) -> None:
    need_prometheus()
    board = Board()
    target = Target(name=INSTANCE, base_url="http://gpu1:30000")
    board.tell(
        Watched(target=target, launch=Launch(key="k", time_ms=1, engine="sglang"), metrics=frozenset())
    )
    theirs = MemorySink()
    with running(tmp_path, stored_by_prometheus(night(300))) as prometheus:
        read(theirs, Config(url=prometheus.url, back_fill="7h"), board=board)
        read(theirs, Config(url=prometheus.url, back_fill="7h"), board=board)
    assert not theirs.all(Increment)
    assert not theirs.all(Event)
    health = theirs.health("prometheus")
    assert (health.state, theirs.batches[-1].target) == (HealthState.PARTIAL, target)
    assert "specscope import prometheus" in health.remedy


def test_two_readers_of_one_history_store_it_once(tmp_path: Path) -> None:
    need_prometheus()
    scraped = night(1_200, speed=4)
    ours, theirs = scraped_by_us(scraped), MemorySink()
    with running(tmp_path, stored_by_prometheus(scraped)) as prometheus:
        config = Config(url=prometheus.url, back_fill="7h", raw="7h")
        state: dict[str, Any] = {"inside": False}

        def meddle(count: int, wait: float) -> None:
            if measured(theirs) and not state["inside"]:
                state["inside"] = True
                read(theirs, config)  # another process overtakes

        def run(count: int, wait: float) -> None:
            thread = threading.Thread(target=meddle, args=(count, wait))
            thread.start()
            thread.join()

        read(theirs, config, after_step=run)
        read(theirs, config)
    assert measured(theirs) == measured(ours)
