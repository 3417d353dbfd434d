"""Tokens with a scope: what each may do, how they end, and that guessing is slow."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import OperationalError
from tests.server.client import Web
from tests.server.seed import NOW

from specscope.__main__ import main as specscope
from specscope_server.app import create_app
from specscope_server.kit.errors import InvalidInput, NotFound
from specscope_server.kit.web import guard as guarding
from specscope_server.kit.web.guard import (
    BELIEVED_SECONDS,
    MOST_BELIEVED,
    Guard,
    digest_of,
    is_session,
    session_cookie,
)
from specscope_server.kit.web.scopes import Grant, Scope, scopes_for
from specscope_server.kit.web.throttle import MOST_ADDRESSES, MOST_FAILURES, Throttle
from specscope_server.settings import Settings
from specscope_server.store.tokens import DatabaseTokens, create_token, list_tokens, revoke_token

ADMIN = "the token of the settings"
MSGPACK = "application/msgpack"


@pytest.fixture
def guarded(store_engine: Engine) -> Web:
    return Web(create_app(Settings(token=ADMIN), engine=store_engine, clock=lambda: NOW))


@pytest.fixture
def tokens(store_engine: Engine) -> dict[str, str]:
    """Scope → a token of it."""
    made = {scope.value: create_token(store_engine, f"a {scope}", scope, NOW) for scope in Scope}
    return made | {"settings": ADMIN}


def ask(web: Web, token: str, method: str, path: str) -> int:
    headers = {"authorization": f"Bearer {token}", "content-type": MSGPACK}
    return web.request(method, path, headers=headers, content=b"").status_code


ASKS = [
    ("GET", "/api/v1/servers"), ("HEAD", "/api/v1/sources"), ("GET", "/metrics"), ("GET", "/"),
    ("GET", "/api/v1/openapi.json"), ("GET", "/api/v1/requests?server=x"),
]  # fmt: skip
PUSHES = [
    ("POST", "/api/v1/ingest"), ("POST", "/api/v1/requests?server=x"), ("POST", "/api/v1/traces?server=x"),
]  # fmt: skip
CHANGES = [
    ("POST", "/api/v1/servers"), ("PUT", "/api/v1/anything"), ("PATCH", "/x"), ("DELETE", "/api/v1/requests"),
    ("POST", "/api/v1/ingestion"), ("POST", "/api/v1/trace-captures"), ("OPTIONS", "/api/v1/servers"),
    ("PUT", "/api/v1/ingest"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("scope", "asks", "pushes", "changes"),
    [
        ("read", True, False, False),
        ("ingest", False, True, False),
        ("admin", True, True, True),
        ("settings", True, True, True),
    ],
)
def test_a_scope_opens_its_part_and_no_more(
    guarded: Web, tokens: dict[str, str], scope: str, asks: bool, pushes: bool, changes: bool
) -> None:
    for requests, allowed in ((ASKS, asks), (PUSHES, pushes), (CHANGES, changes)):
        for method, path in requests:
            status = ask(guarded, tokens[scope], method, path)
            assert status != 401
            assert (status != 403) == allowed, (method, path, status)
    assert ask(guarded, tokens[scope], "GET", "/api/v1/ingest?collector_id=a") == 200


def test_what_is_forbidden_says_what_is_needed(guarded: Web, tokens: dict[str, str]) -> None:
    headers = {"authorization": f"Bearer {tokens['read']}"}
    answer = guarded.request("POST", "/api/v1/ingest", headers=headers)
    assert (answer.status_code, answer.json()["title"]) == (403, "Forbidden")
    assert "'a read' has the scope read" in answer.json()["detail"]
    assert "needs admin or ingest" in answer.json()["detail"]


def test_every_shape_of_a_route_has_a_scope() -> None:
    for method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"):
        for path in ("/", "/api/v1/ingest", "/api/v1/ingest/x", "/api/v1/ingestx", "/x", "", "/logout"):
            assert Scope.ADMIN in scopes_for(method, path)
    assert scopes_for("POST", "/api/v1/ingestx") == {Scope.ADMIN}
    assert scopes_for("DELETE", "/api/v1/ingest") == {Scope.ADMIN}


def test_without_a_token_in_the_settings_loopback_stays_open(store_engine: Engine) -> None:
    web = Web(create_app(Settings(), engine=store_engine, clock=lambda: NOW))
    token = create_token(store_engine, "unused", Scope.READ, NOW)
    for authorization in ({}, {"authorization": "Bearer wrong"}, {"authorization": f"Bearer {token}"}):
        assert web.get("/api/v1/servers", headers=authorization).status_code == 200
        pushed = web.request("POST", "/api/v1/ingest", headers=authorization | {"content-type": MSGPACK})
        assert pushed.status_code == 422
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
        pushed = web.request("POST", "/api/v1/ingest", headers={"content-type": kind}, content=b"x")
        assert pushed.status_code == 415, "what a page elsewhere can make a browser send"


def test_only_a_hash_is_kept(store_engine: Engine) -> None:
    token = create_token(store_engine, "gpu1", Scope.INGEST, NOW)
    assert re.fullmatch(r"specscope_[\w-]{43}", token)
    [row] = list_tokens(store_engine)
    assert row.digest == digest_of(token)
    with store_engine.connect() as connection:
        stored = str(connection.execute(text("SELECT * FROM api_token")).all())
    assert token not in stored
    assert (row.name, row.scope, row.created_ms, row.last_used_ms, row.revoked_ms) == (
        "gpu1", "ingest", NOW, None, None,
    )  # fmt: skip


@pytest.mark.parametrize("name", ["", "  ", "x" * 101, "a\nb", "a\x00"])
def test_names_that_cannot_be(sqlite_engine: Engine, name: str) -> None:
    with pytest.raises(InvalidInput, match="printable characters"):
        create_token(sqlite_engine, name, Scope.READ, NOW)


def test_a_name_is_used_once(store_engine: Engine) -> None:
    create_token(store_engine, "a", Scope.READ, NOW)
    revoke_token(store_engine, "a", NOW)
    with pytest.raises(InvalidInput, match="already"):
        create_token(store_engine, "a", Scope.READ, NOW)
    with pytest.raises(NotFound, match="no valid token"):
        revoke_token(store_engine, "a", NOW)


class Later:
    """A monotonic clock that the test sets."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def test_a_revoked_token_ends_within_seconds(store_engine: Engine) -> None:
    later = Later()
    guard = Guard(ADMIN, lambda: NOW, DatabaseTokens(store_engine, lambda: NOW), later)
    token = create_token(store_engine, "a", Scope.INGEST, NOW)
    assert guard.recently(token) is None
    grant = guard.of_token(token)
    assert grant is not None
    assert (grant.name, grant.scope) == ("a", Scope.INGEST)
    assert guard.recently(token) == grant
    revoke_token(store_engine, "a", NOW)
    later.seconds = BELIEVED_SECONDS - 0.1
    assert guard.recently(token) == grant
    later.seconds = BELIEVED_SECONDS
    assert guard.recently(token) is None
    assert guard.of_token(token) is None
    assert guard.of_token("specscope_" + "x" * 43) is None


