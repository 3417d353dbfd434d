"""Whatever a setting holds, it is refused when it is made, or can be sent: nothing fails for a day later."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from email import message_from_bytes, policy
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.server.alerts.delivery.test_mail import client_tls, server_tls
from tests.support.cards import NOW_MS, notification
from tests.support.mailbox import Mailbox
from tests.support.receiver import Receiver

from specscope_server.alerts.channels.contract import Context, HttpRequest, Message
from specscope_server.alerts.channels.kinds import kind_of
from specscope_server.alerts.channels.opening import FROM_FILE, Opened
from specscope_server.alerts.channels.validation import validated
from specscope_server.alerts.delivery.attempting import Attempted, attempt
from specscope_server.alerts.delivery.options import DeliveryOptions
from specscope_server.kit.errors import InvalidInput

CLIENT = client_tls()
TEXT = st.one_of(
    st.text(st.sampled_from("aZ09 :;,<>@\"'\\/{}()[]%?#=._-\r\n\t\0\x7f\x85\xa0é☃\u2028\u202e"), max_size=20),
    st.text(max_size=20),
)
CHEAP = settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
URL = "http://hook.example"
HTTP_FIELDS: dict[tuple[str, str], dict[str, Any]] = {
    ("webhook", "headers"): {"url": URL},
    ("webhook", "header name"): {"url": URL},
    ("webhook", "url"): {},
    ("alertmanager", "authorization"): {"url": URL},
    ("alertmanager_webhook", "authorization"): {"url": URL},
    ("slack", "mention"): {"url": URL},
    ("slack", "url"): {},
    ("pagerduty", "routing_key"): {"url": URL},
    ("template", "content_type"): {"url": URL, "body": "{}"},
    ("template", "headers"): {"url": URL, "body": "{}"},
}
MAIL = {
    "host": "mail.example",
    "sender": "specscope@example.org",
    "to": ["a@example.org"],
    "security": "none",
}


def tried(kind: str, values: dict[str, Any], port: int) -> Attempted | None:
    """Return what came of sending with these settings; None = they were refused."""
    found = kind_of(kind)
    try:
        config = validated(found, {"allow_private": True, "timeout_seconds": 5, **values}, "channel 'x'")
    except InvalidInput:
        return None
    options = DeliveryOptions(resolver=lambda *_: ["127.0.0.1"], tls=CLIENT)
    return attempt(Opened("x", FROM_FILE, found, config), notification(), "msg_1", 1, NOW_MS, options)


@pytest.fixture(scope="module")
def running() -> Iterator[Receiver]:
    with Receiver().running() as receiver:
        yield receiver


@pytest.fixture(scope="module")
def open_box() -> Iterator[Mailbox]:
    with Mailbox().running() as box:
        yield box


@pytest.fixture(scope="module")
def encrypted_box() -> Iterator[Mailbox]:
    with Mailbox(server_tls()).running() as box:
        yield box


def setting(field: str, text: str, port: int) -> dict[str, Any]:
    """Return the field with the text in it; addresses lead to the receiver."""
    at = f"{URL}:{port}"
    if field == "header name":
        return {"url": at, "headers": {text: "value"}}
    if field == "headers":
        return {"url": at, "headers": {"x-token": text}}
    return {"url": f"{at}/{text}"} if field == "url" else {"url": at, field: text}


@pytest.mark.parametrize(("kind", "field"), HTTP_FIELDS)
@CHEAP
@example("a\r\nx-evil: 1")
@example(" a")
@example("a ")
@example("é")
@given(TEXT)
def test_what_http_receivers_are_told_can_be_sent(
    running: Receiver, kind: str, field: str, text: str
) -> None:
    running.received.clear()
    done = tried(kind, {**HTTP_FIELDS[kind, field], **setting(field, text, running.port)}, running.port)
    if done is None:
        return
    assert done.outcome == "delivered", done
    assert "x-evil" not in running.received[-1].headers


@pytest.mark.parametrize("field", ["subject_prefix", "sender", "to", "host"])
@CHEAP
@example("[Specscope]\nBcc: x@evil.example")
@example("a\u2028b")
@example('é"<,;:@\\')
@example("a..b")
@given(TEXT)
def test_what_mail_servers_are_told_can_be_sent(open_box: Mailbox, field: str, text: str) -> None:
    value: Any = [f"{text}@example.org"] if field == "to" else text
    value = f"{text}@example.org" if field == "sender" else value
    open_box.messages.clear()
    done = tried("email", {**MAIL, "port": open_box.port, field: value}, open_box.port)
    if done is None:
        return
    assert done.outcome == "delivered", done
    message = message_from_bytes(open_box.messages[0], policy=policy.default)
    assert "bcc" not in message
    if field == "subject_prefix":
        assert " ".join(message["subject"].split()).startswith(" ".join(text.split()))


@pytest.mark.parametrize("field", ["user", "password"])
@CHEAP
@example("é")
@example("a\r\nRSET")
@given(TEXT)
def test_who_logs_in_can(encrypted_box: Mailbox, field: str, text: str) -> None:
    encrypted_box.said.clear()
    login = {"user": "specscope", "password": "s3cret", field: text, "security": "starttls"}
    done = tried("email", {**MAIL, **login, "port": encrypted_box.port}, encrypted_box.port)
    if done is None:
        return
    assert done.outcome == "delivered", done
    assert "RSET" not in encrypted_box.said


def broken(_config: Any, _notification: Any, _context: Context) -> list[Message]:
    raise ValueError("Bearer s3cret is no header")


def unsendable(config: Any, _notification: Any, _context: Context) -> list[Message]:
    return [HttpRequest(config.url, b"{}", {"x-token": "s3cret\n"})]


@pytest.mark.parametrize("render", [broken, unsendable])
def test_what_cannot_be_written_is_given_up_at_once_and_said(running: Receiver, render: Any) -> None:
    found = replace(kind_of("webhook"), render=render)
    config = validated(found, {"url": f"{URL}:{running.port}", "allow_private": True}, "channel 'x'")
    options = DeliveryOptions(resolver=lambda *_: ["127.0.0.1"])
    done = attempt(Opened("x", FROM_FILE, found, config), notification(), "msg_1", 1, NOW_MS, options)
    assert done.outcome == "permanent"
    assert done.reason
    assert "s3cret" not in done.reason
