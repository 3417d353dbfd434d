"""Pushing profiles to a real server: stored once under the right launch; what cannot be pushed stays."""

from __future__ import annotations

import gzip
import json
import os
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from tests.collectors.probe.files import SEED, content, profile
from tests.support.product import Product, serving
from tests.support.rig import free_port

from specscope_collectors.observations import Batch, Launch, Target
from specscope_probe.parts import Part
from specscope_probe.states import batches
from specscope_probe.states.counts import StateCounts
from specscope_probe.states.link import Link
from specscope_probe.states.outbox import Outbox
from specscope_probe.states.pushing import LOOK_SECONDS, Pusher
from specscope_probe.states.spool import Spool

RANK = {"tp_rank": "0"}
SECRET = "opens-everything-0123456789"
BEARER = {"authorization": f"Bearer {SECRET}"}


@dataclass(frozen=True, slots=True)
class Guarded:
    """A server that asks for tokens, with a database to look into."""

    product: Product
    database: Path
    token_file: Path

    def launch(self, server: str, seed: int | None = SEED) -> None:
        """Let a server be watched."""
        config = {} if seed is None else {"random_seed": seed}
        launch = Launch(key="a1", time_ms=now_ms() - 60_000, engine="sglang", config=config)
        target = Target(name=server, base_url="http://127.0.0.1:30000")
        batch = Batch(
            collector_id=f"w:{server}", sequence=1, target=target, launch_key="a1", observations=(launch,)
        )
        answer = httpx.post(
            f"{self.product.base_url}/api/v1/ingest", content=msgspec.json.encode(batch),
            headers={"content-type": "application/json", **BEARER},
        )  # fmt: skip
        assert answer.status_code == httpx.codes.OK, answer.text

    def stored(self, server: str) -> list[tuple[Any, ...]]:
        """Return (launch key, slot, rows) of the profiles of a server."""
        with closing(sqlite3.connect(self.database)) as database:
            return database.execute(
                "select launch.key, slot, rows from state_profile join launch on launch.id = launch_id "
                "join server on server.id = launch.server_id where server.name = ? order by slot",
                (server,),
            ).fetchall()


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """A real `specscope serve`, and a token that may only send."""
    folder = tmp_path_factory.mktemp("guarded")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPECSCOPE_TOKEN", SECRET)
        with serving(folder, {}) as product:
            database = folder / "specscope.db"
            command = [sys.executable, "-m", "specscope", "token", "create", "gpu1", "--scope", "ingest"]
            command += ["--database", f"sqlite:///{database}"]
            made = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder)
            token_file = folder / "token"
            token_file.write_text(made.stdout.split()[-1] + "\n")
            yield Guarded(product, database, token_file)


class Sender:
    """A spool with files in it, and what pushes them under one server name."""

    def __init__(self, guarded: Guarded, folder: Path, name: str, url: str | None = None) -> None:
        self.spool = Spool(folder / "spool", 1 << 20, RANK)
        self.counts = StateCounts()
        self.link = Link(
            url or guarded.product.base_url,
            guarded.token_file,
            timeout_seconds=1.0 if url else 30.0,
            most_seconds=1.5 if url else 45.0,
        )
        self.pusher = self.again(name)

    def again(self, name: str) -> Pusher:
        """Return another one for the same spool, as the next start of the engine would make."""
        outbox, collector_id = Outbox(self.spool), f"probe:{name}:push:tp_rank=0"
        return Pusher(Part("push"), self.link, name, outbox, collector_id, self.counts)

    def write(self, **changes: Any) -> Path:
        """Put a window into the spool."""
        at = {"time_ms": now_ms()}
        made = {"created_ms": now_ms(), "profiles": [profile(**at), profile(slot=2, boundary=57, **at)]}
        return self.spool.write(packed(content(**{**made, **changes})), now_ms())

    def left(self) -> list[str]:
        """Return what lies in the spool."""
        return sorted(path.name for path in self.spool.folder.glob("**/*.gz"))


def packed(file: dict[str, Any]) -> bytes:
    """Return the bytes of a file."""
    return gzip.compress(json.dumps(file).encode())


def now_ms() -> int:
    """Return the time: the server refuses what is too old."""
    return int(time.time() * 1000)


def test_windows_are_stored_under_the_launch_of_their_seed(guarded: Guarded, tmp_path: Path) -> None:
    guarded.launch("one")
    sender = Sender(guarded, tmp_path, "one")
    sender.write()
    sender.write()
    assert sender.pusher.step() == LOOK_SECONDS
    assert guarded.stored("one") == [("a1", 1, 10)] * 2 + [("a1", 2, 10)] * 2
    assert sender.left() == []
    assert (dict(sender.counts.pushes), sender.counts.push_waiting) == ({"stored": 2}, 0)
    window = {"server": "one", "kind": "state_capture", "from": "now-1h", "to": "now+1h"}
    answer = httpx.get(f"{guarded.product.base_url}/api/v1/events", params=window, headers=BEARER)
    [event] = answer.json()["events"]
    assert event["detail"]["capture"]["boundaries"] == [2, 30, 57]