def test_what_is_remembered_is_bounded() -> None:
    class Everybody:
        def by_digest(self, digest: str) -> Grant | None:
            return Grant(1, "a", Scope.READ, digest)

        def by_id(self, token_id: int) -> Grant | None:
            return None

        def note_use(self, token_id: int) -> None: ...

    guard = Guard(ADMIN, lambda: NOW, Everybody())
    for number in range(MOST_BELIEVED + 50):
        guard.of_token(f"t{number}")
    assert guard.recently("t0") is None
    assert guard.recently(f"t{MOST_BELIEVED + 49}") is not None
    assert len(guard._believed) == MOST_BELIEVED


def test_use_is_noted_at_most_once_a_minute(store_engine: Engine) -> None:
    now = [NOW]
    tokens = DatabaseTokens(store_engine, lambda: now[0])
    create_token(store_engine, "a", Scope.READ, NOW)
    [row] = list_tokens(store_engine)
    for step_ms, noted in ((0, NOW), (30_000, NOW), (31_000, NOW + 61_000)):
        now[0] += step_ms
        tokens.note_use(row.id)
        assert list_tokens(store_engine)[0].last_used_ms == noted


def test_who_reads_logs_in_with_a_token_of_their_own(
    guarded: Web, store_engine: Engine, tokens: dict[str, str]
) -> None:
    answer = guarded.request("POST", "/login", data={"token": tokens["read"], "next": "/sources"})
    assert answer.status_code == 303
    cookie = {"cookie": answer.headers["set-cookie"].partition(";")[0]}
    assert tokens["read"] not in cookie["cookie"]
    assert guarded.get("/api/v1/servers", headers=cookie).status_code == 200
    assert guarded.request("POST", "/api/v1/servers", headers=cookie).status_code == 403
    assert guarded.request("POST", "/logout", headers=cookie).status_code == 303
    revoke_token(store_engine, "a read", NOW)
    again = Web(create_app(Settings(token=ADMIN), engine=store_engine, clock=lambda: NOW))
    assert again.get("/api/v1/servers", headers=cookie).status_code == 401


def test_a_token_to_push_opens_no_page(guarded: Web, tokens: dict[str, str]) -> None:
    assert guarded.request("POST", "/login", data={"token": tokens["ingest"]}).status_code == 401


