"""What the process tells of its own alerting at /metrics."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import Counter
from sqlalchemy import Engine, func, select
from sqlalchemy.exc import SQLAlchemyError

from specscope_server.alerts.delivery.outbox import WAITING
from specscope_server.alerts.health import failing_channels
from specscope_server.alerts.pipeline.evaluating import Evaluated
from specscope_server.alerts.states.machine import ON
from specscope_server.kit.web.telemetry import Telemetry
from specscope_server.models import AlertState, Delivery


class Measures:
    """Counters and gauges of alerting; a value that is not known is left out."""

    def __init__(self, telemetry: Telemetry, engine: Engine) -> None:
        self._engine = engine
        self._last: Evaluated | None = None
        self.turn_seconds: float | None = None
        self._failures = Counter(
            "specscope_alerts_failures",
            "Evaluations of alerts that ended in an error, by its kind.",
            ["reason"],
            registry=telemetry.registry,
        )
        self._transitions = Counter(
            "specscope_alerts_transitions",
            "Changes of the states of alerts, by the new state.",
            ["to"],
            registry=telemetry.registry,
        )
        for name, help_text, read in self._gauges():
            telemetry.add_gauge(f"specscope_alerts_{name}", help_text, read)

    def evaluated(self, found: Evaluated) -> None:
        """Note an evaluation."""
        self._last = found
        for transition in found.transitions:
            self._transitions.labels(transition.to_state.value).inc()

    def failed(self, reason: str) -> None:
        """Note a turn that ended in an error."""
        self._failures.labels(reason).inc()

    def _gauges(self) -> list[tuple[str, str, Callable[[], float | None]]]:
        return [
            (
                "last_evaluation_timestamp_seconds",
                "When this process last evaluated the rules.",
                lambda: None if self._last is None else self._last.now_ms / 1_000,
            ),
            ("evaluation_duration_seconds", "How long that took, decisions included.", self._seconds),
            (
                "rules",
                "Rules that were evaluated then.",
                lambda: None if self._last is None else float(self._last.rules),
            ),
            (
                "problems",
                "Things that could not be read then.",
                lambda: None if self._last is None else float(len(self._last.problems)),
            ),
            ("firing", "Alerts that fire.", self._firing),
            (
                "channels_failing",
                "Channels that alerts do not get through to, and those turned off for it.",
                self._channels_failing,
            ),
            ("outbox", "Notifications that wait to be delivered.", self._outbox),
        ]

    def _seconds(self) -> float | None:
        return None if self._last is None else self.turn_seconds

    def _firing(self) -> float | None:
        on = [state.value for state in ON]
        return self._count(select(func.count()).select_from(AlertState).where(AlertState.state.in_(on)))

    def _channels_failing(self) -> float | None:
        try:
            with self._engine.connect() as connection:
                return float(len(failing_channels(connection)))
        except SQLAlchemyError:
            return None

    def _outbox(self) -> float | None:
        waits = Delivery.status.in_(WAITING)
        return self._count(select(func.count()).select_from(Delivery).where(waits))

    def _count(self, query: object) -> float | None:
        try:
            with self._engine.connect() as connection:
                return float(connection.scalar(query) or 0)  # type: ignore[call-overload]
        except SQLAlchemyError:
            return None
