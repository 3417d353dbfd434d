"""One request to a receiver that is slow, broken or hostile."""

from __future__ import annotations

import gzip
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest
import trustme
from tests.support.receiver import OK, Received, Receiver, answering, cut_after, dying

from specscope_server.alerts.channels.contract import HttpRequest
from specscope_server.alerts.delivery.addresses import AddressPolicy
from specscope_server.alerts.delivery.http import MAX_BODY_BYTES, Lost, Unsendable, send

PRIVATE = AddressPolicy(allow_private=True)
BODY = b'{"a": 1}'


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver().running() as running:
        yield running


def request(receiver: Receiver, host: str = "127.0.0.1", path: str = "/hook") -> HttpRequest:
    scheme = "https" if receiver.tls else "http"
    return HttpRequest(f"{scheme}://{host}:{receiver.port}{path}", BODY, {"content-type": "application/json"})


def test_the_request_arrives_as_it_is(receiver: Receiver) -> None:
    answer = send(request(receiver), PRIVATE, 5)
    assert answer.status == 200
    (got,) = receiver.received
    assert (got.line, got.body) == ("POST /hook HTTP/1.1", BODY)
    assert got.headers["content-length"] == str(len(BODY))
    assert got.headers["accept-encoding"] == "identity"


def test_a_redirect_is_not_followed(receiver: Receiver) -> None:
    with Receiver().running() as other:
        receiver.script = answering(307, f"Location: {other.url}/\r\n")
        assert send(request(receiver), PRIVATE, 5).status == 307
        assert other.connections == 0


