"""Channels and deliveries over REST."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from pydantic import SecretStr
from sqlalchemy import Engine
from tests.server.client import Web
from tests.support.cards import NOW_MS, notification
from tests.support.receiver import Receiver, answering

from specscope_server.alerts.delivery.outbox import enqueue
from specscope_server.app import create_app
from specscope_server.kit.web.scopes import Scope
from specscope_server.settings import Settings
from specscope_server.store.engine import write_transaction
from specscope_server.store.tokens import create_token

TOKEN = "the token of the operator"
SIGNING = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


class Channels:
    """The application over a store, with a key for secrets."""

    def __init__(self, engine: Engine, **settings: Any) -> None:
        fields = {"secret_key": SecretStr("k" * 40), "token": SecretStr(TOKEN), "alerts_allow_private": True}
        app = create_app(Settings(**{**fields, **settings}), engine=engine, clock=lambda: NOW_MS)
        self.web, self.engine = Web(app), engine

    def ask(self, method: str, path: str, *, token: str = TOKEN, **options: Any) -> httpx.Response:
        headers = {"Authorization": f"Bearer {token}"}
        return self.web.request(method, f"/api/v1/alerts{path}", headers=headers, **options)

    def make(self, url: str, name: str = "oncall", **settings: Any) -> httpx.Response:
        values = {"url": url, "allow_private": True, "secret": SIGNING, **settings}
        return self.ask("POST", "/channels", json={"name": name, "kind": "webhook", "settings": values})


@pytest.fixture
def channels(sqlite_engine: Engine) -> Channels:
    return Channels(sqlite_engine)


@pytest.fixture
def channels_anywhere(store_engine: Engine) -> Channels:
    return Channels(store_engine)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver().running() as running:
        yield running


def test_from_making_to_removing(channels_anywhere: Channels, receiver: Receiver) -> None:
    ask = channels_anywhere.ask
    made = channels_anywhere.make(receiver.url)
    assert made.status_code == 200, made.text
    assert made.json()["settings"]["secret"] == "(secret)"
    assert SIGNING not in made.text
    assert ask("POST", "/channels/oncall/test").json()["outcome"] == "delivered"
    settings = {**made.json()["settings"], "per_minute": 7}
    changed = ask("PUT", "/channels/oncall", json={"kind": "webhook", "settings": settings})
    assert changed.json()["settings"]["per_minute"] == 7, changed.text
    assert ask("POST", "/channels/oncall/test").json()["status_code"] == 200
    assert "webhook-signature" in receiver.received[1].headers  # the secret stayed
    (item,) = ask("GET", "/channels").json()["channels"]
    assert (item["name"], item["waiting"], item["last_sent"]) == ("oncall", 0, "2026-03-01T12:00:00.000Z")
    assert not ask("POST", "/channels/oncall/disable").json()["enabled"]
    assert ask("POST", "/channels/oncall/enable").json()["enabled"]
    assert ask("DELETE", "/channels/oncall").json() == {"channels": []}
    assert ask("GET", "/channels/oncall").status_code == 404
    actions = [entry["action"] for entry in ask("GET", "/audit").json()["entries"]]
    assert actions[::-1] == [
        "channel.create", "channel.change", "channel.disable", "channel.enable", "channel.remove",
    ]  # fmt: skip
    assert SIGNING not in ask("GET", "/audit").text


def test_the_log_and_replay(channels: Channels, receiver: Receiver) -> None:
    receiver.script = answering(400, body=b"the receiver's own words")
    channels.make(receiver.url)
    number = channels.ask("POST", "/channels/oncall/test").json()["delivery_id"]
    detail = channels.ask("GET", f"/deliveries/{number}").json()
    assert (detail["status"], detail["attempt_log"][0]["status_code"]) == ("failed", 400)
    assert len(detail["body_sha256"]) == 64
    assert "own words" not in str(detail)
    assert channels.ask("POST", f"/deliveries/{number}/replay").json() == {"id": number, "status": "pending"}
    assert channels.ask("POST", f"/deliveries/{number}/replay").status_code == 422
    assert channels.ask("POST", "/deliveries/999/replay").status_code == 404


def test_the_log_in_pages_and_as_csv(channels: Channels) -> None:
    with write_transaction(channels.engine) as connection:
        for number in range(5):
            enqueue(connection, "a" if number % 2 else "b", notification(), NOW_MS + number)
    first = channels.ask("GET", "/deliveries", params={"limit": 3}).json()
    rest = channels.ask("GET", "/deliveries", params={"limit": 3, "cursor": first["next_cursor"]}).json()
    seen = [each["id"] for page in (first, rest) for each in page["deliveries"]]
    assert seen == sorted(seen, reverse=True)
    assert (len(seen), rest["next_cursor"]) == (5, None)
    only = channels.ask("GET", "/deliveries", params={"channel": "a", "status": "pending"}).json()
    assert {each["channel"] for each in only["deliveries"]} == {"a"}
    assert channels.ask("GET", "/deliveries", params={"status": "lost"}).status_code == 422
    text = channels.ask("GET", "/deliveries", params={"format": "csv"}).text
    assert text.splitlines()[0].startswith("id,webhook_id,channel")


def test_readers_see_and_may_not_change(channels: Channels, receiver: Receiver) -> None:
    channels.make(receiver.url)
    reader = create_token(channels.engine, "reader", Scope.READ, NOW_MS)
    assert channels.ask("GET", "/channels", token=reader).status_code == 200
    for method, path in (
        ("POST", "/channels"), ("PUT", "/channels/oncall"), ("DELETE", "/channels/oncall"),
        ("POST", "/channels/oncall/test"), ("POST", "/channels/oncall/enable"),
        ("POST", "/deliveries/1/replay"),
    ):  # fmt: skip
        assert channels.ask(method, path, token=reader, json={}).status_code == 403
    assert receiver.received == []


def test_private_addresses_need_the_operator(sqlite_engine: Engine, receiver: Receiver) -> None:
    channels = Channels(sqlite_engine, alerts_allow_private=False)
    refused = channels.make(receiver.url)
    assert refused.status_code == 422
    assert "only the operator" in refused.json()["detail"]
    assert channels.make(receiver.url, allow_private=False).status_code == 200
    tried = channels.ask("POST", "/channels/oncall/test").json()
    assert (tried["outcome"], receiver.connections) == ("retry", 0)
    assert "private" in tried["reason"]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"name": "a/b", "kind": "webhook", "settings": {}}, "no name for a channel"),
        ({"name": "a", "kind": "webhok", "settings": {}}, "Did you mean 'webhook'"),
        ({"name": "a", "kind": "webhook", "settings": {}}, "url: is missing"),
        ({"name": "a", "kind": "webhook", "settings": {"url": "https://x.example", "secret": "abc"}},
         "whsec_"),
        ({"name": "a", "kind": "webhook", "settings": {"url": "gopher://x"}}, "not the URL"),
        ({"name": "a", "kind": "webhook", "settings": {"url": "https://x.example", "headers": {"Host": "y"}}},
         "cannot be set"),
        ({"name": "a", "kind": "email", "settings": {"host": "h", "sender": "a\nb@x.example", "to": ["x"]}},
         "no e-mail address"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(channels: Channels, body: dict[str, Any], reason: str) -> None:
    answer = channels.ask("POST", "/channels", json=body)
    assert answer.status_code == 422
    assert reason in answer.json()["detail"]


def test_kinds_say_their_settings(channels: Channels) -> None:
    found = {kind["name"]: kind for kind in channels.ask("GET", "/channel-kinds").json()["kinds"]}
    fields = {field["name"]: field for field in found["email"]["fields"]}
    assert fields["security"]["one_of"] == ["starttls", "tls", "none"]
    assert fields["password"]["is_secret"]
    assert (fields["port"]["default"], fields["host"]["is_required"]) == (587, True)
    assert all(field["meaning"] for kind in found.values() for field in kind["fields"])
