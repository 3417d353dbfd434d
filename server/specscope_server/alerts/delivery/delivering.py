"""Deliver what is due: claim → attempt → record, channel by channel.

Any number of processes may run this on one database. A slow receiver holds up its own channel only.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor

import structlog
from sqlalchemy import Engine, exists, select, update

from specscope_server.alerts.channels.opening import Opened
from specscope_server.alerts.delivery import attempting
from specscope_server.alerts.delivery.attempting import Attempted
from specscope_server.alerts.delivery.claiming import Claimed, claim, due_channels, is_left, take_back
from specscope_server.alerts.delivery.options import DeliveryOptions
from specscope_server.alerts.delivery.outbox import EXPIRED, FAILED, PENDING
from specscope_server.alerts.delivery.recording import record
from specscope_server.kit.clock import Clock
from specscope_server.models import Channel, Delivery
from specscope_server.store.engine import write_transaction

MAX_CHANNELS_AT_ONCE = 16
MOST_IN_A_TURN = 100
"""Deliveries of one channel before others get its thread."""
log = structlog.get_logger(__name__)


def attempt_claimed(
    engine: Engine, claimed: Claimed, clock: Clock, options: DeliveryOptions, *, is_last: bool = False
) -> tuple[Attempted, str]:
    """Attempt a delivery that is claimed and record it; return (what came of it, its status)."""
    if claimed.opened is None:
        attempted = Attempted("retry", claimed.trouble)
    else:
        attempted = _attempted(claimed, claimed.opened, clock(), options)
    status = record(engine, claimed, attempted, clock(), options, is_last=is_last)
    if attempted.outcome != "delivered":
        log.warning(
            "notification not delivered", channel=claimed.channel, outcome=attempted.outcome,
            reason=attempted.reason, attempt=claimed.attempts, status=status,
        )  # fmt: skip
    return attempted, status


def _attempted(claimed: Claimed, opened: Opened, now_ms: int, options: DeliveryOptions) -> Attempted:
    try:
        return attempting.attempt(
            opened, claimed.notification, claimed.webhook_id, claimed.attempts, now_ms, options
        )
    except Exception as error:  # a fault of ours holds up one delivery, and is logged as one
        log.error("attempt broke off", channel=claimed.channel, exc_info=error)
        return Attempted("unknown", f"the attempt broke off: {type(error).__name__}; see the server's log")


def deliver_channel(
    engine: Engine, channel: str, worker: str, clock: Clock, options: DeliveryOptions,
    is_stopped: Callable[[], bool] = lambda: False,
) -> int:  # fmt: skip
    """Attempt what is due for one channel, one after the other; return how many attempts were made."""
    for count in range(MOST_IN_A_TURN):
        if is_stopped():
            return count
        claimed = claim(engine, channel, worker, clock(), options)
        if claimed is None:
            return count
        attempt_claimed(engine, claimed, clock, options)
    return MOST_IN_A_TURN


def deliver_due(engine: Engine, worker: str, clock: Clock, options: DeliveryOptions) -> int:
    """Attempt what is due for all channels, in this thread; return how many attempts were made."""
    sweep(engine, clock())
    with engine.connect() as connection:
        names = due_channels(connection, clock())
    return sum(deliver_channel(engine, name, worker, clock, options) for name in names)


def sweep(engine: Engine, now_ms: int) -> int:
    """End what can no longer be delivered: too old, or its channel is gone. Return how many."""
    is_waiting = Delivery.status == PENDING
    is_late = is_waiting & (Delivery.expires_ms <= now_ms)
    is_orphan = is_waiting & ~exists().where(Channel.name == Delivery.channel)
    # Those of channels that are on are taken back when they are tried again.
    is_stuck = is_left(now_ms) & ~exists().where(Channel.name == Delivery.channel, Channel.enabled)
    with engine.connect() as connection:
        found = select(Delivery.id).where(is_late | is_orphan | is_stuck).limit(1)
        if connection.execute(found).first() is None:
            return 0
    with write_transaction(engine) as connection:
        take_back(connection, is_stuck, now_ms)
        late = connection.execute(update(Delivery).where(is_late).values(status=EXPIRED, finished_ms=now_ms))
        orphan = connection.execute(
            update(Delivery)
            .where(is_orphan)
            .values(status=FAILED, reason="its channel was removed", finished_ms=now_ms)
        )
        return late.rowcount + orphan.rowcount


class Deliverer:
    """Delivers in threads of its own; `tick` starts what is due and returns at once."""

    def __init__(self, engine: Engine, worker: str, clock: Clock, options: DeliveryOptions) -> None:
        self._engine = engine
        self._worker = worker
        self._clock = clock
        self._options = options
        self._pool = ThreadPoolExecutor(MAX_CHANNELS_AT_ONCE, "deliver")
        self._busy: set[str] = set()
        self.failing: dict[str, str] = {}
        """Channel → kind of the error that its last turn ended with."""
        self._lock = threading.Lock()
        self._stopped = threading.Event()

    @property
    def is_stopped(self) -> bool:
        """Whether nothing more is begun."""
        return self._stopped.is_set()

    def tick(self) -> None:
        """Start a turn of each channel that has something due and none running. Raises as the store does."""
        if self.is_stopped:
            return
        sweep(self._engine, self._clock())
        with self._engine.connect() as connection:
            names = due_channels(connection, self._clock())
        self._forget(names)
        for name in names:
            if self._take(name):
                self._submit(name)

    def _forget(self, due: Collection[str]) -> None:
        """A channel that has nothing due any more fails no more."""
        with self._lock:
            self.failing = {name: why for name, why in self.failing.items() if name in due}

    def _take(self, name: str) -> bool:
        with self._lock:
            is_free = name not in self._busy
            self._busy.add(name)
            return is_free

    def _free(self, name: str) -> None:
        with self._lock:
            self._busy.discard(name)

    def _submit(self, name: str) -> None:
        try:
            self._pool.submit(self._turn, name)
        except BaseException:  # no thread can be started, or it is being stopped: the next turn tries again
            self._free(name)
            raise

    def stop(self) -> None:
        """Begin nothing more and wait for what runs: each attempt is bounded."""
        self._stopped.set()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _turn(self, name: str) -> None:
        try:
            deliver_channel(
                self._engine, name, self._worker, self._clock, self._options, self._stopped.is_set
            )
            with self._lock:
                self.failing.pop(name, None)
        except Exception as error:
            self._note(name, error)
        finally:
            self._free(name)

    def _note(self, name: str, error: Exception) -> None:
        """Log an error of a channel's turn, the same one only once in a row: there is a turn each second."""
        kind = type(error).__name__
        with self._lock:
            is_new = self.failing.get(name) != kind
            self.failing[name] = kind
        if is_new:
            log.error("turn of a channel ended", channel=name, reason=kind, exc_info=error)
