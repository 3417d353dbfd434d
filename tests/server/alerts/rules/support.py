"""Asking signals and rules of a store, at a fixed time."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Engine, select
from sqlalchemy.orm import Session
from tests.server.seed import NOW, Feed

from specscope_collectors.observations import HealthState, Level
from specscope_server.alerts.rules.evaluate import evaluate
from specscope_server.alerts.rules.reading import Reading
from specscope_server.alerts.rules.schema import Origin, Rule, StoredRule
from specscope_server.alerts.rules.signals import signal
from specscope_server.kit.signal import SignalQuery, SignalSeries, Target
from specscope_server.kit.web.state import AppState
from specscope_server.models import Server

MINUTE = 60_000
SCRAPE_INTERVAL_MS = 5_000


def state_of(engine: Engine, now_ms: int = NOW) -> AppState:
    """Return what evaluation needs of the application."""
    return AppState(engine, lambda: now_ms, SCRAPE_INTERVAL_MS)


def attempt(feed: Feed, time_ms: int, *, is_up: bool) -> None:
    """Send what a collector says of one attempt to read /metrics."""
    labels = {"source": "sglang_metrics"}
    feed.health(time_ms, HealthState.OK if is_up else HealthState.UNREACHABLE)
    feed.send(Level(metric="scrape.up", labels=labels, time_ms=time_ms, value=float(is_up)))


def targets(session: Session) -> tuple[Target, ...]:
    """Return every server."""
    return tuple(Target(row.id, row.name) for row in session.scalars(select(Server).order_by(Server.id)))


def ask(
    engine: Engine, name: str, to_ms: int, window_ms: int = 5 * MINUTE, points: int = 1, **more: Any
) -> list[SignalSeries]:
    """Return a signal's series: the newest point, or that many with ``step_ms`` between them."""
    step_ms = more.pop("step_ms", window_ms)
    with Session(engine) as session:
        query = SignalQuery(
            targets(session), to_ms - points * step_ms, to_ms, step_ms, window_ms, to_ms, state_of(engine),
            **more,
        )  # fmt: skip
        return signal(name).read(session, query)


def rule_of(condition: dict[str, Any], **fields: Any) -> StoredRule:
    """Return a stored rule with this condition."""
    body = {"name": "rule", "title": "A rule", "condition": condition, **fields}
    return StoredRule(rule=Rule.model_validate(body), version=1, origin=Origin.API, enabled=True)


def readings(engine: Engine, now_ms: int, *rules: StoredRule) -> list[Reading]:
    """Return every reading of these rules."""
    with Session(engine) as session:
        return list(evaluate(session, state_of(engine, now_ms), rules, now_ms))
