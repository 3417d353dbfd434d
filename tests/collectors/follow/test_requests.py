"""Following the request files that SGLang exports: every request once, whatever stops in between."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import create_engine, text
from tests.collectors.follow.following import Follower, MemorySink, SinkDownError
from tests.collectors.requests.captured import EXPORT

from specscope_collectors.job import Job, JobError
from specscope_collectors.observations import HealthState, RequestRecord
from specscope_collectors.sources.requests.job import Config, build
from specscope_server.settings import Settings
from specscope_server.startup import prepare_store
from specscope_server.store.engine import create_store_engine
from specscope_server.store.ingest import IngestWriter

LINES = EXPORT.read_bytes().splitlines(keepends=True)
STEPS = ("write", "write", "half", "next hour", "step", "step", "sink down", "answer lost", "kill")


class Requests(Follower):
    """Follows a directory."""

    def _made(self) -> Job:
        (job,) = build(Config(directory=str(self.path), server="gpu1", **self.config), self.context())
        return job

    @property
    def records(self) -> list[RequestRecord]:
        """Return what arrived."""
        return [each for each in self.sink.observations if isinstance(each, RequestRecord)]


class Exporter:
    """Writes requests as the engine does."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._hour = 0
        self._rest = b""
        self.names: list[str] = []

    def line(self) -> bytes:
        """Return the line of another request."""
        record: dict[str, Any] = json.loads(LINES[len(self.names) % len(LINES)])
        self.names.append(f"request-{len(self.names)}")
        return json.dumps(record | {"id": self.names[-1]}).encode() + b"\n"

    def write(self) -> None:
        """Write one request."""
        self._append(self._rest + self.line())
        self._rest = b""

    def half(self) -> None:
        """Write half of one."""
        line = self.line()
        self._append(self._rest + line[:50])
        self._rest = line[50:]

    def next_hour(self) -> None:
        """Go on in the next file."""
        self._append(self._rest)
        self._rest = b""
        self._hour += 1

    def _append(self, data: bytes) -> None:
        name = f"sglang-request-metrics-20261130_{self._hour:02}.log"
        with (self._directory / name).open("ab") as file:
            file.write(data)


def _do(step: str, exporter: Exporter, follower: Requests) -> None:
    actions = {
        "write": exporter.write, "half": exporter.half, "next hour": exporter.next_hour,
        "kill": follower.restart,
    }  # fmt: skip
    if step in actions:
        actions[step]()
        return
    follower.sink.down_for = 2 if step == "sink down" else 0
    follower.sink.takes_but_fails = step == "answer lost"
    with suppress(SinkDownError):
        follower.step(3)
    follower.sink.down_for, follower.sink.takes_but_fails = 0, False


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(STEPS), max_size=25))
def test_every_request_arrives_once(tmp_path_factory: pytest.TempPathFactory, steps: list[str]) -> None:
    directory = tmp_path_factory.mktemp("export")
    exporter = Exporter(directory)
    follower = Requests(directory)
    follower.step()
    for step in steps:
        if step != "next hour" or exporter._hour < 20:
            _do(step, exporter, follower)
    exporter.write()
    for _ in range(4):
        follower.step(3)
    follower.close()
    assert sorted(record.request_id for record in follower.records) == sorted(exporter.names)


@pytest.fixture
def follower(tmp_path: Path) -> Iterator[Requests]:
    """What follows an empty directory."""
    found = Requests(tmp_path)
    yield found
    found.close()


def test_what_was_there_before_is_left_alone_unless_asked_for(tmp_path: Path) -> None:
    for hour in range(6):
        (tmp_path / f"sglang-request-metrics-20261130_{hour:02}.log").write_bytes(LINES[hour % len(LINES)])
    follower = Requests(tmp_path)
    follower.step()
    assert follower.records == []
    with (tmp_path / "sglang-request-metrics-20261130_05.log").open("ab") as file:
        file.write(LINES[0])
    (tmp_path / "sglang-request-metrics-20261130_06.log").write_bytes(LINES[1])
    follower.step()
    assert len(follower.records) == 2
    follower.close()
    everything = Requests(tmp_path, from_beginning=True)
    for _ in range(3):
        everything.step()
    everything.close()
    assert len(everything.records) == 8


def test_a_missing_directory_is_said_with_the_flags(tmp_path: Path) -> None:
    follower = Requests(tmp_path / "none")
    follower.step()
    follower.close()
    assert follower.sink.health.state is HealthState.UNREACHABLE
    assert "none: No such file" in follower.sink.health.detail
    assert "--export-metrics-to-file-dir" in follower.sink.health.remedy


def test_what_is_refused_is_counted_and_the_rest_arrives(tmp_path: Path, follower: Requests) -> None:
    follower.step()
    long = b'{"id": "long", "text": "' + b"x" * 9_000_000 + b'"}\n'
    bad = b'{"id": "bad", "spec_verify_ct": -1}\nno json\n'
    (tmp_path / "sglang-request-metrics-20261130_00.log").write_bytes(LINES[0] + long + bad + LINES[1])
    for _ in range(3):
        follower.step(5)
    assert len(follower.records) == 2
    health = follower.sink.health
    assert health.state is HealthState.PARTIAL
    for reason in ("1 × the line is over 4194304 bytes", "1 × the line is not JSON", "1 × spec_verify_ct=-1"):
        assert reason in health.detail


def test_no_text_of_a_request_leaves_the_collector(tmp_path: Path, follower: Requests) -> None:
    follower.step()
    secret = {**json.loads(LINES[0]), "text": "a secret prompt", "id": "r1"}
    (tmp_path / "sglang-request-metrics-20261130_00.log").write_text(json.dumps(secret) + "\n")
    follower.step()
    assert len(follower.records) == 1
    assert "secret" not in repr(follower.sink.batches)


def test_the_store_puts_requests_under_the_launch_in_force(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/store.sqlite3"
    engine = create_store_engine(database)
    prepare_store(engine, Settings(database=database))
    (tmp_path / "out").mkdir()
    follower = Requests(tmp_path / "out")
    follower.sink = IngestWriter(engine, lambda: follower.now_ms)  # type: ignore[assignment]
    follower.restart()
    follower.step()
    (tmp_path / "out" / EXPORT.name).write_bytes(b"".join(LINES))
    follower.step()
    follower.restart()
    follower.step()
    follower.close()
    engine.dispose()
    reader = create_engine(database)
    with reader.connect() as connection:
        rows = connection.execute(text("SELECT launch_id, request_id FROM request")).all()
        launches = connection.execute(text("SELECT id FROM launch")).scalars().all()
    reader.dispose()
    assert len(rows) == len(LINES)
    assert {row.launch_id for row in rows} <= set(launches)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"directory": "", "server": "a"}, "directory is empty"),
        ({"directory": "d", "server": ""}, "is no name"),
        ({"directory": "d", "server": "a", "timezone": "Mars/Base"}, "there is no such zone"),
        ({"directory": "d", "server": "a", "interval_seconds": 0.0}, "must be greater than 0"),
        ({"directory": "d", "server": "a", "interval_seconds": math.inf}, "and finite"),
    ],
)
def test_what_cannot_be_is_refused(config: dict[str, Any], words: str, follower: Requests) -> None:
    with pytest.raises(JobError, match=words):
        build(Config(**config), follower.context())
    assert asyncio.run(follower.job.step()) == 2.0
    assert isinstance(follower.sink, MemorySink)