def test_the_database_alone_forges_no_session(store_engine: Engine, tokens: dict[str, str]) -> None:
    row = next(each for each in list_tokens(store_engine) if each.scope == "read")
    grant = Grant(row.id, row.name, Scope.READ, row.digest)
    good = session_cookie(ADMIN, NOW + 1, grant)
    assert is_session(good, ADMIN, NOW, grant)
    assert not is_session(good, ADMIN, NOW + 1, grant)
    for forged in (session_cookie(row.digest, NOW + 1, grant), session_cookie("x", NOW + 1, grant)):
        assert not is_session(forged, ADMIN, NOW, grant)
    other = Grant(row.id, row.name, Scope.READ, digest_of("another"))
    assert not is_session(session_cookie(ADMIN, NOW + 1, other), ADMIN, NOW, grant)
    guard = Guard(ADMIN, lambda: NOW, DatabaseTokens(store_engine))
    expires, signature, _ = good.split(".")
    for cookie in (
        f"{expires}.{signature}.999",
        f"{expires}.{signature}.x",
        f"{expires}.{signature}.٣",
        "..",
        "1.2.3.4",
    ):
        assert guard.of_cookie(cookie) is None


def test_guessing_is_slowed_down_and_known_tokens_go_on(
    store_engine: Engine, tokens: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guarding, "BELIEVED_SECONDS", 3_600)  # of real time, which is not the matter here
    now = [NOW]
    web = Web(create_app(Settings(token=ADMIN), engine=store_engine, clock=lambda: now[0]))
    assert ask(web, tokens["read"], "GET", "/api/v1/servers") == 200
    found = [ask(web, f"guess {number}", "GET", "/api/v1/servers") for number in range(MOST_FAILURES + 2)]
    assert found == [401] * MOST_FAILURES + [429, 429]
    late = web.request("POST", "/login", data={"token": ADMIN})
    assert late.status_code == 429
    assert 0 < int(late.headers["retry-after"]) <= 60
    assert ask(web, ADMIN, "GET", "/api/v1/servers") == 429, "else a guess could be told from a wrong one"
    assert ask(web, tokens["read"], "GET", "/api/v1/servers") == 200, "it was used a moment ago"
    assert web.get("/healthz").status_code == 200
    now[0] += 60_000
    assert ask(web, ADMIN, "GET", "/api/v1/servers") == 200


def test_the_throttle_is_bounded_and_stands_a_clock_that_is_set_back() -> None:
    now = [NOW]
    throttle = Throttle(lambda: now[0])
    for number in range(MOST_ADDRESSES + 10):
        throttle.failed(str(number))
    assert len(throttle._failures) == MOST_ADDRESSES
    for _ in range(MOST_FAILURES):
        throttle.failed("a")
    assert throttle.wait_seconds("a") == 60
    assert throttle.wait_seconds("b") == 0
    now[0] -= 3_600_000
    assert throttle.wait_seconds("a") == 0, "nobody waits for an hour because of the clock"


def test_a_database_that_is_away_is_not_a_wrong_token(
    guarded: Web, monkeypatch: pytest.MonkeyPatch, tokens: dict[str, str]
) -> None:
    def away(*_: object) -> None:
        raise OperationalError("SELECT", {}, Exception("gone"))

    monkeypatch.setattr(DatabaseTokens, "by_digest", away)
    headers = {"authorization": f"Bearer {tokens['read']}"}
    answer = guarded.get("/api/v1/servers", headers=headers)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
    assert ask(guarded, ADMIN, "GET", "/healthz") == 200


@pytest.fixture
def command(store_url: str, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    """Runs `specscope token …` and returns its status and output."""

    def run(*arguments: str) -> tuple[int, str]:
        status = specscope(["token", *arguments, "--database", store_url])
        printed = capsys.readouterr()
        return status, printed.out + printed.err

    return run


def test_the_command_makes_lists_and_revokes(
    command: Callable[..., tuple[int, str]], store_engine: Engine, guarded: Web
) -> None:
    status, printed = command("create", "gpu1", "--scope", "ingest")
    token = printed.strip()
    assert status == 0
    assert ask(guarded, token, "POST", "/api/v1/ingest") == 422
    status, printed = command("list")
    assert status == 0
    assert re.search(r"^gpu1 +ingest +20\S+ +20\S+ +–$", printed, re.MULTILINE)
    assert token not in printed
    assert command("revoke", "gpu1") == (0, "gpu1: revoked\n")
    fresh = Web(create_app(Settings(token=ADMIN), engine=store_engine, clock=lambda: NOW))
    assert ask(fresh, token, "POST", "/api/v1/ingest") == 401
    assert command("revoke", "gpu1")[0] == 1
    assert command("create", "gpu1", "--scope", "read") == (
        1, "specscope token: there is a token 'gpu1' already (it may be revoked); choose another name\n",
    )  # fmt: skip
    assert command("create", "x", "--scope", "all")[0] == 2
