"""Input that no honest caller sends: refused as what it is, never an unexpected error."""

from __future__ import annotations

import base64
from typing import Any

import orjson
import pytest
from fastapi import FastAPI
from tests.server.client import Web
from tests.server.seed import NOW, SERVER, Feed, growth, rank_labels

from specscope_server.app import create_app
from specscope_server.kit.web.headers import HEADERS
from specscope_server.series import service
from specscope_server.settings import Settings


def cursor(key: list[Any]) -> str:
    return base64.urlsafe_b64encode(orjson.dumps(key)).decode().rstrip("=")


@pytest.mark.parametrize(
    "path",
    [
        f"/launches/{2**63}",
        f"/launches/{-(2**63) - 1}",
        f"/launches/{'9' * 30}",
        f"/series?cursor={cursor([2**63])}",
        f"/events?cursor={cursor([2**64 - 1, 1])}",
        f"/servers/{SERVER}/launches?cursor={cursor([1, 2**63])}",
        f"/figures/accept-length?server={SERVER}&to=9999-12-31T23:59:59.999Z",
        f"/figures/accept-length?server={SERVER}&to=253402300799999",
    ],
)
def test_numbers_beyond_what_is_stored_are_invalid(web: Web, feed: Feed, path: str) -> None:
    feed.launch()
    answer = web.get(f"/api/v1{path}")
    assert answer.status_code == 422, answer.text
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    "path",
    [
        "/servers/a%00b",
        "/servers/a%00b/launches",
        "/acceptance/summary?server=%00",
        "/events?kind=%00",
        "/figures/%00?server=gpu1:30000",
        f"/servers?cursor={cursor([chr(0)])}",
        "/series/query?metric=requests.running&label=%00=%00",
    ],
)
def test_a_nul_character_is_no_unexpected_error(web: Web, feed: Feed, path: str) -> None:
    feed.launch()
    answer = web.get(f"/api/v1{path}")
    assert answer.status_code in (200, 404, 422), answer.text


@pytest.mark.parametrize("span", [{"points": 1}, {"points": 2}, {"points": 10_000}, {"step": "50000w"}, {}])
def test_the_whole_of_time_can_be_asked_for(web: Web, feed: Feed, span: dict[str, Any]) -> None:
    feed.launch()
    feed.scrapes(3, tau=2.0, running=1)
    whole = {"server": SERVER, "from": "1970-01-01", "to": "2999-12-31T23:59:59.999Z", **span}
    for path in ("acceptance/summary", "acceptance/trend", "figures/accept-length", "figures/load"):
        answer = web.get(f"/api/v1/{path}", params=whole)
        assert answer.status_code == 200, answer.text


def test_more_values_than_fit_into_one_answer_are_refused(
    web: Web, feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed.launch()
    feed.send(*(growth("tokens.decoded", 1, NOW, rank_labels(dp=dp)) for dp in range(10)))
    monkeypatch.setattr(service, "MAX_VALUES", 1_000)
    asked = {"metric": "tokens.decoded", "from": "now-5m"}
    assert web.get("/api/v1/series/query", params={**asked, "step": "5s"}).status_code == 200
    refused = web.get("/api/v1/series/query", params={**asked, "step": "1s"})
    assert refused.status_code == 422
    assert "limit of 1000 values" in refused.json()["detail"]


def failing(app: FastAPI) -> Web:
    @app.get("/api/v1/fail")
    def fail() -> None:
        raise RuntimeError("hunter2")

    return Web(app)


def test_an_unexpected_error_is_an_answer_with_all_headers(lone_web: Web) -> None:
    answer = failing(lone_web.app).get("/api/v1/fail")
    assert (answer.status_code, answer.json()["title"]) == (500, "Internal error")
    assert "hunter2" not in answer.text
    assert {name.lower() for name in HEADERS} <= set(answer.headers)
    page = lone_web.get("/api/v1/fail", headers={"accept": "text/html"})
    assert page.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    "path", ["/healthz", "/readyz", "/metrics", "/api/v1/servers", "/", "/login", "/nope"]
)
def test_head_is_get_without_the_body(lone_web: Web, path: str) -> None:
    head, get = lone_web.request("HEAD", path), lone_web.get(path)
    assert (head.status_code, head.content) == (get.status_code, b"")
    assert head.headers["content-type"] == get.headers["content-type"]


def test_head_needs_the_token_too(lone_web: Web) -> None:
    engine = lone_web.app.state.specscope.engine
    guarded = Web(create_app(Settings(token="t"), engine=engine))
    assert guarded.request("HEAD", "/api/v1/servers").status_code == 401
