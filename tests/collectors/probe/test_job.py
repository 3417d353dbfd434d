"""The source of state profiles: stored once, under the right launch, and deleted only then."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.collectors.probe.files import SEED, SERVER, T0, World, content, profile
from tests.collectors.runner.engine import StoreDownError

from specscope_collectors.job import JobError
from specscope_collectors.jobs import job_kinds
from specscope_collectors.observations import Event, HealthState, StateProfile
from specscope_collectors.sources.probe import reading, records
from specscope_collectors.sources.probe.job import Config, build


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A folder and a sink that stores."""
    spool = tmp_path / "spool"
    spool.mkdir()
    with ThreadPoolExecutor(2) as pool:
        yield World(spool, pool)


def test_it_is_found_by_its_folder() -> None:
    assert job_kinds()["probe"].config is Config


@pytest.mark.parametrize("wrong", [{"spool": " "}, {"server": ""}, {"interval_seconds": 0}])
def test_what_cannot_be_is_said(world: World, wrong: dict[str, Any]) -> None:
    with pytest.raises(JobError, match="probe"):
        build(Config(**{"spool": "x", "server": "y", **wrong}), None)  # type: ignore[arg-type]


def test_a_file_is_stored_under_its_launch_and_deleted(world: World) -> None:
    world.launch()
    world.write()
    assert world.steps() > 0
    found = world.sink.all(StateProfile)
    assert [each.slot for each in found] == [1, 2]
    assert found[0].ln_norms.bins == {145: 4, 150: 6}
    assert len(found[0].direction_sum) == 32
    assert world.sink.batches[0].launch_key == "a1"
    assert world.sink.batches[0].target.base_url == "http://gpu1:30000"
    assert world.left() == []
    capture, rows = world.sink.all(Event)
    assert (capture.kind, rows.kind) == ("state_capture", "state_rows")
    assert capture.detail["capture"]["boundaries"] == [2, 30, 57]
    assert rows.detail["rows"][0]["norm"] == 2.5
    assert world.sink.health("probe").state is HealthState.OK


def test_a_capture_is_told_when_it_changes(world: World) -> None:
    world.launch()
    for number in range(3):
        world.write(str(number))
        world.steps()
    changed = content(capture={**content()["capture"], "boundaries": [3, 31, 58]})
    world.write("4", changed)
    world.steps(2)
    captures = [each for each in world.sink.all(Event) if each.kind == "state_capture"]
    assert [each.detail["capture"]["boundaries"][0] for each in captures] == [2, 3]


def test_killed_between_storing_and_deleting_it_repeats_nothing(world: World) -> None:
    world.launch()
    path = world.write()
    saved = path.read_bytes()
    world.steps()
    path.write_bytes(saved)  # as if the deletion had not happened
    world.steps()
    assert len(world.sink.all(StateProfile)) == 2
    assert len(world.sink.all(Event)) == 2
    assert world.left() == []


def test_a_large_file_goes_in_parts_and_goes_on_where_it_stopped(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "PART_BYTES", 1)
    world.launch()
    world.write("1", content(profiles=[profile(slot=slot) for slot in range(5)]))
    stored = []
    keep = world.sink.apply

    def apply(batch: Any) -> bool:
        if len(stored) == 2:
            raise StoreDownError("down")
        stored.append(batch)
        return keep(batch)

    monkeypatch.setattr(world.sink, "apply", apply)
    with pytest.raises(StoreDownError):
        world.steps()
    assert len(world.left()) == 1
    monkeypatch.setattr(world.sink, "apply", keep)
    world.steps()
    assert [each.slot for each in world.sink.all(StateProfile)] == [0, 1, 2, 3, 4]
    assert world.left() == []


def test_an_answer_that_is_lost_repeats_nothing(world: World) -> None:
    world.launch()
    world.write()
    world.sink.loses_the_answer = True
    with pytest.raises(StoreDownError):
        world.steps()
    world.sink.loses_the_answer = False
    world.steps()
    assert len(world.sink.all(StateProfile)) == 2
    assert world.left() == []


def test_without_a_launch_files_wait_and_it_says_so(world: World) -> None:
    world.write()
    world.steps()
    health = world.sink.health("probe")
    assert health.state is HealthState.PARTIAL
    assert "no launch of gpu1" in health.detail
    assert len(world.left()) == 1
    world.launch()
    world.steps()
    assert len(world.sink.all(StateProfile)) == 2


def test_files_of_another_start_wait_for_its_launch_or_are_refused(world: World) -> None:
    world.launch(time_ms=T0, seed=SEED + 1)
    world.write("new", content(created_ms=T0 + 10))
    world.write("old", content(created_ms=T0 - 10))
    world.steps()
    assert world.sink.all(StateProfile) == []
    assert world.left() == ["specscope-states-new.json.gz"]
    assert "another start" in world.sink.health("probe").detail
    world.launch(key="b2")
    world.steps()
    assert world.sink.batches[-2].launch_key == "b2"
    world.launch(key="c3", time_ms=T0, seed=SEED + 1)
    world.write("never", content(created_ms=T0 + 10))
    world.now_ms = T0 + 700_000
    world.steps()
    assert world.left() == []


