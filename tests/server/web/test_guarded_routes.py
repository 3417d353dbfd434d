"""With a token set, every route needs it but those named here: a new route is guarded by default."""

from __future__ import annotations

import re

import pytest
from sqlalchemy import Engine, create_engine
from tests.server.client import Web
from tests.server.seed import NOW

from specscope_server.app import create_app
from specscope_server.kit.web.auth import OPEN_PATHS, OPEN_PREFIX
from specscope_server.settings import Settings

PATHS = sorted(create_app(Settings(), engine=create_engine("sqlite://")).openapi()["paths"])
PAGES = (
    "/",
    "/acceptance",
    "/requests",
    "/requests/1",
    "/fragments/requests",
    "/fragments/requests/rows",
    "/sources",
    "/glossary",
    "/patterns",
    "/metrics",
    "/fragments/overview",
    "/logout",
)


@pytest.mark.parametrize("path", [*PATHS, *PAGES, "/nope"])
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "OPTIONS"])
def test_every_other_route_needs_the_token(sqlite_engine: Engine, path: str, method: str) -> None:
    web = Web(create_app(Settings(token="a long enough token"), engine=sqlite_engine, clock=lambda: NOW))
    named = re.sub(r"\{\w+\}", "1", path)
    assert "{" not in named
    if path in OPEN_PATHS:
        assert web.request(method, named).status_code != 401
    else:
        assert web.request(method, named).status_code == 401


def test_what_is_open_shows_nothing() -> None:
    assert frozenset({"/healthz", "/readyz", "/login"}) == OPEN_PATHS
    assert OPEN_PREFIX == "/static/"
