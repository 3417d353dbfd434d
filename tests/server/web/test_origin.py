"""What a page of another site may not do with a reader's session."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine
from tests.server.client import Web
from tests.server.seed import NOW

from specscope_server.app import create_app
from specscope_server.settings import Settings

EVIL = "https://evil.example"


@pytest.fixture
def proxied(sqlite_engine: Engine) -> Web:
    settings = Settings(allowed_hosts=["specscope.example"])
    return Web(create_app(settings, engine=sqlite_engine, clock=lambda: NOW))


@pytest.mark.parametrize(
    "headers",
    [
        {"sec-fetch-site": "cross-site", "origin": EVIL},
        {"sec-fetch-site": "same-site", "origin": "http://127.0.0.1:8200"},
        {"origin": EVIL},
        {"origin": "null"},
        {"origin": "http://[broken"},
        {"origin": "http://127.0.0.1:8200.evil.example"},
    ],
)
def test_other_sites_change_nothing(lone_web: Web, headers: dict[str, str]) -> None:
    answer = lone_web.request("POST", "/api/v1/requests", headers=headers, content=b"[]")
    assert answer.status_code == 403
    assert "allowed_hosts" in answer.json()["detail"]


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"sec-fetch-site": "same-origin", "origin": "http://127.0.0.1:8200"},
        {"sec-fetch-site": "none"},
        {"origin": "http://127.0.0.1:8200"},
        {"origin": "https://specscope.example"},
    ],
)
def test_own_pages_and_programs_pass(proxied: Web, headers: dict[str, str]) -> None:
    answer = proxied.request("POST", "/api/v1/requests", headers=headers, content=b"no json")
    assert answer.status_code not in (403, 421)


def test_anyone_may_follow_a_link_here(lone_web: Web) -> None:
    answer = lone_web.get("/", headers={"sec-fetch-site": "cross-site", "origin": EVIL})
    assert answer.status_code == 200


def test_the_form_of_the_login_page_is_sent_without_origin(sqlite_engine: Engine) -> None:
    web = Web(create_app(Settings(token="correct horse battery"), engine=sqlite_engine, clock=lambda: NOW))
    form = {"content-type": "application/x-www-form-urlencoded", "origin": "null"}
    answer = web.request("POST", "/login", headers=form, content="token=correct+horse+battery")
    assert answer.status_code == 303
