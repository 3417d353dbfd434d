"""Starting captures: what an engine is asked, what it may answer, and that its files are taken."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine
from tests.server.client import Web
from tests.support.profiled import RECORDED, FarSide, profiled_engine

from specscope_collectors.observations import Batch, Launch, Target
from specscope_collectors.traces.capture import CaptureError, Waiting, files_in, wait
from specscope_server.app import create_app
from specscope_server.cli.trace import main
from specscope_server.settings import Settings
from specscope_server.store.ingest import IngestWriter

NOW_MS = 1_795_990_000_000


@pytest.fixture
def engine() -> Iterator[FarSide]:
    """The far side."""
    with profiled_engine() as far:
        yield far


def watched(engine: Engine, url: str) -> None:
    """Let the store know a server."""
    launch = Launch(key="a1", time_ms=NOW_MS - 60_000, engine="sglang")
    target = Target(name="gpu1", base_url=url)
    writer = IngestWriter(engine, lambda: NOW_MS)
    writer.apply(Batch(collector_id="c", sequence=1, target=target, launch_key="a1", observations=(launch,)))


def application(store: Engine, **settings: Any) -> Web:
    """Return the application."""
    return Web(create_app(Settings(**settings), engine=store, clock=lambda: NOW_MS))


def ended(web: Web) -> dict[str, Any]:
    """Return the newest capture once it is over."""
    until = time.monotonic() + 120
    while time.monotonic() < until:
        found: dict[str, Any] = web.api("/trace-captures")["captures"][0]
        if found["state"] not in ("running", "waiting"):
            return found
        time.sleep(0.05)
    raise AssertionError("the capture did not end")


def order(web: Web, **more: Any) -> Any:
    """Ask for a capture."""
    return web.request("POST", "/api/v1/trace-captures", json={"server": "gpu1", "steps": 20, **more})


def test_a_capture_is_asked_for_without_stacks_and_imported(
    sqlite_engine: Engine, engine: FarSide, tmp_path: Path
) -> None:
    watched(sqlite_engine, engine.url)
    web = application(
        sqlite_engine, trace_capture_folder=tmp_path, engine_admin_key="secret", engine_api_key="k"
    )
    answer = order(web, by_stage=True)
    assert answer.status_code == 200
    assert answer.json()["state"] in {"running", "waiting"}  # the engine may be quicker
    [(body, authorization)] = engine.asked
    assert body == {
        "num_steps": 20, "activities": ["CPU", "GPU"], "profile_by_stage": True, "with_stack": False,
        "record_shapes": False, "output_dir": str(tmp_path),
    }  # fmt: skip
    assert authorization == "Bearer secret"
    found = ended(web)
    assert (found["state"], found["words"]) == ("done", "imported 1 capture")
    detail = web.api(f"/traces/{found['trace_ids'][0]}")
    assert detail["cycles"] == 14
    assert detail["note"] == "20 steps, started from here"
    assert "secret" not in json.dumps([found, detail])


def test_it_says_when_the_engine_writes(sqlite_engine: Engine, engine: FarSide, tmp_path: Path) -> None:
    """The recorded trace, cut short, is not whole: it is waited for until its end is there."""
    watched(sqlite_engine, engine.url)
    engine.writes_itself = False
    web = application(sqlite_engine, trace_capture_folder=tmp_path)
    assert order(web).json()["state"] == "running"
    content, path = RECORDED.read_bytes(), tmp_path / RECORDED.name
    path.write_bytes(content[:100])
    until = time.monotonic() + 120
    while (found := web.api("/trace-captures")["captures"][0])["state"] == "running":
        assert time.monotonic() < until, found
        time.sleep(0.05)
    assert (found["state"], order(web).status_code) == ("waiting", 503)
    assert found["words"] == "the engine writes the files, and generates nothing meanwhile"
    path.write_bytes(content)
    assert ended(web)["words"] == "imported 1 capture"


def test_without_a_shared_folder_it_says_where_the_files_are(sqlite_engine: Engine, engine: FarSide) -> None:
    watched(sqlite_engine, engine.url)
    web = application(sqlite_engine, engine_api_key="key")
    assert order(web).status_code == 200
    assert ended(web)["words"].startswith("started; the files stay on the engine's host")
    assert engine.asked[0][1] == "Bearer key"
    assert "output_dir" not in engine.asked[0][0]
    assert order(web).status_code == 200  # the turn was given back


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (401, "wants the engine's admin key; set SPECSCOPE_ENGINE_ADMIN_KEY"),
        (404, "takes no captures by HTTP"),
        (400, "answered 400: Profiling is already in progress."),
    ],
)
def test_an_engine_that_refuses(sqlite_engine: Engine, engine: FarSide, status: int, words: str) -> None:
    watched(sqlite_engine, engine.url)
    engine.status = status
    web = application(sqlite_engine)
    for _ in range(2):
        answer = order(web)
        assert answer.status_code == 422
        assert words in answer.json()["detail"]


def test_what_cannot_be_asked_for(sqlite_engine: Engine) -> None:
    watched(sqlite_engine, "http://127.0.0.1:9")
    web = application(sqlite_engine)
    assert "does not answer" in order(web).json()["detail"]
    assert order(web, server="nobody").status_code == 404
    assert order(web, steps=0).status_code == 422
    assert order(web, steps=5_000).status_code == 422


def test_the_command_captures_and_imports(
    engine: FarSide, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPECSCOPE_ENGINE_ADMIN_KEY", "secret")
    arguments = ["capture", "--server", f"gpu1={engine.url}", "--steps", "17", "--cpu-only", "--name", "mine"]
    assert main([*arguments, "--database", "sqlite:///a.db"]) == 0
    said = capsys.readouterr().err
    assert "generates nothing until the files are written" in said
    assert "TP0: 14 cycles" in said
    assert "stored    mine: trace 1" in said
    assert engine.asked[0][0]["activities"] == ["CPU"]
    assert "secret" not in said
    engine.status = 401
    assert main(arguments) == 1
    assert "SPECSCOPE_ENGINE_ADMIN_KEY" in capsys.readouterr().err
    engine.status = 200
    assert main([*arguments, "--no-wait"]) == 0
    assert "output_dir" not in engine.asked[-1][0]
    assert main(["capture", "--server", "ftp://x"]) == 2


def waiting(step: Callable[[float], None], deadline: float = 60.0) -> Waiting:
    """Return a wait whose clock moves by its sleeps."""
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds
        step(now[0])

    return Waiting(deadline, clock=lambda: now[0], sleep=sleep)


def test_files_are_taken_when_they_have_stopped_growing(tmp_path: Path) -> None:
    content = RECORDED.read_bytes()
    (tmp_path / "old.json.gz").write_bytes(content)
    before = files_in(tmp_path)
    path = tmp_path / "1-TP-0.trace.json.gz"

    def write(now: float) -> None:
        if now <= 10:
            path.write_bytes(content[: round(len(content) * now / 10)])

    clock = waiting(write)
    assert wait(tmp_path, before, clock) == [path]
    assert clock.clock() > 10
    assert path.read_bytes() == content


def test_a_file_that_pauses_halfway_is_not_taken_for_whole(tmp_path: Path) -> None:
    content, path = RECORDED.read_bytes(), tmp_path / "1-TP-0.trace.json"
    whole = b'{"traceEvents": [' + b" " * 100 + b"]}"

    def write(now: float) -> None:
        path.write_bytes(whole[:50] if now < 20 else whole)

    clock = waiting(write)
    assert wait(tmp_path, {}, clock) == [path]
    assert clock.clock() >= 20
    assert content


def test_no_file_in_time_says_what_may_be_wrong(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="steps are only counted while requests run"):
        wait(tmp_path, {}, waiting(lambda now: None, deadline=5.0))
