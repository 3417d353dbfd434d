"""The product's own metrics: one registry per application, so that several can live in one process."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from fastapi import APIRouter, Response
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Telemetry:
    """Counters of this process, and gauges read when they are asked for."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.request_seconds = Histogram(
            "specscope_http_request_duration_seconds",
            "Time to answer a request, by route and status.",
            ["method", "route", "status"],
            buckets=_BOUNDS,
            registry=self.registry,
        )
        self.scrapes = Counter(
            "specscope_scrapes",
            "Attempts to read a source, by outcome.",
            ["source", "state"],
            registry=self.registry,
        )
        self.samples = Counter(
            "specscope_ingest_samples",
            "Measurements stored: values of counters and gauges (scalar), and histograms (distribution).",
            ["kind"],
            registry=self.registry,
        )
        self.refused = Counter(
            "specscope_ingest_refused", "Measurements refused, by reason.", ["reason"], registry=self.registry
        )
        self.batches = Counter(
            "specscope_ingest_batches",
            "Batches: applied, repeated (had been applied before) or failed.",
            ["outcome"],
            registry=self.registry,
        )

        self.requests = Counter(
            "specscope_requests_reported",
            "Finished requests that clients reported: stored, or there already (duplicate).",
            ["outcome"],
            registry=self.registry,
        )
        self.requests_refused = Counter(
            "specscope_requests_refused",
            "Finished requests that clients reported and that were refused, by reason.",
            ["reason"],
            registry=self.registry,
        )

    def count_requests(self, stored: int, duplicates: int, refused: Mapping[str, int]) -> None:
        """Count what became of reported requests; ``refused``: reason in one word → how many."""
        self.requests.labels("stored").inc(stored)
        self.requests.labels("duplicate").inc(duplicates)
        for reason, count in refused.items():
            self.requests_refused.labels(reason).inc(count)

    def add_gauge(self, name: str, help_text: str, read: Callable[[], float | None]) -> None:
        """Add a gauge that ``read`` computes at each scrape; None leaves it out (unknown is not zero)."""
        self.registry.register(_Lazy(name, help_text, read))

    def router(self) -> APIRouter:
        """Return the /metrics route."""
        router = APIRouter(include_in_schema=False)

        @router.get("/metrics")
        def metrics() -> Response:
            return Response(
                generate_latest(self.registry),
                headers={"Content-Type": CONTENT_TYPE, "Cache-Control": "no-store"},
            )

        return router


class _Lazy(Collector):
    def __init__(self, name: str, help_text: str, read: Callable[[], float | None]) -> None:
        self.name, self.help_text, self.read = name, help_text, read

    def describe(self) -> Iterable[Metric]:
        return [GaugeMetricFamily(self.name, self.help_text)]

    def collect(self) -> Iterable[Metric]:
        value = self.read()
        if value is not None:
            yield GaugeMetricFamily(self.name, self.help_text, value=value)


class RequestTimer:
    """ASGI layer: observe how long each answer took. Unknown paths (the caller's choice) share one label."""

    def __init__(self, app: ASGIApp, telemetry: Telemetry, prefixes: Sequence[str] = ()) -> None:
        self.app = app
        self.telemetry = telemetry
        self.prefixes = tuple(prefixes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, then observe."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = time.perf_counter()
        status = "500"

        async def send_and_note(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = str(message["status"])
            await send(message)

        try:
            await self.app(scope, receive, send_and_note)
        finally:
            route = self._route(scope)
            method = scope["method"] if scope["method"] in _METHODS else "OTHER"
            seconds = time.perf_counter() - started
            self.telemetry.request_seconds.labels(method, route, status).observe(seconds)

    def _route(self, scope: Scope) -> str:
        """Return the pattern of the route that answered, with the prefix under which it was included."""
        path: str = getattr(scope.get("route"), "path", "(none)")
        for prefix in self.prefixes:
            if (
                scope["path"].startswith(f"{prefix}/")
                and path.startswith("/")
                and not path.startswith(prefix)
            ):
                return prefix + path
        return path


_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
