"""Headers, the Host check, tokens and the login cookie."""

from __future__ import annotations

import re

import pytest
from sqlalchemy import Engine
from tests.server.client import Web
from tests.server.seed import NOW

from specscope_server.app import create_app
from specscope_server.kit.web.auth import COOKIE, SESSION_SECONDS, is_same, is_session, session_cookie
from specscope_server.kit.web.headers import host_name
from specscope_server.kit.web.login import local_path
from specscope_server.settings import Settings

TOKEN = "correct horse battery"
FORM = {"content-type": "application/x-www-form-urlencoded"}


@pytest.fixture
def guarded(sqlite_engine: Engine) -> Web:
    settings = Settings(token=TOKEN, allowed_hosts=["gpu1.example"])
    return Web(create_app(settings, engine=sqlite_engine, clock=lambda: NOW))


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


@pytest.mark.parametrize("path", ["/healthz", "/api/v1/servers", "/nope", "/api/v1/servers?limit=0"])
def test_every_answer_has_the_security_headers(lone_web: Web, path: str) -> None:
    headers = lone_web.get(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "frame-ancestors 'none'" in policy
    assert not re.search(r"unsafe-eval|script-src[^;]*unsafe|https?:", policy)
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert "server" not in headers


@pytest.mark.parametrize("host", ["127.0.0.1:8200", "localhost", "LOCALHOST:8200", "[::1]:8200"])
def test_loopback_names_are_answered(lone_web: Web, host: str) -> None:
    assert lone_web.get("/healthz", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost.",
        "",
        "a:b:c",
        "[::1].evil.example",
        "localhost:1/@evil",
    ],
)
def test_other_hosts_are_refused_with_the_remedy(lone_web: Web, host: str) -> None:
    answer = lone_web.get("/api/v1/servers", headers={"host": host})
    assert answer.status_code == 421
    assert answer.headers["content-type"] == "application/problem+json"
    assert "allowed_hosts" in answer.json()["detail"]


def test_allowed_hosts_are_answered(guarded: Web, sqlite_engine: Engine) -> None:
    assert guarded.get("/healthz", headers={"host": "gpu1.example:8200"}).status_code == 200
    named = ["GPU2.example:8200", "[fe80::1]"]
    with_port = Web(create_app(Settings(allowed_hosts=named), engine=sqlite_engine))
    assert with_port.get("/healthz", headers={"host": "gpu2.example"}).status_code == 200
    assert with_port.get("/healthz", headers={"host": "[fe80::1]:8200"}).status_code == 200
    every = Web(create_app(Settings(allowed_hosts=["*"]), engine=sqlite_engine))
    assert every.get("/healthz", headers={"host": "any.example"}).status_code == 200


@pytest.mark.parametrize(
    ("listens", "host"),
    [("127.0.0.2", "127.0.0.2"), ("::1", "[::1]"), ("10.0.0.5", "10.0.0.5"), ("fe80::1", "[fe80::1]")],
)
def test_the_address_that_is_listened_on_is_answered(sqlite_engine: Engine, listens: str, host: str) -> None:
    web = Web(create_app(Settings(host=listens, token=TOKEN), engine=sqlite_engine))
    assert web.get("/healthz", headers={"host": f"{host}:8200"}).status_code == 200
    everywhere = Web(create_app(Settings(host="0.0.0.0", token=TOKEN), engine=sqlite_engine))
    assert everywhere.get("/healthz", headers={"host": "0.0.0.0:8200"}).status_code == 421


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("A.B:1", "a.b"),
        ("[::1]:80", "::1"),
        ("h", "h"),
        ("[::1", ""),
        ("[::1].evil", ""),
        ("h:1/x", ""),
        ("", ""),
    ],
)
def test_host_names(header: str, name: str) -> None:
    assert host_name(header) == name


@pytest.mark.parametrize(
    "path", ["/api/v1/servers", "/metrics", "/api/v1/openapi.json", "/", "/loginx", "/logout"]
)
@pytest.mark.parametrize("headers", [{}, bearer("wrong"), bearer(""), {"authorization": f"Basic {TOKEN}"}])
def test_without_the_token_nothing_is_shown(guarded: Web, path: str, headers: dict[str, str]) -> None:
    answer = guarded.get(path, headers=headers)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.json()["instance"] == path


