"""A process that evaluates, decides and delivers as the server does, again and again, until it is killed.

What its rule finds stands in a file: server → whether it is bad. Before each stage it writes the stage's
letter into another file. Time runs faster than it is: what another process claimed is soon free again.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from sqlalchemy import Engine, event
from sqlalchemy.orm import Session
from tests.server.alerts.standin import T0, a_reading, a_rule

from specscope_server.alerts import lease
from specscope_server.alerts.channels.opening import Vault
from specscope_server.alerts.delivery.delivering import deliver_due
from specscope_server.alerts.delivery.options import DeliveryOptions
from specscope_server.alerts.pipeline.evaluating import Step, evaluate_once
from specscope_server.alerts.pipeline.group import Route
from specscope_server.alerts.pipeline.notifying import Routing, notify_once
from specscope_server.alerts.rules.evaluation import Evaluation
from specscope_server.alerts.rules.holding import Holds
from specscope_server.alerts.rules.reading import Status
from specscope_server.alerts.rules.schema import StoredRule
from specscope_server.store.engine import create_store_engine

AT_ONCE = {"group_wait": "0s", "group_interval": "0s", "repeat_interval": "7d", "group_by": ["server"]}
LEASE_MS = 30_000


def main(argv: list[str]) -> int:
    """Run: database, file of what is true, file of stages, epoch seconds at T0, how fast time runs, its end.

    The end is the number of the moment at which the process kills itself: each statement of the database
    and each commit is one before it, and each statement one after it; 0 = it waits to be killed.
    """
    url, truth, stages, began, speed, end = argv
    engine = create_store_engine(url)
    if int(end):
        _end_at(engine, int(end))
    clock = clock_of(float(began), float(speed))
    mark = marker(Path(stages))
    name, rule = lease.process_name(), a_rule()
    options = DeliveryOptions(vault=Vault(api_may_allow_private=True))
    routing, step = Routing([Route.model_validate(AT_ONCE)]), Step()
    while True:
        mark(b"L")
        if lease.take(engine, lease.EVALUATION, name, clock(), LEASE_MS):
            mark(b"E")
            evaluate_once(engine, lambda _: [rule], finding(Path(truth)), clock(), step)
            mark(b"N")
            notify_once(engine, routing, {}, clock())
        mark(b"D")
        deliver_due(engine, name, clock, options)
        mark(b"P")
        time.sleep(0.002)


def _end_at(engine: Engine, moment: int) -> None:
    moments = itertools.count(1)

    def pass_one(*_: object) -> None:
        if next(moments) == moment:
            os.kill(os.getpid(), signal.SIGKILL)

    for name in ("before_cursor_execute", "after_cursor_execute", "commit"):
        event.listen(engine, name, pass_one)


def clock_of(began: float, speed: float) -> Callable[[], int]:
    """Return a clock that says T0 at ``began`` and runs ``speed`` times as fast as it should."""
    return lambda: T0 + round((time.time() - began) * 1_000 * speed)


def marker(path: Path) -> Callable[[bytes], None]:
    """Return what writes the process and its stage over what stood in the file."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT)

    def mark(stage: bytes) -> None:
        os.pwrite(file, stage, 0)

    return mark


def finding(truth: Path) -> Callable[[Session, Sequence[StoredRule], int, Holds], Evaluation]:
    """Return an evaluation that reads the file."""

    def evaluation(_session: Session, _rules: Sequence[StoredRule], now_ms: int, _holds: Holds) -> Evaluation:
        found = {
            (
                reading := a_reading(status=Status.BREACH if bad else Status.OK, labels={"server": server})
            ).key: reading
            for server, bad in json.loads(truth.read_text()).items()
        }
        notable = [reading for reading in found.values() if reading.status is Status.BREACH]
        return Evaluation(now_ms, notable, lambda: iter(()), lambda *key: found.get(key))

    return evaluation
