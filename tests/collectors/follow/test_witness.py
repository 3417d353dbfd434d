"""A log is followed beside the scrape of the same server: one launch, and no value twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.collectors.follow.following import NOW_MS, Follower
from tests.collectors.log.reading import BODY, FIXTURES

from specscope_collectors.board import Watched
from specscope_collectors.observations import Launch, SpeculativeConfig, Target
from specscope_collectors.sources.sglang_log.report import iso

CAPTURE = (FIXTURES / "server-eagle3-chain-0.5.8.log").read_bytes().splitlines(keepends=True)
(DUMP,) = [line for line in CAPTURE if b"server_args=" in line]
DUMP_BODY = DUMP.decode().partition("] ")[2]
TARGET = Target(name="gpu1", base_url="http://gpu1:30000")
GIVEN = frozenset({"requests.running", "spec.accept_length", "spec.engine_accept_rate"})


def scraped(key: str = "a", **fields: Any) -> Watched:
    """Return what the board says after a scrape."""
    values = {
        "time_ms": NOW_MS, "engine": "sglang", "engine_version": "0.5.8", "served_model_name": "tiny",
        "model": "models/tiny-target",
        "speculative": SpeculativeConfig(algorithm="EAGLE3", num_draft_tokens=4), **fields,
    }  # fmt: skip
    return Watched(TARGET, Launch(key=key, **values), GIVEN)


class Beside:
    """A log, a follower, and a board."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.touch()
        self.follower = Follower(path)
        self.sink, self.board = self.follower.sink, self.follower.board
        self.board.expect(["gpu1"])
        self.follower.step()

    def write(self, body: str) -> None:
        """Write a line that is stamped with the time it is."""
        with self.path.open("a") as file:
            file.write(f"[{iso(self.follower.now_ms)[:19].replace('T', ' ')} TP0] {body.strip()}\n")


@pytest.fixture
def beside(tmp_path: Path) -> Iterator[Beside]:
    """A server that this process scrapes."""
    found = Beside(tmp_path / "sglang.log")
    yield found
    found.follower.close()


def test_values_that_the_scrape_gives_are_left_out(beside: Beside) -> None:
    beside.board.tell(scraped())
    beside.write(BODY.replace("#queue-req", "fwd occupancy: 40.00, #queue-req"))
    beside.follower.step()
    (level,) = beside.sink.levels
    assert (level.metric, level.value) == ("engine.forward_occupancy", 0.4)
    assert level.labels == {"tp_rank": "0", "pp_rank": "0", "model_name": "tiny"}
    assert beside.sink.keys("engine.forward_occupancy") == {"a"}
    assert beside.sink.launches == []
    assert beside.sink.events("launch") == []
    assert beside.sink.batches[-1].target == TARGET


def test_a_server_without_metrics_gets_all_values_of_the_log_under_its_launch(beside: Beside) -> None:
    watched = scraped()
    beside.board.tell(Watched(TARGET, watched.launch, frozenset()))
    beside.write(BODY)
    beside.follower.step()
    assert len(beside.sink.levels) == 7
    assert beside.sink.keys("spec.accept_length") == {"a"}
    assert beside.sink.launches == []


def test_what_happens_while_the_server_starts_is_told_before_any_scrape_and_makes_no_launch(
    beside: Beside,
) -> None:
    beside.write(DUMP_BODY)
    beside.write("torch.OutOfMemoryError: CUDA out of memory")
    beside.follower.step()
    (error,) = beside.sink.events("log_error")
    assert "out of memory" in error.message
    assert beside.sink.launches == []
    beside.follower.step(300)
    beside.board.tell(scraped(time_ms=beside.follower.now_ms))
    beside.write(BODY.replace("#queue-req", "fwd occupancy: 40.00, #queue-req"))
    beside.follower.step()
    assert beside.sink.launches == []
    assert beside.sink.keys("engine.forward_occupancy") == {"a"}


def test_values_wait_for_the_scrape_that_tells_the_launch(beside: Beside) -> None:
    beside.write(BODY)
    beside.follower.step()
    assert beside.sink.levels == []
    beside.board.tell(scraped())
    beside.follower.step()
    assert beside.sink.launches == []
    beside.follower.step(100)
    assert beside.sink.levels == []  # the scrape gives all seven


