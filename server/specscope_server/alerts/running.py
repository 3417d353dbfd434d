"""What the process does about alerts: evaluate and decide in one thread, deliver in others.

Several processes may do it on one database: one of them evaluates (`lease`), all deliver.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import structlog
from fastapi import FastAPI
from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from specscope_server.alerts import health, lease
from specscope_server.alerts.delivery.delivering import Deliverer
from specscope_server.alerts.delivery.options import delivery_options
from specscope_server.alerts.file import AlertsFile, bring_in, read_alerts_file
from specscope_server.alerts.following import Follower, Look
from specscope_server.alerts.measures import Measures
from specscope_server.alerts.pipeline.evaluating import Evaluated, Step, evaluate_once
from specscope_server.alerts.pipeline.notifying import Notified, Routing, notify_once
from specscope_server.alerts.rules.evaluate import evaluate
from specscope_server.alerts.rules.evaluation import Evaluation
from specscope_server.alerts.rules.holding import Holds
from specscope_server.alerts.rules.schema import StoredRule
from specscope_server.alerts.rules.storing import rules_in_force
from specscope_server.kit.errors import InvalidInput
from specscope_server.kit.web.state import AppState
from specscope_server.settings import Settings

FIRST_WAIT_SECONDS = 3.0
"""Before the first evaluation: what is watched is read for the first time meanwhile."""
DELIVERY_SECONDS = 1.0
JOIN_SECONDS = 10.0
LEASE_INTERVALS = 3
RESTLESS = "it changes all the time: no two looks in a row saw the same content"
log = structlog.get_logger(__name__)


class Alerting:
    """Evaluates and decides, turn by turn."""

    def __init__(self, settings: Settings, state: AppState, app: FastAPI, measures: Measures) -> None:
        self.name = lease.process_name()
        self.problem = ""
        """Why the alerts' file as it is now is not in force; '' = it is."""
        self._path = settings.alerts
        self._state = state
        self._options = delivery_options(app)
        self._measures = measures
        self._interval_ms = round(settings.alert_interval_seconds * 1_000)
        self._public_url = settings.public_url or ""
        self._file: AlertsFile | None = None
        self._follower = None if settings.alerts is None else Follower(settings.alerts)
        self._is_ready = self._is_restless = False
        self._started_ms = state.clock()
        self.last: Evaluated | None = None
        self.loops: list[_Loop] = []
        """The threads of this process, while they are to run."""
        self.deliverer: Deliverer | None = None

    @property
    def _engine(self) -> Engine:
        return self._state.engine

    def prepare(self) -> None:
        """Bring pack and file into the store. Raises `InvalidInput` for a file that cannot be used."""
        self._use(None if self._follower is None else self._follower.now())

    def turn(self) -> None:
        """Follow the file, then evaluate and decide if it is on this process to do so; never raises."""
        began = time.monotonic()
        try:
            self._follow()
            if self._take_lease():
                self.evaluate()
                self.notify()
        except Exception as error:  # whatever it was, the next turn tries again, and health says so
            self._measures.failed(type(error).__name__)
            log.error("alerts not evaluated", reason=type(error).__name__, exc_info=error)
        self._measures.turn_seconds = time.monotonic() - began

    def evaluate(self) -> Evaluated:
        """Evaluate all rules now."""
        step = Step(self._interval_ms, self._public_url)
        found = evaluate_once(self._engine, rules_in_force, self._evaluation, self._state.clock(), step)
        due_ms = found.now_ms + LEASE_INTERVALS * self._interval_ms + 2 * round(found.seconds * 1_000)
        lease.note(self._engine, lease.DUE, self.name, due_ms)
        self._measures.evaluated(found)
        self.last = found
        return found

    def notify(self) -> Notified:
        """Decide about every group now."""
        with Session(self._engine) as session:
            stored = rules_in_force(session)
        inhibitions = {entry.rule.name: entry.rule.inhibits for entry in stored if entry.rule.inhibits}
        routes = () if self._file is None else self._file.routes
        return notify_once(
            self._engine, Routing(routes, self._public_url), inhibitions, self._state.clock()
        )  # fmt: skip

    def health(self) -> str:
        """Return ``ok``, or what is wrong."""
        if self.problem or self._is_restless:
            return "the alerts' file cannot be used as it is now; see the log"
        if trouble := health.threads_trouble({loop.name: loop.trouble for loop in self.loops}):
            return trouble
        due_ms = lease.until_ms(self._engine, lease.DUE) or 0
        now_ms = self._state.clock()
        if now_ms <= max(due_ms, self._started_ms + 60_000 + LEASE_INTERVALS * self._interval_ms):
            return self._degraded(now_ms) or "ok"
        return "the rules of alerts were not evaluated lately; see the log"

    def _degraded(self, now_ms: int) -> str:
        broken = {} if self.deliverer is None else self.deliverer.failing
        with self._engine.connect() as connection:
            failing = health.failing_channels(connection)
            return health.degraded(failing, dict(broken), health.waiting_ms(connection, now_ms))

    def give_up(self) -> None:
        """Let another process evaluate at once."""
        try:
            lease.give_up(self._engine, lease.EVALUATION, self.name)
        except SQLAlchemyError as error:
            log.warning("lease not given up", reason=type(error).__name__)

    def _evaluation(
        self, session: Session, rules: Sequence[StoredRule], now_ms: int, holds: Holds
    ) -> Evaluation:
        return evaluate(session, self._state, rules, now_ms, holds)

    def _take_lease(self) -> bool:
        length_ms = max(LEASE_INTERVALS * self._interval_ms, 10_000)
        return lease.take(self._engine, lease.EVALUATION, self.name, self._state.clock(), length_ms)

    def _follow(self) -> None:
        """Use the file when it changed and is saved; one that cannot be used leaves what was in force."""
        if self._follower is None:
            if not self._is_ready:
                self.prepare()
            return
        now_ms = self._state.clock()
        look = self._follower.settled(now_ms) if self._is_ready else self._follower.now()
        was_restless, self._is_restless = self._is_restless, self._follower.is_restless(now_ms)
        if self._is_restless and not was_restless:
            log.error("alerts' file not used", problem=RESTLESS)
        if look is None:
            return
        try:
            self._use(look)
            log.info("alerts' file read", file=str(self._path))
        except InvalidInput as error:
            self.problem = error.detail
            log.error("alerts' file not used", problem=error.detail)

    def _use(self, look: Look | None) -> None:
        """Bring pack and file into the store. Raises `InvalidInput`; then what was in force stays."""
        found = None if self._path is None or look is None else read_alerts_file(self._path, look.content)
        gone = bring_in(self._engine, found, self._options.vault, self._state.clock())
        if gone:
            log.warning("rules are gone from the alerts' file, and their alerts end", rules=gone)
        self._file, self._is_ready, self.problem = found, True, ""