def test_a_seed_that_a_person_chose_proves_nothing(world: World) -> None:
    world.launch(seed=42)
    world.write("1", content(random_seed=7))
    world.steps()
    assert len(world.sink.all(StateProfile)) == 2


def bomb() -> bytes:
    """Return a small file that unpacks to more than may be."""
    return gzip.compress(b" " * (reading.MAX_BYTES + 2), compresslevel=9)


@pytest.mark.parametrize(
    ("hostile", "reason"),
    [
        (b"", "too early"),
        (b"not gzip at all", "not gzip"),
        (gzip.compress(b"{")[:-6], "too early"),
        (gzip.compress(b"{}") + b"x", "too late"),
        (gzip.compress(b"[1, 2]"), "not as the probe"),
        (gzip.compress(b"[" * 100_000), "not as the probe"),
        (gzip.compress(b'{"format": 1}'), "not as the probe"),
        (gzip.compress(json.dumps(content(format=2)).encode()), "format 2"),
        (gzip.compress(json.dumps(content(profiles=[])).encode()), "not as the probe"),
        (gzip.compress(json.dumps(content(engine_version="x" * 300)).encode()), "not as the probe"),
        (gzip.compress(json.dumps(content(profiles=[profile(rows="many")])).encode()), "not as the probe"),
        (gzip.compress(json.dumps(content(profiles=[profile(direction_sum="AAA")])).encode()), "not as"),
        (gzip.compress(json.dumps(content(profiles=[profile(direction_sum="AAAA")])).encode()), "float32"),
        (gzip.compress(json.dumps(content(profiles=[profile(direction_sum="AADAfw==")])).encode()), "no num"),
        (gzip.compress(b'"\xff\xfe"'), "not as the probe"),
    ],
    ids=lambda value: value if isinstance(value, str) else "file",  # gzip writes the time into its bytes
)  # fmt: skip
def test_hostile_files_are_put_aside_and_counted(world: World, hostile: bytes, reason: str) -> None:
    world.launch()
    world.write("1", hostile)
    world.write("2")
    world.steps()
    assert len(world.sink.all(StateProfile)) == 2
    assert world.left() == []
    health = world.sink.health("probe")
    assert (health.state, health.refused) == (HealthState.PARTIAL, 1)
    assert reason in health.detail
    assert (world.spool / "refused" / "specscope-states-1.json.gz").read_bytes() == hostile


def test_a_bomb_is_not_unpacked(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MAX_BYTES", 1 << 22)
    world.launch()
    path = world.write("1", bomb())
    assert path.stat().st_size < 1 << 15
    world.steps()
    assert "unpacked" in world.sink.health("probe").detail


def test_links_pipes_and_folders_are_not_followed(world: World, tmp_path: Path) -> None:
    world.launch()
    secret = tmp_path / "secret"
    secret.write_text("x")
    (world.spool / "specscope-states-1.json.gz").symlink_to(secret)
    os.mkfifo(world.spool / "specscope-states-2.json.gz")
    (world.spool / "specscope-states-3.json.gz").mkdir()
    world.steps()
    assert world.sink.health("probe").refused == 3
    assert secret.read_text() == "x"
    assert not list(world.spool.glob("specscope-states-*"))


def test_only_the_newest_refused_files_are_kept(world: World) -> None:
    world.launch()
    for number in range(40):
        world.write(f"{number:03d}", b"bad")
    for _ in range(6):
        world.steps()
    kept = sorted(path.name for path in (world.spool / "refused").iterdir())
    assert len(kept) == 32
    assert kept[-1] == "specscope-states-039.json.gz"


def test_a_folder_that_is_not_there_is_said_with_the_way_to_make_it(world: World) -> None:
    world.spool.rmdir()
    world.steps()
    health = world.sink.health("probe")
    assert health.state is HealthState.UNREACHABLE
    assert "SPECSCOPE_SPOOL" in health.remedy


def test_files_that_cannot_be_deleted_are_taken_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied")

    world.launch()
    world.write("1")
    world.write("2", b"bad")
    with monkeypatch.context() as context:
        context.setattr(Path, "unlink", refuse)
        context.setattr(Path, "rename", refuse)
        for _ in range(3):
            world.steps(2)
    assert len(world.sink.all(StateProfile)) == 2
    assert len(world.left()) == 2
    world.write("3")
    world.steps()
    assert len(world.sink.all(StateProfile)) == 4
    assert world.left() == []


def test_the_server_name_is_the_jobs(world: World) -> None:
    world.launch()
    world.write()
    world.steps()
    assert {batch.target.name for batch in world.sink.batches} == {SERVER}
