"""E-mail against a mail server that does as it is told."""

from __future__ import annotations

import ssl
from email import message_from_bytes, policy
from typing import Any

import pytest
import trustme
from tests.support.cards import NOW_MS, notification
from tests.support.mailbox import Mailbox

from specscope_server.alerts.channels.contract import Context, Delivered, Mail, Permanent, Retry, Verdict
from specscope_server.alerts.channels.email.kind import Config, render
from specscope_server.alerts.delivery.addresses import AddressPolicy
from specscope_server.alerts.delivery.http import Lost
from specscope_server.alerts.delivery.mail import send_mail

AUTHORITY = trustme.CA()
NAME = "mail.example"


def server_tls(name: str = NAME) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    AUTHORITY.issue_cert(name).configure_cert(context)
    return context


def client_tls() -> ssl.SSLContext:
    context = ssl.create_default_context()
    AUTHORITY.configure_trust(context)
    return context


def send(box: Mailbox, *, private: bool = True, **settings: Any) -> tuple[Verdict, int | None]:
    fields = {"host": NAME, "port": box.port, "sender": "specscope@example.org", "to": ["a@example.org"]}
    config = Config.model_validate({**fields, **settings})
    (mail,) = render(config, notification(), Context("mail", "msg_1", NOW_MS))
    assert isinstance(mail, Mail)
    policy = AddressPolicy(allow_private=private)
    return send_mail(mail, policy, 5, resolver=lambda *_: ["127.0.0.1"], tls=client_tls())


LOGIN = {"user": "specscope", "password": "s3cret"}


@pytest.mark.parametrize("security", ["starttls", "tls"])
def test_it_is_sent_encrypted(security: str) -> None:
    box = Mailbox(server_tls(), is_tls_from_the_start=security == "tls")
    with box.running():
        assert send(box, security=security, **LOGIN) == (Delivered(), 250)
    message = message_from_bytes(box.messages[0], policy=policy.default)
    assert message["To"] == "a@example.org"
    assert any(line.startswith("AUTH") for line in box.said)
    assert not any(line.startswith(("AUTH", "MAIL")) for line in box.said_in_clear)


def test_a_server_without_starttls_gets_nothing() -> None:
    box = Mailbox(server_tls(), offers_starttls=False)
    with box.running():
        verdict, _ = send(box, **LOGIN)
    assert isinstance(verdict, Permanent)
    assert box.messages == []
    assert not any(line.startswith("AUTH") for line in box.said)


@pytest.mark.parametrize("security", ["starttls", "tls"])
def test_a_certificate_of_another_name_is_refused(security: str) -> None:
    box = Mailbox(server_tls("other.example"), is_tls_from_the_start=security == "tls")
    with box.running(), pytest.raises(Lost, match="certificate is not valid"):
        send(box, security=security, **LOGIN)
    assert box.messages == []


@pytest.mark.parametrize(
    ("word", "answer", "kind"),
    [
        ("MAIL", "451 later", Retry),
        ("RCPT", "450 later", Retry),
        ("RCPT", "550 nobody", Permanent),
        ("DATA", "452 full", Retry),
        ("MESSAGE", "554 no", Permanent),
        ("MESSAGE", "421 later", Retry),
        ("AUTH", "535 wrong", Permanent),
        ("EHLO", "421 busy", Retry),
    ],
)
def test_transient_and_permanent_answers(word: str, answer: str, kind: type[Verdict]) -> None:
    box = Mailbox(server_tls(), answers={word: answer} | ({"HELO": answer} if word == "EHLO" else {}))
    with box.running():
        verdict, code = send(box, **LOGIN)
    assert isinstance(verdict, kind)
    assert code == int(answer[:3])
    assert "s3cret" not in str(verdict)


def test_one_who_takes_the_message_and_dies_may_have_it() -> None:
    box = Mailbox(server_tls(), answers={"MESSAGE": ""})
    with box.running(), pytest.raises(Lost) as lost:
        send(box)
    assert lost.value.was_sent
    assert len(box.messages) == 1


def test_one_who_dies_before_cannot_have_it() -> None:
    box = Mailbox(server_tls(), answers={"STARTTLS": ""})
    with box.running(), pytest.raises(Lost) as lost:
        send(box)
    assert not lost.value.was_sent


def test_a_private_mail_server_needs_leave() -> None:
    box = Mailbox(server_tls())
    with box.running(), pytest.raises(Lost, match="private"):
        send(box, private=False)
    assert box.said == []
