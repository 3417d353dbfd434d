"""What is said while a log is followed: health, events, the printed rate's definition, services."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.collectors.follow.following import Follower
from tests.collectors.log.reading import BODY, FIXTURES, captured

from specscope_collectors.job import JobError
from specscope_collectors.observations import HealthState
from specscope_collectors.sources.sglang_log.job import Config, build
from specscope_collectors.sources.sglang_log.report import iso

CAPTURE = FIXTURES / "server-eagle3-chain-0.5.8.log"


def stamped(time_ms: int, body: str = BODY) -> str:
    """Return a line that was written at a time."""
    return f"[{iso(time_ms)[:19].replace('T', ' ')} TP0] {body}\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """An empty log."""
    found = tmp_path / "sglang.log"
    found.touch()
    return found


@pytest.fixture
def follower(path: Path) -> Iterator[Follower]:
    """What follows it; it has looked once."""
    found = Follower(path)
    found.step()
    yield found
    found.close()


def write(path: Path, text: str, written_ms: int | None = None) -> None:
    """Append to the log; ``written_ms``: what the file system says of when."""
    with path.open("a") as file:
        file.write(text)
    if written_ms is not None:
        os.utime(path, ns=(written_ms * 1_000_000, written_ms * 1_000_000))


def test_an_idle_log_is_healthy_and_says_since_when_nothing_came(path: Path, follower: Follower) -> None:
    assert (follower.sink.health.state, follower.sink.health.detail) == (
        HealthState.OK,
        "no line has come yet",
    )
    write(path, stamped(follower.now_ms) + "noise\n", follower.now_ms)
    follower.step(5)
    health = follower.sink.health
    assert health.state is HealthState.OK
    assert health.detail == "0.4 lines/s, of which 0.2 are Decode or Prefill lines; last line 0 s ago"
    assert health.body_bytes == path.stat().st_size
    follower.step(600)
    assert (follower.sink.health.state, follower.sink.health.detail) == (
        HealthState.OK, "idle: no line for 10 min",
    )  # fmt: skip


def test_refused_lines_are_said_for_ten_minutes(path: Path, follower: Follower) -> None:
    write(path, BODY + "\n" + stamped(follower.now_ms), follower.now_ms)
    follower.step(5)
    assert follower.sink.health.state is HealthState.PARTIAL
    assert follower.sink.health.refused == 1
    assert "left out in the last 10 minutes: 1 × no_stamp" in follower.sink.health.detail
    follower.step(300)
    assert follower.sink.health.state is HealthState.PARTIAL
    assert follower.sink.health.refused == 0
    follower.step(301)
    assert follower.sink.health.state is HealthState.OK


def test_a_wrong_zone_is_noticed(path: Path, follower: Follower) -> None:
    write(path, stamped(follower.now_ms + 2 * 3_600_000), follower.now_ms)
    follower.step(5)
    assert follower.sink.health.state is HealthState.PARTIAL
    assert "fresh lines are stamped 2.0 h ahead of this clock" in follower.sink.health.detail
    assert "timezone" in follower.sink.health.remedy


def test_a_file_that_is_not_there_is_said_until_it_comes(tmp_path: Path) -> None:
    follower = Follower(tmp_path / "later.log")
    follower.step()
    assert follower.sink.health.state is HealthState.UNREACHABLE
    assert "later.log: No such file" in follower.sink.health.detail
    write(tmp_path / "later.log", stamped(follower.now_ms), follower.now_ms)
    follower.step(5)
    follower.drain()
    assert follower.sink.health.state is HealthState.OK
    assert len(follower.sink.levels) == 7
    follower.close()


def test_many_lines_of_one_kind_become_one_event_at_once_and_one_for_the_rest(
    path: Path, follower: Follower
) -> None:
    full = "KV cache pool is full. Retract requests. #retracted_reqs: 2"
    for _ in range(5):
        write(path, stamped(follower.now_ms, full))
        follower.step()
    (first,) = follower.sink.events("retraction")
    assert first.detail["lines"] == 1
    follower.restart()
    follower.step(60)
    first, rest = follower.sink.events("retraction")
    assert (rest.detail["lines"], rest.detail["retracted_requests"]) == (4, 8.0)
    follower.step(60)
    assert len(follower.sink.events("retraction")) == 2


def test_the_definition_of_the_printed_rate_is_told_when_the_numbers_decide_and_once(path: Path) -> None:
    lines = CAPTURE.read_text().splitlines(keepends=True)
    path.write_text("")
    follower = Follower(path, from_beginning=True)
    for at, line in enumerate(lines):
        write(path, line)
        follower.step()
        if at % 20 == 0:
            follower.restart()
    follower.drain()
    follower.close()
    (event,) = follower.sink.events("rate_definition")
    assert event.detail["definition"] == "τ/D"
    assert event.detail["pairs"] < 11
    assert len(follower.sink.levels) == len(captured(CAPTURE.name).levels)


def test_several_services_are_named_and_one_can_be_chosen(path: Path) -> None:
    follower = Follower(path)
    follower.step()
    now = stamped(follower.now_ms)
    write(path, f"\x1b[36msglang-1  |\x1b[0m {now}sglang-2  | {now}")
    follower.step(5)
    assert follower.sink.health.state is HealthState.INVALID
    assert "several servers write into this log: sglang-1, sglang-2" in follower.sink.health.detail
    assert follower.sink.levels == []
    follower.close()
    chosen = Follower(path, service="sglang-2", from_beginning=True)
    chosen.drain()
    chosen.close()
    assert len(chosen.sink.levels) == 7


def test_lost_lines_are_an_event(path: Path, follower: Follower) -> None:
    write(path, stamped(follower.now_ms))
    follower.step()
    os.truncate(path, 0)
    write(path, "new\n")
    follower.drain()
    (event,) = follower.sink.events("log_gap")
    assert "was truncated, replaced or removed" in event.message
    assert "lines that were lost" in follower.sink.health.detail


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"path": "", "server": "a"}, "path is empty"),
        ({"path": "a.log", "server": " "}, "is no name"),
        ({"path": "a.log", "server": "a", "timezone": "Mars/Base"}, "there is no such zone"),
        ({"path": "a.log", "server": "a", "date": "yesterday"}, "write YYYY-MM-DD"),
        ({"path": "a.log", "server": "a", "interval_seconds": 0.0}, "must be greater than 0"),
    ],
)
def test_what_cannot_be_is_refused_with_the_remedy(
    config: dict[str, object], words: str, follower: Follower
) -> None:
    with pytest.raises(JobError, match=words):
        build(Config(**config), follower.context())  # type: ignore[arg-type]


def test_one_file_has_one_name(follower: Follower) -> None:
    names = [
        build(Config(path=path, server="a"), follower.context())[0].name
        for path in ("/logs/a.log", "/logs//./b/../a.log")
    ]
    assert names == ["sglang_log:/logs/a.log"] * 2
