"""Build the web application: no work at import, everything through `create_app`."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.openapi.utils import get_openapi
from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError
from starlette.middleware.gzip import GZipMiddleware

import specscope_server
from specscope import __version__
from specscope_server.alerts.measures import Measures
from specscope_server.alerts.running import Alerting, alerts_running
from specscope_server.ingest.receiving import Ingest
from specscope_server.ingest.service import MeteredSink, make_sink
from specscope_server.ingest.sharing import Sharing
from specscope_server.kit.clock import Clock, system_clock
from specscope_server.kit.web import problems
from specscope_server.kit.web.auth import TokenAuth
from specscope_server.kit.web.guard import Guard
from specscope_server.kit.web.headers import HostCheck, SecurityHeaders
from specscope_server.kit.web.health import health_router
from specscope_server.kit.web.layers import CatchUnexpected, HeadAsGet
from specscope_server.kit.web.login import login_router
from specscope_server.kit.web.origin import OriginCheck
from specscope_server.kit.web.problems import Problem
from specscope_server.kit.web.state import AppState
from specscope_server.kit.web.telemetry import RequestTimer, Telemetry
from specscope_server.pages import errors as error_pages
from specscope_server.settings import Settings
from specscope_server.startup import prepare_store, retention_running
from specscope_server.store import migrate
from specscope_server.store.engine import create_store_engine
from specscope_server.store.retention import disk_use
from specscope_server.store.tokens import DatabaseTokens

API_PREFIX = "/api/v1"
DESCRIPTION = (
    "Watches speculative decoding in production. Times are UTC; `from` and `to` take ISO 8601, epoch "
    "milliseconds, "
    "`now`, `now-6h` or `-30m`; null means not observed, never zero. Errors are RFC 9457 problem documents."
)


def create_app(
    settings: Settings,
    *,
    engine: Engine | None = None,
    clock: Clock = system_clock,
    telemetry: Telemetry | None = None,
    collectors_alive: Callable[[], bool] | None = None,
    sink: MeteredSink | None = None,
) -> FastAPI:
    """Return the application. ``engine`` None = open ``settings.database`` (and close it at the end).

    ``sink`` is the one that collectors in this process use too; None = one of its own.
    """
    store = engine or create_store_engine(settings.database)
    counters = telemetry or Telemetry()
    interval_ms = round(settings.scrape_interval_seconds * 1_000)
    app = FastAPI(
        title="Specscope",
        version=__version__,
        description=DESCRIPTION,
        lifespan=_lifespan(settings, owned=engine is None),
        docs_url=None,
        redoc_url=None,
        openapi_url=f"{API_PREFIX}/openapi.json",
    )
    app.state.specscope = AppState(store, clock, interval_ms, collectors_alive)
    app.state.settings = settings
    app.state.telemetry = counters
    into = sink or make_sink(store, counters, settings.retention_raw_days, clock)
    app.state.ingest = Ingest(into, Sharing(store, clock), settings.max_push_bytes)
    alerting = Alerting(settings, app.state.specscope, app, Measures(counters, store))
    app.state.alerting, app.state.specscope.alerts_health = alerting, alerting.health
    guard = _guard(settings, store, clock)
    counters.add_gauge("specscope_database_bytes", "Disk use of the database.", lambda: _disk_use(store))
    problems.install(app)
    error_pages.install(app)
    _add_layers(app, settings, guard, counters)
    _add_routes(app, guard, clock, counters)
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign]
    return app


def _disk_use(engine: Engine) -> float | None:
    """Return bytes; None while the database does not answer, so that the other metrics stay readable."""
    try:
        return float(disk_use(engine))
    except SQLAlchemyError:
        return None


def _lifespan(settings: Settings, *, owned: bool) -> Callable[[FastAPI], Any]:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        state: AppState = app.state.specscope
        prepare_store(state.engine, settings)
        with (
            retention_running(state.engine, settings, state.clock),
            alerts_running(app, settings, state),
        ):
            yield
        if owned:
            state.engine.dispose()

    return lifespan


def _guard(settings: Settings, engine: Engine, clock: Clock) -> Guard | None:
    """Return who knows the tokens; None = no token is set, so that all is open (on loopback only)."""
    if settings.token is None:
        return None
    return Guard(settings.token.get_secret_value(), clock, DatabaseTokens(engine, clock))


def _add_layers(app: FastAPI, settings: Settings, guard: Guard | None, telemetry: Telemetry) -> None:
    """Add the ASGI layers; the last one added is the outermost."""
    app.add_middleware(GZipMiddleware, minimum_size=1_000, compresslevel=4)
    if guard is not None:
        app.add_middleware(TokenAuth, guard=guard)
    app.add_middleware(OriginCheck, allowed=settings.allowed_hosts)
    app.add_middleware(HostCheck, allowed=[*settings.allowed_hosts, *_listening(settings.host)])
    app.add_middleware(HeadAsGet)
    app.add_middleware(CatchUnexpected, on_error=app.exception_handlers.pop(Exception))
    app.add_middleware(RequestTimer, telemetry=telemetry, prefixes=(API_PREFIX,))
    app.add_middleware(SecurityHeaders)


def _listening(host: str) -> list[str]:
    """Return the address that the server listens on, under which it is reached; of all addresses, none."""
    return [] if host in ("0.0.0.0", "::", "") else [f"[{host}]" if ":" in host else host]


def _add_routes(app: FastAPI, guard: Guard | None, clock: Clock, telemetry: Telemetry) -> None:
    app.include_router(login_router(guard, clock))
    app.include_router(telemetry.router())
    app.include_router(health_router(lambda state: migrate.is_current(state.engine)))
    for name, router in domain_routers():
        app.include_router(router, prefix="" if name == "pages" else API_PREFIX)


def domain_routers() -> list[tuple[str, APIRouter]]:
    """Return (domain, router) for each domain folder that has an ``endpoints.py`` with a ``router``.

    A new domain is found by its folder; pages stand at the root, everything else under the API's prefix.
    """
    found = []
    for module in sorted(pkgutil.iter_modules(specscope_server.__path__), key=lambda entry: entry.name):
        if not module.ispkg:
            continue
        package = importlib.import_module(f"specscope_server.{module.name}")
        if any(inner.name == "endpoints" for inner in pkgutil.iter_modules(package.__path__)):
            router = importlib.import_module(f"specscope_server.{module.name}.endpoints").router
            assert isinstance(router, APIRouter), f"{module.name}.endpoints.router is not a router"
            found.append((module.name, router))
    return found


def _openapi(app: FastAPI) -> dict[str, Any]:
    if app.openapi_schema is None:
        schema = get_openapi(
            title=app.title,
            version=app.version,
            description=app.description,
            routes=app.routes,
        )
        components = schema.setdefault("components", {}).setdefault("schemas", {})
        problem = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
        components.update(problem.pop("$defs", {}))
        components["Problem"] = problem
        app.openapi_schema = schema
    return app.openapi_schema