def test_a_server_that_is_away_costs_nothing(guarded: Guarded, tmp_path: Path) -> None:
    guarded.launch("away")
    sender = Sender(guarded, tmp_path, "away", f"http://127.0.0.1:{free_port()}")
    path = sender.write()
    assert 0.5 <= sender.pusher.step() <= 1
    assert 1 <= sender.pusher.step() <= 2
    assert sender.left() == [path.name]
    assert (sender.counts.pushes["failed"], sender.counts.push_waiting) == (2, 1)
    sender.link.url = guarded.product.base_url
    assert sender.pusher.step() == LOOK_SECONDS
    assert len(guarded.stored("away")) == 2


@pytest.mark.parametrize("token", ["wrong", None, "", "a\nb"])
def test_a_token_can_be_exchanged(guarded: Guarded, tmp_path: Path, token: str | None) -> None:
    name = f"token {token!r}"
    guarded.launch(name)
    sender = Sender(guarded, tmp_path, name)
    own = tmp_path / "token"
    sender.link._token_file = own
    if token is not None:
        own.write_text(token)
    path = sender.write()
    assert sender.pusher.step() < LOOK_SECONDS
    assert sender.left() == [path.name]
    own.write_text(guarded.token_file.read_text())
    assert sender.pusher.step() == LOOK_SECONDS
    assert sender.left() == []


def test_a_name_that_nobody_watches_waits_until_somebody_does(guarded: Guarded, tmp_path: Path) -> None:
    sender = Sender(guarded, tmp_path, "unheard of")
    path = sender.write()
    assert sender.pusher.step() < LOOK_SECONDS
    assert "unheard of" in sender.pusher._told
    assert sender.left() == [path.name]
    guarded.launch("unheard of")
    sender.pusher.step()
    assert sender.left() == []


def test_windows_of_another_start_are_put_aside(guarded: Guarded, tmp_path: Path) -> None:
    guarded.launch("restarted")
    sender = Sender(guarded, tmp_path, "restarted")
    old = sender.write(random_seed=SEED + 1, created_ms=now_ms() - 2 * batches.PATIENCE_MS)
    new = sender.write(random_seed=SEED + 1)
    sender.pusher.step()
    assert sender.left() == sorted([new.name, old.name])
    assert [path.name for path in sender.spool.folder.glob("refused/*")] == [old.name]
    assert guarded.stored("restarted") == []


def test_what_is_damaged_is_put_aside_and_the_next_goes_on(guarded: Guarded, tmp_path: Path) -> None:
    guarded.launch("damaged")
    sender = Sender(guarded, tmp_path, "damaged")
    sender.spool.write(b"no gzip", 1)
    sender.spool.write(packed(content())[:-20], 2)
    sender.spool.write(packed({"format": 2}), 3)
    sender.write(profiles=[{"type": "state_profile", "phase": "prefill"}])
    sender.write()
    assert sender.pusher.step() == LOOK_SECONDS
    assert len(guarded.stored("damaged")) == 2
    assert sender.counts.pushes == {"refused": 4, "stored": 1}
    assert len(list(sender.spool.folder.glob("refused/*"))) == 4


def test_large_windows_go_in_parts(guarded: Guarded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "PART_BYTES", 1)
    guarded.launch("large")
    sender = Sender(guarded, tmp_path, "large")
    sender.write(profiles=[profile(slot=slot, time_ms=now_ms()) for slot in range(5)])
    post, sent = sender.link.post, []

    def fail_in_the_middle(path: str, batch: Any) -> dict[str, Any]:
        sent.append(batch)
        if len(sent) == 3:
            raise OSError("gone")
        return post(path, batch)

    monkeypatch.setattr(sender.link, "post", fail_in_the_middle)
    assert sender.pusher.step() < LOOK_SECONDS
    [name] = sender.left()
    assert name.startswith("specscope-sending-1-")
    assert sender.again("large").step() == LOOK_SECONDS, "after a kill the next start goes on"
    assert [slot for _, slot, _ in guarded.stored("large")] == [0, 1, 2, 3, 4]
    assert sender.left() == []


