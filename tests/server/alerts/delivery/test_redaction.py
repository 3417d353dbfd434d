"""Secrets of channels are in no log, no error and no row, also when everything goes wrong."""

from __future__ import annotations

from typing import Any

import pytest
import structlog
from sqlalchemy import Engine, text
from tests.server.alerts.delivery.desk import Desk
from tests.support.cards import notification
from tests.support.receiver import Receiver, answering, dying

from specscope_server.alerts.channels.contract import ChannelKind
from specscope_server.alerts.channels.kinds import kinds
from specscope_server.alerts.channels.secrets import secret_fields
from specscope_server.alerts.delivery.asking import try_channel

SECRET = "TOPSECRET0123456789abcdefABCDEFgh"
SCRIPTS = {"refused": answering(403, body=SECRET.encode()), "broken": answering(500), "dying": dying}


def entries(url: str) -> list[dict[str, Any]]:
    headers = {"Authorization": f"Bearer {SECRET}"}
    return [
        {"name": "slack", "kind": "slack", "url": f"{url}/services/{SECRET}"},
        {"name": "discord", "kind": "discord", "url": f"{url}/api/{SECRET}"},
        {"name": "pagerduty", "kind": "pagerduty", "url": url, "routing_key": SECRET},
        {"name": "webhook", "kind": "webhook", "url": url, "headers": headers},
        {"name": "template", "kind": "template", "url": url, "headers": headers, "body": "{{ oops }}"},
        {"name": "alertmanager", "kind": "alertmanager", "url": url, "authorization": SECRET},
    ]


@pytest.mark.parametrize("script", SCRIPTS)
def test_nothing_says_a_secret(sqlite_engine: Engine, script: str) -> None:
    desk = Desk(sqlite_engine)
    with Receiver(SCRIPTS[script]).running() as receiver, structlog.testing.capture_logs() as logs:
        desk.channels(*entries(receiver.url))
        for entry in entries(receiver.url):
            desk.tell(notification(), entry["name"])
            tried = try_channel(desk.engine, entry["name"], "api", desk.clock, desk.options)
            assert SECRET not in repr(tried)
        desk.deliver()
        assert any(SECRET in got.line + str(got.headers) + str(got.body) for got in receiver.received)
    assert logs
    assert SECRET not in repr(logs)
    assert SECRET not in everything(desk.engine)
    assert SECRET not in repr(desk.options)


def everything(engine: Engine) -> str:
    """Return all that is stored about channels and deliveries."""
    with engine.connect() as connection:
        tables = ("channel", "delivery", "delivery_attempt", "audit")
        return repr([connection.execute(text(f"SELECT * FROM {name}")).all() for name in tables])


@pytest.mark.parametrize("kind", kinds().values(), ids=kinds().keys())
def test_every_text_that_opens_something_is_a_secret(kind: ChannelKind) -> None:
    """A field whose name says credential must be of the type that is sealed."""
    names = [name for name in kind.config.model_fields if any(
        word in name for word in ("password", "secret", "key", "token", "authorization", "headers")
    )]  # fmt: skip
    assert set(names) <= set(secret_fields(kind.config))