@contextmanager
def alerts_running(app: FastAPI, settings: Settings, state: AppState) -> Iterator[None]:
    """Evaluate, decide and deliver in threads of their own while the block runs.

    Raises `InvalidInput` for an alerts' file that cannot be used.
    """
    alerting: Alerting = app.state.alerting
    if settings.alerts is not None:
        alerting.prepare()
    deliverer = Deliverer(state.engine, alerting.name, state.clock, delivery_options(app))
    stopped = threading.Event()
    loops = [
        _Loop("alerts", alerting.turn, min(FIRST_WAIT_SECONDS, settings.alert_interval_seconds),
              settings.alert_interval_seconds, stopped),
        _Loop("delivery", deliverer.tick, DELIVERY_SECONDS, DELIVERY_SECONDS, stopped),
    ]  # fmt: skip
    for loop in loops:
        loop.start()
    alerting.loops, alerting.deliverer = loops, deliverer
    try:
        yield
    finally:
        alerting.loops = []
        stopped.set()
        for loop in loops:
            loop.join(timeout=JOIN_SECONDS)
        deliverer.stop()
        alerting.give_up()


class _Loop(threading.Thread):
    """Does something from time to time until it is stopped."""

    def __init__(
        self, name: str, turn: object, first_seconds: float, seconds: float, stopped: threading.Event
    ) -> None:
        super().__init__(name=name, daemon=True)
        assert callable(turn)
        self._turn, self._first_seconds, self._seconds, self._stopped = turn, first_seconds, seconds, stopped
        self._failing = ""

    @property
    def trouble(self) -> str | None:
        """Return what ended the last turn (a kind of error); '' = nothing, None = the thread is no more."""
        return self._failing if self.is_alive() else None

    def run(self) -> None:
        """Wait, act, wait for the rest of the interval."""
        wait_seconds = self._first_seconds
        while not self._stopped.wait(wait_seconds):
            began = time.monotonic()
            self._act()
            wait_seconds = max(self._seconds - (time.monotonic() - began), self._seconds / 10)

    def _act(self) -> None:
        """Whatever ends a turn, the next one tries again; the same error is logged once in a row."""
        try:
            self._turn()
            self._failing = ""
        except Exception as error:
            kind = type(error).__name__
            if kind != self._failing:
                log.error("turn ended", thread=self.name, reason=kind, exc_info=error)
            self._failing = kind