@contextmanager
def losing_answers(url: str) -> Iterator[str]:
    """A way to a server on which the request arrives, but of an answer to POST nothing comes back."""
    port = int(url.rpartition(":")[2])

    def carry(near: socket.socket) -> None:
        with near, socket.create_connection(("127.0.0.1", port)) as far:
            request = near.recv(1 << 20)
            far.sendall(request.replace(b"Connection: keep-alive", b"Connection: close"))
            if request.startswith(b"POST"):
                near.settimeout(0.3)
                try:
                    while more := near.recv(1 << 20):
                        far.sendall(more)
                except TimeoutError:
                    far.recv(1 << 20)
                return
            while part := far.recv(1 << 20):
                near.sendall(part)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        ends = threading.Event()

        def serve() -> None:
            while True:
                near, _ = listener.accept()
                if ends.is_set():
                    near.close()
                    return
                carry(near)

        thread = threading.Thread(target=serve)
        thread.start()
        own_port = listener.getsockname()[1]
        yield f"http://127.0.0.1:{own_port}"
        ends.set()
        socket.create_connection(("127.0.0.1", own_port)).close()
        thread.join()


def test_an_answer_that_is_lost_repeats_nothing(guarded: Guarded, tmp_path: Path) -> None:
    guarded.launch("lost")
    with losing_answers(guarded.product.base_url) as url:
        sender = Sender(guarded, tmp_path, "lost", url)
        sender.write()
        assert sender.pusher.step() < LOOK_SECONDS
    assert len(guarded.stored("lost")) == 2, "it did arrive"
    [name] = sender.left()
    assert name.startswith("specscope-sending-1-")
    sender.link.url = guarded.product.base_url
    assert sender.again("lost").step() == LOOK_SECONDS
    assert len(guarded.stored("lost")) == 2
    assert sender.left() == []


def test_who_uses_the_same_sequence_loses_nothing(
    guarded: Guarded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two starts of the engine overlap: both know the same position."""
    guarded.launch("twice")
    sender = Sender(guarded, tmp_path, "twice")
    sender.write()
    sender.pusher.step()
    sender.write()
    monkeypatch.setattr(sender.pusher, "_position", lambda: 0)
    assert sender.pusher.step() == LOOK_SECONDS
    assert len(guarded.stored("twice")) == 4
    assert sender.left() == []


@pytest.mark.parametrize("drip", [b"", b"HTTP/1.1 200 OK\r\n\r\n{"])
def test_a_server_that_is_slow_is_given_up(guarded: Guarded, tmp_path: Path, drip: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        sender = Sender(guarded, tmp_path, "slow", f"http://127.0.0.1:{listener.getsockname()[1]}")
        path = sender.write()

        def answer() -> None:
            near, _ = listener.accept()
            with near:
                near.sendall(drip)
                try:
                    while drip:
                        time.sleep(0.2)
                        near.sendall(b" ")
                    near.recv(1 << 20)
                    near.recv(1)
                except OSError:
                    return

        thread = threading.Thread(target=answer)
        thread.start()
        began = time.monotonic()
        assert sender.pusher.step() < LOOK_SECONDS
        assert time.monotonic() - began < 30
        thread.join(60)
    assert sender.left() == [path.name]


def test_redirects_are_not_followed(guarded: Guarded, tmp_path: Path) -> None:
    """Else the token would go wherever the answer points."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        sender = Sender(guarded, tmp_path, "elsewhere", url)
        sender.write()

        def answer() -> None:
            near, _ = listener.accept()
            with near:
                near.recv(1 << 16)
                place = f"Location: {guarded.product.base_url}/"
                near.sendall(f"HTTP/1.1 307 Go\r\n{place}\r\nContent-Length: 0\r\n\r\n".encode())

        thread = threading.Thread(target=answer)
        thread.start()
        sender.pusher.step()
        thread.join()
    assert "307" in sender.pusher._told


def test_files_of_others_are_left_alone(guarded: Guarded, tmp_path: Path) -> None:
    guarded.launch("others")
    sender = Sender(guarded, tmp_path, "others")
    path = sender.write()
    living = path.with_name(path.name.replace(f"-{os.getpid()}-", f"-{os.getppid()}-"))
    path.rename(living)
    other_rank = living.with_name(living.name.replace("tprank0", "tprank10"))
    other_rank.write_bytes(b"")
    gone = living.with_name(living.name.replace(f"-{os.getppid()}-", "-4194309-"))
    gone.write_bytes(living.read_bytes())
    sender.pusher.step()
    assert sender.left() == sorted([living.name, other_rank.name])
    assert len(guarded.stored("others")) == 2


def test_an_exception_switches_pushing_off_and_nothing_else(guarded: Guarded, tmp_path: Path) -> None:
    sender = Sender(guarded, tmp_path, "odd")
    sender.write()
    sender.link.get = lambda *_, **__: {}  # type: ignore[method-assign]
    sender.pusher.run()
    assert sender.pusher.part.state == "failed"
    assert sender.pusher.part.errors == 1
    assert len(sender.left()) == 1
