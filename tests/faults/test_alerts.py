"""Alerts whose processes are killed at any moment, and several processes on one database.

The receiver is real, on loopback. Whatever happens: every fire and every end is told, repeated only with the
same webhook-id, and no end without its fire.
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, select, text
from tests.faults.processes import Forks, forks, is_alive, kill, wait_for
from tests.server.alerts.standin import add_channel

from specscope_server.models import AlertTransition, Delivery
from specscope_server.store.engine import create_store_engine

WORKER = "tests.faults.alert_worker"
SERVERS = ("gpu1", "gpu2", "gpu3")
MOMENTS, ALL_MOMENTS = 8, 100
LAST_MOMENT = 120
DECISIONS = 15
SPEED = 400
"""A claim that was lost is free again after a fifth of a second instead of a minute."""


@dataclass
class Receiver:
    """What arrived, in order: webhook-id → (alert id, server, status) of its alerts."""

    posts: list[tuple[str, tuple[tuple[str, str, str], ...]]] = field(default_factory=list)
    url: str = ""

    def told(self) -> dict[str, str]:
        """Return server → what was last said of it."""
        return {server: status for _, alerts in list(self.posts) for _, server, status in alerts}


@contextmanager
def receiving() -> Iterator[Receiver]:
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            receiver.posts.append((self.headers["webhook-id"], told_in(body)))
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver.url = f"http://127.0.0.1:{server.server_port}/hook"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def told_in(body: dict[str, Any]) -> tuple[tuple[str, str, str], ...]:
    """Return (alert id, server, status) of each alert of a message."""
    return tuple(
        (card["alert_id"], card["labels"]["server"], card["status"]) for card in body["data"]["alerts"]
    )


@dataclass
class Scene:
    """A database, a receiver, and what is true."""

    url: str
    engine: Engine
    receiver: Receiver
    starting: Forks
    folder: Path
    speed: float
    truth: dict[str, bool] = field(default_factory=lambda: dict.fromkeys(SERVERS, False))
    began: float = field(default_factory=time.time)

    def flip(self, server: str) -> str:
        """Change what is true of a server; return what must be told of it."""
        self.truth[server] = not self.truth[server]
        self.write()
        return "firing" if self.truth[server] else "resolved"

    def write(self) -> None:
        path = self.folder / "truth.new"
        path.write_text(json.dumps(self.truth))
        path.replace(self.folder / "truth")

    def start(self, name: str = "stage", end: int = 0) -> int:
        """Start a process, one that ends itself at a moment unless it is 0."""
        stages = self.folder / name
        return self.starting.start(
            WORKER, self.url, self.folder / "truth", stages, self.began, self.speed, end
        )  # fmt: skip

    def stage(self) -> str:
        """Return the letter of the stage in which the process was killed; "" = before the first."""
        path = self.folder / "stage"
        found = path.read_text() if path.exists() else ""
        path.unlink(missing_ok=True)
        return found

    def wait_until_told(self, server: str, status: str) -> None:
        wait_for(
            f"message that {server} is {status}", lambda: self.receiver.told().get(server) == status,
            self.starting, every=0.002,
        )  # fmt: skip


@contextmanager
def a_scene(url: str, folder: Path, speed: float) -> Iterator[Scene]:
    engine = create_store_engine(url)
    with receiving() as receiver, forks(folder, [WORKER]) as starting:
        config = json.dumps({"url": receiver.url, "allow_private": True, "per_minute": 10_000})
        add_channel(engine, config=config, origin="api")
        scene = Scene(url, engine, receiver, starting, folder, speed)
        scene.write()
        yield scene
    engine.dispose()


def test_killed_between_any_two_statements(sqlite_url: str, tmp_path: Path) -> None:
    """A process kills itself at a random one of the moments that one decision has, a hundred times."""
    chance = random.Random(5)
    stages: dict[str, int] = defaultdict(int)
    with a_scene(sqlite_url, tmp_path, SPEED) as scene:
        while sum(stages.values()) < ALL_MOMENTS:
            server = chance.choice(SERVERS)
            wanted = scene.flip(server)
            for _ in range(chance.randint(1, 4)):
                died(scene.start(end=chance.randint(1, LAST_MOMENT)))
                stages[scene.stage()] += 1
            pid = scene.start()
            scene.wait_until_told(server, wanted)
            kill(pid)
            scene.stage()
        settle(scene)
        check(scene)
    assert all(stages[stage] >= 3 for stage in "END"), dict(stages)


def died(pid: int) -> None:
    wait_for("end of a process", lambda: not is_alive(pid), every=0.002)


def test_killed_at_random_moments(sqlite_url: str, tmp_path: Path) -> None:
    stages = killed_again_and_again(sqlite_url, tmp_path, MOMENTS)
    assert len(stages) >= 3, f"all were killed in the same stage: {dict(stages)}"


@pytest.mark.benchmark
def test_killed_at_a_hundred_random_moments(sqlite_url: str, tmp_path: Path) -> None:
    stages = killed_again_and_again(sqlite_url, tmp_path, ALL_MOMENTS)
    assert {"E", "N", "D"} <= set(stages), f"a stage was never hit: {dict(stages)}"


def killed_again_and_again(url: str, folder: Path, moments: int) -> dict[str, int]:
    """Return stage → how often a process was killed in it."""
    chance = random.Random(7)
    stages: dict[str, int] = defaultdict(int)
    with a_scene(url, folder, SPEED) as scene:
        for _ in range(moments):
            server = chance.choice(SERVERS)
            wanted = scene.flip(server)
            pid = scene.start()
            wait_for("first stage", (folder / "stage").exists, every=0.001)
            time.sleep(chance.random() * 0.08)
            kill(pid)
            stages[scene.stage()] += 1
            pid = scene.start()
            scene.wait_until_told(server, wanted)
            kill(pid)  # often after it was told, and before that was recorded
            stages[scene.stage()] += 1
        settle(scene)
        check(scene)
        assert [row.to_state for row in history(scene)].count("firing") >= moments // 2
    return stages


def settle(scene: Scene) -> None:
    """Let a process run until nothing waits any more."""
    pid = scene.start()
    wait_for("empty outbox", lambda: waiting(scene) == 0, scene.starting)
    kill(pid)


def check(scene: Scene) -> None:
    """Nothing lost, nothing told twice under two ids, no end without its fire."""
    ids: dict[tuple[str, str], set[str]] = defaultdict(set)
    content: dict[str, set[Any]] = defaultdict(set)
    fired: set[str] = set()
    for webhook_id, alerts in scene.receiver.posts:
        content[webhook_id].add(alerts)
        for alert_id, _, status in alerts:
            ids[alert_id, status].add(webhook_id)
            fired |= {alert_id} if status == "firing" else set()
            assert alert_id in fired, f"the end of {alert_id} was told before its fire"
    assert {len(found) for found in content.values()} == {1}, "one id, one content"
    assert {len(found) for found in ids.values()} == {1}, "one decision, one id"
    rows = history(scene)
    begun = [row.alert_id for row in rows if row.to_state == "firing"]
    ended = [row.alert_id for row in rows if row.to_state == "resolved"]
    assert len(set(begun)) == len(begun)
    assert len(set(ended)) == len(ended)
    assert {key for key, status in ids if status == "firing"} == set(begun), "every fire was told"
    assert {key for key, status in ids if status == "resolved"} == set(ended), "every end was told"
    assert {server for server, status in scene.receiver.told().items() if status == "firing"} == {
        server for server, bad in scene.truth.items() if bad
    }


def history(scene: Scene) -> list[Any]:
    query = select(AlertTransition.alert_id, AlertTransition.to_state).order_by(AlertTransition.id)
    with scene.engine.connect() as connection:
        return list(connection.execute(query))


def waiting(scene: Scene) -> int:
    with scene.engine.connect() as connection:
        states = connection.scalars(select(Delivery.status)).all()
    return sum(status in ("pending", "claimed") for status in states)


@pytest.mark.postgres
def test_two_processes_tell_each_decision_once(postgres_url: str, tmp_path: Path) -> None:
    chance = random.Random(3)
    with a_scene(postgres_url, tmp_path, 1) as scene:
        pids = [scene.start("a"), scene.start("b")]
        for _ in range(DECISIONS):
            server = chance.choice(SERVERS)
            scene.wait_until_told(server, scene.flip(server))
        wait_for("empty outbox", lambda: waiting(scene) == 0, scene.starting)
        both = workers(scene)
        for pid in pids:
            kill(pid)
        check(scene)
        ids = [webhook_id for webhook_id, _ in scene.receiver.posts]
        assert len(ids) == len(set(ids)) == DECISIONS
        assert len(both) == 1, "one process evaluates"


@pytest.mark.postgres
def test_the_other_process_goes_on_when_the_first_is_killed(postgres_url: str, tmp_path: Path) -> None:
    with a_scene(postgres_url, tmp_path, 60) as scene:
        first = scene.start("a")
        scene.wait_until_told("gpu1", scene.flip("gpu1"))
        second = scene.start("b")
        kill(first)
        scene.wait_until_told("gpu1", scene.flip("gpu1"))
        scene.wait_until_told("gpu2", scene.flip("gpu2"))
        wait_for("empty outbox", lambda: waiting(scene) == 0, scene.starting)
        kill(second)
        check(scene)


def workers(scene: Scene) -> list[str]:
    with scene.engine.connect() as connection:
        return list(connection.scalars(text("SELECT holder FROM lease WHERE name = 'alerts.evaluation'")))