def test_with_the_token_everything_is_shown(guarded: Web) -> None:
    assert guarded.get("/api/v1/servers", headers=bearer(TOKEN)).status_code == 200
    assert guarded.get("/metrics", headers={"authorization": f"bearer {TOKEN}"}).status_code == 200


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_health_needs_no_token(guarded: Web, path: str) -> None:
    assert guarded.get(path).status_code == 200


def test_a_browser_is_sent_to_the_login_page_and_back(guarded: Web) -> None:
    answer = guarded.get("/acceptance?server=a", headers={"accept": "text/html"})
    assert answer.status_code == 303
    assert answer.headers["location"] == "/login?next=%2Facceptance%3Fserver%3Da"
    api = guarded.get("/api/v1/servers", headers={"accept": "text/html"})
    assert api.status_code == 401


def test_logging_in_sets_a_cookie_that_scripts_cannot_read_and_that_opens(guarded: Web) -> None:
    answer = guarded.request(
        "POST", "/login", content="token=correct+horse+battery&next=/sources", headers=FORM
    )
    assert (answer.status_code, answer.headers["location"]) == (303, "/sources")
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert f"Max-Age={SESSION_SECONDS}" in cookie
    assert TOKEN not in cookie
    value = cookie.partition(";")[0]
    assert guarded.get("/api/v1/servers", headers={"cookie": value}).status_code == 200


def test_over_https_the_cookie_is_secure(guarded: Web) -> None:
    secure = Web(guarded.app, "https://127.0.0.1:8200")
    answer = secure.request("POST", "/login", data={"token": TOKEN})
    assert "Secure" in answer.headers["set-cookie"]


def test_a_wrong_token_is_refused(guarded: Web) -> None:
    page = guarded.request(
        "POST", "/login", data={"token": "x", "next": "/a"}, headers={"accept": "text/html"}
    )
    assert (page.status_code, page.headers["location"]) == (303, "/login?failed=1&next=%2Fa")
    assert "set-cookie" not in page.headers
    script = guarded.request("POST", "/login", data={"token": "x"})
    assert script.status_code == 401


def test_other_bodies_of_the_login_are_refused(guarded: Web) -> None:
    assert guarded.request("POST", "/login", json={"token": TOKEN}).status_code == 422
    assert (
        guarded.request("POST", "/login", content=b"token=" + b"x" * 9_000, headers=FORM).status_code == 413
    )
    assert guarded.request("POST", "/login", content=b"\xff=%ff", headers=FORM).status_code == 401


def test_logging_out_removes_the_cookie(guarded: Web) -> None:
    answer = guarded.request("POST", "/logout", headers=bearer(TOKEN))
    assert answer.headers["location"] == "/login"
    assert "Max-Age=0" in answer.headers["set-cookie"]


def test_sessions_expire_and_cannot_be_made_without_the_token() -> None:
    good = session_cookie(TOKEN, NOW + 1)
    assert is_session(good, TOKEN, NOW)
    assert not is_session(good, TOKEN, NOW + 1)
    assert not is_session(good, "other", NOW)
    assert not is_session(good.replace(str(NOW + 1), str(NOW + 9)), TOKEN, NOW)
    for text in ("", ".", "x.y", "٣.x", "9" * 20 + ".x"):
        assert not is_session(text, TOKEN, NOW)
    assert good.startswith(f"{NOW + 1}.")


def test_an_unreadable_cookie_header_is_no_session(guarded: Web) -> None:
    assert guarded.get("/api/v1/servers", headers={"cookie": f"{COOKIE}=\x01;;="}).status_code == 401


@pytest.mark.parametrize(
    "target", ["//evil.example", "/\\evil.example", "https://evil.example", "", "a", "/a\nb"]
)
def test_only_paths_of_this_site_are_gone_on_to(target: str) -> None:
    assert local_path(target) == "/"
    assert local_path("/sources?server=a") == "/sources?server=a"


def test_comparison_tells_equal_from_unequal() -> None:
    assert is_same("é", "é")
    assert not is_same("a", "ab")
    assert not is_same("\ud800", "a")