def test_proxies_of_the_environment_are_not_used(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    with Receiver().running() as proxy:
        for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        assert send(request(receiver), PRIVATE, 5).status == 200
        assert proxy.connections == 0


def test_a_private_address_is_not_connected_to(receiver: Receiver) -> None:
    with pytest.raises(Lost, match="it is private") as lost:
        send(request(receiver), AddressPolicy(), 5)
    assert not lost.value.was_sent
    assert receiver.connections == 0


@pytest.mark.parametrize("host", ["localhost", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]"])
def test_nor_under_another_spelling(receiver: Receiver, host: str) -> None:
    with pytest.raises(Lost):
        send(request(receiver, host), AddressPolicy(), 5)
    assert receiver.connections == 0


def test_a_name_that_leads_elsewhere_a_moment_later_changes_nothing(receiver: Receiver) -> None:
    """DNS rebinding: the second answer would be loopback. Only the checked address is ever connected to."""
    asked: list[str] = []

    def rebinding(host: str, _port: int) -> list[str]:
        asked.append(host)
        return ["192.0.2.1"] if len(asked) == 1 else ["127.0.0.1"]

    with pytest.raises(Lost, match="may not connect"):
        send(request(receiver, "evil.example"), AddressPolicy(), 2, resolver=rebinding)
    assert (asked, receiver.connections) == (["evil.example"], 0)


def test_the_address_that_was_checked_is_the_one_that_is_used(receiver: Receiver) -> None:
    answers = iter([["127.0.0.1"], ["203.0.113.9"]])
    answer = send(request(receiver, "hook.example"), PRIVATE, 5, resolver=lambda *_: next(answers))
    assert answer.status == 200
    assert receiver.received[0].headers["host"] == f"hook.example:{receiver.port}"
    assert next(answers) == ["203.0.113.9"]  # the name was asked for once


def test_one_bad_address_among_good_ones_refuses_the_name(receiver: Receiver) -> None:
    policy = AddressPolicy(allow_private=True)
    with pytest.raises(Lost, match="metadata"):
        send(request(receiver, "x.example"), policy, 5, resolver=lambda *_: ["127.0.0.1", "169.254.169.254"])
    assert receiver.connections == 0


@pytest.mark.parametrize("count", range(len(OK)))
def test_an_answer_that_is_cut_anywhere(receiver: Receiver, count: int) -> None:
    """Before the head is whole nobody knows what became of it; afterwards the status has been said."""
    receiver.script = cut_after(count)
    if count >= len(OK) - 2:
        with suppress(Lost):  # the reset may overtake the head on its way
            assert send(request(receiver), PRIVATE, 5).status == 200
        return
    with pytest.raises(Lost) as lost:
        send(request(receiver), PRIVATE, 5)
    assert lost.value.was_sent


def test_a_request_that_is_reset_at_each_byte(receiver: Receiver) -> None:
    receiver.reset_after = 10_000
    send(request(receiver), PRIVATE, 5)
    got = receiver.received[0]
    size = (
        len(got.body) + len(f"{got.line}\r\n") + sum(len(n) + len(v) + 4 for n, v in got.headers.items()) + 2
    )
    for count in range(size):
        receiver.reset_after = count
        with pytest.raises(Lost):
            send(request(receiver), PRIVATE, 5)
    assert len(receiver.received) == 1


def test_one_who_takes_it_and_dies_may_have_it(receiver: Receiver) -> None:
    receiver.script = dying
    with pytest.raises(Lost) as lost:
        send(request(receiver), PRIVATE, 5)
    assert lost.value.was_sent
    assert len(receiver.received) == 1


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(Lost, match="does not take connections") as lost:
        send(HttpRequest(f"http://127.0.0.1:{port}/", BODY), PRIVATE, 5)
    assert not lost.value.was_sent


def test_a_gzip_bomb_is_neither_read_nor_unpacked(receiver: Receiver) -> None:
    bomb = gzip.compress(bytes(20_000_000))
    receiver.script = answering(200, "Content-Encoding: gzip\r\n", bomb)
    answer = send(request(receiver), PRIVATE, 5)
    assert answer.status == 200
    assert len(answer.body) <= MAX_BODY_BYTES


def test_a_body_without_end_is_not_read(receiver: Receiver) -> None:
    def endless(connection: socket.socket, _: Received) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            connection.sendall(b"x" * 65_536)

    receiver.script = endless
    assert len(send(request(receiver), PRIVATE, 5).body) == MAX_BODY_BYTES


def test_huge_headers_are_not_read(receiver: Receiver) -> None:
    receiver.script = answering(200, f"X: {'a' * 1_000_000}\r\n")
    with pytest.raises(Lost, match="not HTTP, too large"):
        send(request(receiver), PRIVATE, 5)


def test_one_who_drips_bytes_is_left_in_time(receiver: Receiver) -> None:
    def dripping(connection: socket.socket, _: Received) -> None:
        for byte in OK * 100:
            connection.sendall(bytes([byte]))
            time.sleep(0.02)  # the far side: a slow receiver

    receiver.script = dripping
    began = time.monotonic()
    with pytest.raises(Lost, match="in time"):
        send(request(receiver), PRIVATE, 0.3)
    assert time.monotonic() - began < 30  # all of it takes more than a minute


def test_a_name_that_is_not_resolved_in_time(receiver: Receiver) -> None:
    def hanging(_host: str, _port: int) -> list[str]:
        time.sleep(1)  # the far side: a name server that does not answer
        return ["127.0.0.1"]

    with pytest.raises(Lost, match="not resolved in time"):
        send(request(receiver, "slow.example"), PRIVATE, 0.1, resolver=hanging)


def at_loopback(_host: str, _port: int) -> list[str]:
    return ["127.0.0.1"]


def test_certificates_are_checked_for_the_name() -> None:
    authority = trustme.CA()
    receiver = Receiver(tls=_server_context(authority, "hook.example"))
    trusting = _client_context(authority)
    with receiver.running():
        good = request(receiver, "hook.example")
        assert send(good, PRIVATE, 5, tls=trusting, resolver=at_loopback).status == 200
        for host, tls in (("other.example", trusting), ("hook.example", None)):
            with pytest.raises(Lost, match="certificate is not valid"):
                send(request(receiver, host), PRIVATE, 5, tls=tls, resolver=at_loopback)
    assert len(receiver.received) == 1


def _server_context(authority: trustme.CA, name: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(context)
    return context


def _client_context(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


def test_a_header_cannot_bring_in_another_one(receiver: Receiver) -> None:
    bad = HttpRequest(request(receiver).url, BODY, {"x-a": "1\r\nx-b: 2"})
    with pytest.raises(Unsendable):
        send(bad, PRIVATE, 5)
    assert receiver.received == []


def test_the_url_is_in_no_error_and_no_repr(receiver: Receiver) -> None:
    secret = request(receiver, path="/services/T0/SECRET")
    assert "SECRET" not in repr(secret)
    with pytest.raises(Lost) as lost:
        send(secret, AddressPolicy(), 5)
    assert "SECRET" not in str(lost.value)
