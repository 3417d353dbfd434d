"""Every error has one shape, whoever raises it, and says nothing of the inside."""

from __future__ import annotations

import pytest
from fastapi import FastAPI
from sqlalchemy.exc import OperationalError
from tests.server.client import Web

from specscope_server.kit.errors import (
    Forbidden,
    InvalidInput,
    NotFound,
    SpecscopeError,
    TooLarge,
    Unauthorized,
    Unavailable,
)
from specscope_server.kit.web import problems
from specscope_server.kit.web.problems import Problem


def assert_problem(web: Web, method: str, path: str, status: int) -> Problem:
    answer = web.request(method, path)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["cache-control"] == "no-store"
    problem = Problem.model_validate(answer.json())
    assert set(answer.json()) <= {"type", "title", "status", "detail", "instance", "errors"}
    assert problem.status == status
    assert problem.instance == path.partition("?")[0]
    assert problem.type.startswith("urn:specscope:problem:")
    return problem


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/api/v1/nope", 404),
        ("GET", "/api/v1/servers/nope", 404),
        ("GET", "/api/v1/launches/99", 404),
        ("GET", "/api/v1/launches/x", 422),
        ("DELETE", "/api/v1/servers", 405),
        ("GET", "/api/v1/servers?limit=0", 422),
        ("GET", "/api/v1/servers?cursor=x", 422),
        ("GET", "/api/v1/servers?format=xml", 422),
        ("GET", "/api/v1/series/query", 422),
        ("GET", "/api/v1/series/query?metric=requests.running&from=yesterday", 422),
        ("GET", "/api/v1/events?from=now&to=now-1h", 422),
        ("GET", "/api/v1/acceptance/trend?server=nope", 404),
    ],
)
def test_errors_of_the_api(lone_web: Web, method: str, path: str, status: int) -> None:
    assert assert_problem(lone_web, method, path, status).detail


def test_the_allow_header_names_the_methods_of_every_route_at_the_path(lone_web: Web) -> None:
    assert lone_web.request("DELETE", "/login").headers["allow"] == "GET, POST"
    assert lone_web.request("DELETE", "/api/v1/servers").headers["allow"] == "GET"


def test_each_wrong_input_is_listed(lone_web: Web) -> None:
    problem = assert_problem(lone_web, "GET", "/api/v1/series?limit=zero&format=xml", 422)
    assert problem.errors is not None
    assert {item.location for item in problem.errors} == {"query.limit", "query.format"}
    assert "query.limit='zero'" in problem.detail


def failing_app(error: Exception) -> FastAPI:
    app = FastAPI()
    problems.install(app)

    @app.get("/fail")
    def fail() -> None:
        raise error

    return app


@pytest.mark.parametrize("kind", [InvalidInput, NotFound, Unauthorized, Forbidden, TooLarge, Unavailable])
def test_expected_errors_keep_their_status_title_and_words(kind: type[SpecscopeError]) -> None:
    problem = assert_problem(Web(failing_app(kind("what, why, remedy"))), "GET", "/fail", kind.status)
    assert (problem.title, problem.detail) == (kind.title, "what, why, remedy")


def test_unexpected_errors_do_not_show_the_inside() -> None:
    problem = assert_problem(Web(failing_app(RuntimeError("password=hunter2"))), "GET", "/fail", 500)
    assert "hunter2" not in problem.model_dump_json()
    assert "Traceback" not in problem.detail


def test_a_busy_database_is_unavailable_with_a_hint_when_to_retry() -> None:
    error = OperationalError("SELECT secret", {}, Exception("database is locked"))
    web = Web(failing_app(error))
    problem = assert_problem(web, "GET", "/fail", 503)
    assert "secret" not in problem.detail
    assert web.get("/fail").headers["retry-after"] == "5"


def test_unauthorized_names_the_scheme() -> None:
    assert Web(failing_app(Unauthorized("x"))).get("/fail").headers["www-authenticate"] == "Bearer"