def test_values_of_a_server_that_cannot_be_scraped_do_not_wait_for_ever(beside: Beside) -> None:
    beside.write(DUMP_BODY)
    beside.write(BODY)
    for _ in range(3):
        beside.follower.step(31)
    assert len(beside.sink.levels) == 7
    (launch,) = beside.sink.launches
    assert beside.sink.keys("spec.accept_length") == {launch.key}
    beside.write(BODY)
    beside.follower.step()
    assert len(beside.sink.launches) == 1


def test_a_restart_is_told_once_and_its_values_wait_for_the_new_launch(beside: Beside) -> None:
    occupied = BODY.replace("#queue-req", "fwd occupancy: 40.00, #queue-req")
    beside.board.tell(scraped())
    beside.write(occupied)
    beside.follower.step()
    beside.write(DUMP_BODY)
    beside.follower.step(60)
    beside.write(occupied)
    beside.follower.step()
    assert beside.sink.keys("engine.forward_occupancy") == {"a"}
    assert len(beside.sink.levels) == 1
    beside.follower.restart()
    beside.board.tell(scraped("b", time_ms=beside.follower.now_ms + 2_000))
    beside.follower.step()
    assert len(beside.sink.levels) == 2
    assert beside.sink.keys("engine.forward_occupancy") == {"a", "b"}
    assert beside.sink.events("restart") == []
    assert beside.sink.launches == []


def test_a_change_that_only_the_scrape_sees_moves_the_values_that_follow(beside: Beside) -> None:
    occupied = BODY.replace("#queue-req", "fwd occupancy: 40.00, #queue-req")
    beside.board.tell(scraped())
    beside.write(occupied)
    beside.follower.step()
    beside.board.tell(scraped("b", time_ms=beside.follower.now_ms))
    beside.follower.step(5)
    beside.write(occupied)
    beside.follower.step()
    assert [batch.launch_key for batch in beside.sink.batches if batch.launch_key][-1] == "b"


def test_logs_of_two_nodes_tell_of_one_launch(tmp_path: Path) -> None:
    for node in (0, 1):
        text = DUMP.decode().replace("node_rank=0", f"node_rank={node}")
        stamp = DUMP.decode()[:20]
        lines = f"{stamp} DP{4 * node} TP0] {BODY}\n"
        (tmp_path / f"node{node}.log").write_text(text + lines.replace(":34 ", ":35 "))
    follower = Follower(tmp_path / "node*.log", from_beginning=True)
    follower.drain()
    follower.close()
    (launch,) = follower.sink.launches
    assert follower.sink.keys("spec.accept_length") == {launch.key}
    ranks = {level.labels["dp_rank"] for level in follower.sink.levels}
    assert ranks == {"0", "4"}


def test_a_launch_that_began_before_its_first_scrape_is_the_scraped_one_by_its_seed(tmp_path: Path) -> None:
    (tmp_path / "sglang.log").write_bytes(b"".join(CAPTURE))
    follower = Follower(tmp_path / "sglang.log", from_beginning=True)
    follower.board.expect(["gpu1"])
    follower.board.tell(scraped(config={"random_seed": 25419070}))
    follower.drain()
    follower.restart()
    follower.drain()
    follower.close()
    (launch,) = follower.sink.launches
    assert launch.key == "a"
    assert iso(launch.time_ms) == "2026-11-29T21:29:35.000Z"
    assert {batch.launch_key for batch in follower.sink.batches if batch.launch_key} == {"a"}


def test_another_seed_is_another_start_however_alike_the_rest_is(tmp_path: Path) -> None:
    (tmp_path / "sglang.log").write_bytes(b"".join(CAPTURE))
    follower = Follower(tmp_path / "sglang.log", from_beginning=True)
    follower.board.tell(scraped(config={"random_seed": 25419071}))
    follower.drain()
    follower.close()
    assert {launch.key for launch in follower.sink.launches} != {"a"}
    assert len(follower.sink.keys("spec.accept_length")) == 1
