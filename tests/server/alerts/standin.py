"""A stand-in for rules: what each evaluation finds is written down by the test; nothing else is replaced."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
from sqlalchemy import Engine, select
from sqlalchemy.orm import Session

from specscope_server.alerts.channels import notification as notifications
from specscope_server.alerts.channels.notification import Notification
from specscope_server.alerts.pipeline.evaluating import Evaluated, Step, evaluate_once
from specscope_server.alerts.pipeline.notifying import Notified, Routing, notify_once
from specscope_server.alerts.rules.evaluation import Evaluation
from specscope_server.alerts.rules.holding import Holds
from specscope_server.alerts.rules.reading import Cause, Reading, Status
from specscope_server.alerts.rules.schema import Origin, Rule, StoredRule
from specscope_server.models import AlertTransition, Base, Delivery
from specscope_server.store.engine import write_transaction

T0 = 1_790_000_000_000
GPU1, GPU2 = {"server": "gpu1"}, {"server": "gpu2"}
CONDITION = {"kind": "threshold", "signal": "acceptance.accept_length", "below": 1.5}


def a_rule(name: str = "low", **fields: Any) -> StoredRule:
    """Return a rule in force; what it is about does not matter here."""
    body = {"name": name, "title": f"The rule {name}", "condition": CONDITION, **fields}
    return StoredRule(rule=Rule.model_validate(body), version=1, origin=Origin.API, enabled=True)


def a_reading(rule: str = "low", status: Status = Status.BREACH, **fields: Any) -> Reading:
    """Return a reading of one series."""
    values = {
        "rule_version": 1, "labels": GPU1, "value": 1.1, "lower": 1.0, "upper": 1.2, "n": 4_000.0,
        "unit": "tokens per cycle", "window_from_ms": T0 - 300_000, "window_to_ms": T0,
        "reason": "1.10 is below 1.50", "evidence": {"signal": "acceptance.accept_length", "below": 1.5},
    }  # fmt: skip
    return Reading(rule=rule, status=status, **{**values, **fields})


@dataclass
class World:
    """A store, rules, and what they find; time stands still unless it is moved."""

    engine: Engine
    rules: list[StoredRule] = field(default_factory=lambda: [a_rule()])
    found: list[Reading] = field(default_factory=list)
    now_ms: int = T0
    routing: Routing = field(default_factory=Routing)
    step: Step = field(default_factory=Step)

    def evaluate(self) -> Evaluated:
        """Evaluate once."""
        return evaluate_once(self.engine, lambda _: self.rules, self._evaluation, self.now_ms, self.step)

    def notify(self) -> Notified:
        """Decide once."""
        inhibitions = {stored.rule.name: stored.rule.inhibits for stored in self.rules}
        return notify_once(self.engine, self.routing, inhibitions, self.now_ms)

    def tick(self, *found: Reading, seconds: float = 15) -> Notified:
        """Move time, then evaluate and decide; this is what is found now."""
        self.now_ms += round(seconds * 1_000)
        self.found = list(found)
        self.evaluate()
        return self.notify()

    def _evaluation(
        self, _session: Session, _rules: Sequence[StoredRule], now_ms: int, _holds: Holds
    ) -> Evaluation:
        named = {stored.rule.name for stored in _rules}
        by_key = {reading.key: reading for reading in self.found if reading.rule in named}
        return Evaluation(now_ms, list(by_key.values()), lambda: iter(()), lambda *key: by_key.get(key))

    def told(self) -> list[Notification]:
        """Return everything that was put into the outbox, oldest first."""
        with Session(self.engine) as session:
            rows = session.scalars(select(Delivery.notification).order_by(Delivery.id))
            return [notifications.decode(text) for text in rows]

    def history(self) -> list[tuple[str, str]]:
        """Return the changes of states that were kept, oldest first."""
        query = select(AlertTransition.from_state, AlertTransition.to_state).order_by(AlertTransition.id)
        with self.engine.connect() as connection:
            return [(row.from_state, row.to_state) for row in connection.execute(query)]

    def words(self) -> list[str]:
        """Return what was told, as ``cause: alerts that fire / alerts that are over``."""
        return [
            f"{each.cause}: {_series(each.firing)} / {_series(each.resolved)}" for each in self.told()
        ]  # fmt: skip


def _series(cards: Sequence[Any]) -> str:
    return " ".join(sorted(f"{card.rule}@{card.labels.get('server', '')}" for card in cards))


def add_channel(engine: Engine, name: str = "oncall", **fields: Any) -> None:
    """Write a channel's row."""
    row = {
        "name": name, "kind": "webhook", "origin": "file", "enabled": True, "secrets": None,
        "config": orjson.dumps({"url": "http://127.0.0.1:9/hook", "allow_private": True}).decode(),
        "disabled_reason": "", "breaker": "{}", "updated_ms": T0, "revision": 1,
    }  # fmt: skip
    with write_transaction(engine) as connection:
        connection.execute(Base.metadata.tables["channel"].insert().values(**{**row, **fields}))


def everything_ok(*keys: dict[str, str], rule: str = "low") -> Iterator[Reading]:
    """Yield a reading that is fine of each of these series."""
    for labels in keys:
        yield a_reading(rule, Status.OK, labels=labels, reason="1.90 is not below 1.50")


def idle(rule: str = "low") -> Reading:
    """Return what is read of an engine without work."""
    return a_reading(rule, Status.NO_DATA, cause=Cause.IDLE, value=None, reason="idle")
