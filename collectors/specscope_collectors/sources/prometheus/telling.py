"""Health of the source, told once per change: of the servers, and of the API while no server is known."""

from __future__ import annotations

import socket

import structlog

from specscope_collectors.clock import Clock
from specscope_collectors.observations import Batch, HealthState, Sink, SourceHealth, Target
from specscope_collectors.plan import collector_target
from specscope_collectors.sources.prometheus import SOURCE
from specscope_collectors.sources.prometheus.api import Api, ApiProblem
from specscope_collectors.sources.prometheus.history import History
from specscope_collectors.sources.prometheus.report import health, problem_health

SCRAPED = "not followed: Specscope scrapes this server itself, and two witnesses would count everything twice"

log = structlog.get_logger("specscope.collector")


class Teller:
    """What one job tells."""

    def __init__(self, job: str, api: Api, sink: Sink, clock: Clock) -> None:
        self._job = job
        self._api = api
        self._sink = sink
        self._clock = clock
        self._told: dict[str, tuple[HealthState, str]] = {}
        self._is_troubled: bool | None = None
        """The API's own last health is bad; None while that is not known."""

    def well(self, name: str, history: History, *, is_done: bool) -> None:
        """Say how reading one server goes: whenever it has caught up, and when that changed."""
        found = health(self._api, history.tally, self._clock(), is_done=is_done)
        if self._is_news(name, found) or is_done:
            history.tell(found)

    def problem(self, problem: ApiProblem, histories: dict[str, History]) -> None:
        """Say that the API does not answer as wished."""
        found = problem_health(self._api, problem, self._clock())
        if self._is_news("", found):
            log.warning("prometheus", job=self._job, state=found.state.value, detail=found.detail)
        for name, history in histories.items():
            self._is_news(name, found)
            history.tell(found)
        if not histories:
            self._send(self._job, collector_target(socket.gethostname()), found)
            self._is_troubled = True

    def found(self, left_out: str) -> None:
        """Say what discovery left out, and take back what was said of an API that did not answer."""
        self._told.pop("", None)
        if self._is_troubled is None:
            self._is_troubled = self._sink.resume(self._job).sequence > 0
        state = HealthState.PARTIAL if left_out else HealthState.OK
        found = self._health(state, left_out)
        if self._is_troubled or (left_out and self._is_news("left out", found)):
            self._send(self._job, collector_target(socket.gethostname()), found)
        self._is_troubled = False

    def scraped(self, target: Target) -> None:
        """Say, once, that a server is left to its own scrape."""
        remedy = (
            f"its past: specscope import prometheus {self._api.url} --server {target.name}, which knows from "
            "the store where the scrape began"
        )
        found = self._health(HealthState.PARTIAL, SCRAPED, remedy)
        if self._is_news(target.name, found):
            log.warning("not followed", job=self._job, server=target.name, reason=SCRAPED)
            self._send(f"{self._job}#{target.name}", target, found)

    def _is_news(self, about: str, found: SourceHealth) -> bool:
        said = (found.state, found.detail)
        is_news = self._told.get(about) != said
        self._told[about] = said
        return is_news

    def _health(self, state: HealthState, detail: str, remedy: str = "") -> SourceHealth:
        return SourceHealth(
            source=SOURCE,
            time_ms=self._clock(),
            state=state,
            url=self._api.url,
            duration_seconds=self._api.last.duration_seconds if self._api.last else 0.0,
            detail=detail[:500],
            remedy=remedy[:500],
        )

    def _send(self, collector_id: str, target: Target, found: SourceHealth) -> None:
        sequence = self._sink.resume(collector_id).sequence + 1
        batch = Batch(collector_id=collector_id, sequence=sequence, target=target, observations=(found,))
        self._sink.apply(batch)
