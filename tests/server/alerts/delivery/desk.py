"""An outbox with channels on loopback receivers, at a time that the test moves."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Engine, select
from tests.support.cards import NOW_MS

from specscope_server.alerts.channels.from_file import read_channels, store_channels
from specscope_server.alerts.channels.notification import Notification
from specscope_server.alerts.channels.stored import Author
from specscope_server.alerts.delivery.delivering import deliver_due
from specscope_server.alerts.delivery.options import DeliveryOptions
from specscope_server.alerts.delivery.outbox import enqueue
from specscope_server.models import Channel, Delivery, DeliveryAttempt
from specscope_server.store.engine import write_transaction

SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000


@dataclass
class Desk:
    """What a test does with the outbox."""

    engine: Engine
    now_ms: int = NOW_MS
    options: DeliveryOptions = field(default_factory=lambda: DeliveryOptions(chance=random.Random(7)))

    def clock(self) -> int:
        """Return the time of the test."""
        return self.now_ms

    def channels(self, *entries: dict[str, Any]) -> None:
        """Store these as the channels of the file; they may reach loopback."""
        wanted = read_channels([{"allow_private": True, "timeout_seconds": 2, **entry} for entry in entries])
        with write_transaction(self.engine) as connection:
            store_channels(connection, wanted, Author("test", self.now_ms), self.options.vault)

    def tell(self, notification: Notification, channel: str = "hook", **options: Any) -> int:
        """Write a notification into the outbox."""
        with write_transaction(self.engine) as connection:
            return enqueue(connection, channel, notification, self.now_ms, **options)

    def deliver(self, worker: str = "w1") -> int:
        """Attempt what is due."""
        return deliver_due(self.engine, worker, self.clock, self.options)

    def until_quiet(self, most_ms: int = 26 * HOUR) -> None:
        """Move the time from one due attempt to the next until nothing waits."""
        end_ms = self.now_ms + most_ms
        while self.now_ms < end_ms:
            count = self.deliver()
            waiting = [row.next_attempt_ms for row in self.rows(status="pending")]
            if not waiting:
                return
            self.now_ms = max(min(waiting), self.now_ms + (SECOND if count else MINUTE))

    def rows(self, **where: Any) -> list[Any]:
        """Return deliveries, oldest first."""
        query = select(Delivery.__table__).filter_by(**where).order_by(Delivery.id)
        with self.engine.connect() as connection:
            return list(connection.execute(query))

    def attempts(self, number: int) -> list[Any]:
        """Return the attempts of a delivery, oldest first."""
        query = select(DeliveryAttempt.__table__).where(DeliveryAttempt.delivery_id == number)
        with self.engine.connect() as connection:
            return list(connection.execute(query.order_by(DeliveryAttempt.id)))

    def channel(self, name: str = "hook") -> Any:
        """Return a channel's row."""
        with self.engine.connect() as connection:
            return connection.execute(select(Channel.__table__).where(Channel.name == name)).one()
