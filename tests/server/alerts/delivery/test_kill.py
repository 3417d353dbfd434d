"""Processes that deliver are killed again and again: nothing is lost, nothing repeated under another id."""

from __future__ import annotations

import itertools
import json
import multiprocessing
import os
import random
import signal
import socket
import time
from dataclasses import dataclass

from sqlalchemy import Engine, func, select
from tests.support.cards import NOW_MS, card, notification
from tests.support.receiver import OK, Received, Receiver

from specscope_server.alerts.channels.opening import Vault
from specscope_server.alerts.channels.stored import Author, Wanted, create
from specscope_server.alerts.delivery.delivering import deliver_due
from specscope_server.alerts.delivery.options import DeliveryOptions
from specscope_server.alerts.delivery.outbox import WAITING, enqueue
from specscope_server.models import Delivery
from specscope_server.store.engine import create_store_engine, write_transaction

KILLS = 30
ALERTS = 40
STEP_MS = 600_000
"""Between two processes: claims of the one that was killed have run out."""
OPTIONS = DeliveryOptions(vault=Vault(api_may_allow_private=True))


def deliver(url: str, now_ms: int) -> None:
    """Deliver until nothing is due: what each process does."""
    engine = create_store_engine(url)
    while deliver_due(engine, f"p{now_ms}", lambda: now_ms, OPTIONS):
        pass


@dataclass
class Killer:
    """Kills the process that delivers while its request is here: before the answer, or a moment after."""

    chance: random.Random
    pid: int = 0
    kills: int = 0

    def __call__(self, connection: socket.socket, _: Received) -> None:
        """Answer; kill meanwhile in one of three ways, as long as there are kills left."""
        way = self.chance.randrange(5) if self.kills < KILLS else 4
        if way == 0:
            self.kill()
        connection.sendall(OK)
        if way in (1, 2):
            time.sleep(self.chance.uniform(0, 0.02))  # it records, and claims the next one
            self.kill()

    def kill(self) -> None:
        """Kill it, once."""
        pid, self.pid = self.pid, 0
        if pid:
            self.kills += 1
            os.kill(pid, signal.SIGKILL)


def test_killed_again_and_again(sqlite_engine: Engine, sqlite_url: str) -> None:
    killer = Killer(random.Random(20_260_301))
    times = (NOW_MS + step * STEP_MS for step in itertools.count(1))
    with Receiver(killer).running() as receiver:
        settings = {"url": receiver.url, "allow_private": True, "per_minute": 10_000}
        with write_transaction(sqlite_engine) as connection:
            create(connection, Wanted("hook", "webhook", settings), Author("t", NOW_MS), OPTIONS.vault)
        for status in ("firing", "resolved"):
            tell(sqlite_engine, status, next(times))
            while waiting(sqlite_engine):
                run_one(sqlite_url, next(times), killer)
    assert killer.kills == KILLS
    assert len(receiver.received) > 2 * ALERTS, "no process was killed between sending and recording"
    check(receiver, [row.webhook_id for row in rows(sqlite_engine)])


def tell(engine: Engine, status: str, now_ms: int) -> None:
    with write_transaction(engine) as connection:
        for number in range(ALERTS):
            told = notification(card(number, status), group_key=f"g{number}")
            enqueue(connection, "hook", told, now_ms, lifetime_ms=10**12)


def run_one(url: str, now_ms: int, killer: Killer) -> None:
    """Let one process deliver until it is done or killed."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, "specscope_server.alerts.delivery.delivering"])
    process = context.Process(target=deliver, args=(url, now_ms))
    process.start()
    killer.pid = process.pid or 0
    process.join()
    killer.pid = 0
    process.close()


def waiting(engine: Engine) -> int:
    with engine.connect() as connection:
        query = select(func.count()).where(Delivery.status.in_(WAITING))
        return int(connection.scalar(query) or 0)


def rows(engine: Engine) -> list[Delivery]:
    with engine.connect() as connection:
        return list(connection.execute(select(Delivery.__table__)))


def check(receiver: Receiver, known: list[str]) -> None:
    """Everything arrived; of each alert first the fire, then its end; repetitions have their id and body."""
    bodies: dict[str, bytes] = {}
    statuses: dict[str, list[str]] = {}
    for got in receiver.received:
        webhook_id = got.headers["webhook-id"]
        assert bodies.setdefault(webhook_id, got.body) == got.body
        (alert,) = json.loads(got.body)["data"]["alerts"]
        statuses.setdefault(alert["alert_id"], []).append(alert["status"])
    assert set(bodies) == set(known)
    assert len(statuses) == ALERTS
    for seen in statuses.values():
        assert seen == sorted(seen)  # every fire before every end
        assert set(seen) == {"firing", "resolved"}
