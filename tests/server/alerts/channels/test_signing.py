"""Signatures: those of the standardwebhooks library, in both directions, and vectors of the specification."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks.webhooks import Webhook, WebhookVerificationError
from tests.support.cards import notification

from specscope_server.alerts.channels.contract import Context, HttpRequest
from specscope_server.alerts.channels.webhook import signing
from specscope_server.alerts.channels.webhook.kind import Config, render

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OTHER = "whsec_" + base64.b64encode(bytes(range(32))).decode()
BYTES = st.binary(min_size=signing.SHORTEST_BYTES, max_size=signing.LONGEST_BYTES)


def test_the_vector_of_the_specification() -> None:
    """https://github.com/standard-webhooks/standard-webhooks: the example of its libraries' tests."""
    body = b'{"test": 2432232314}'
    signed = signing.signature(signing.key_of(SECRET), "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, body)
    assert signed == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@given(BYTES, st.text(max_size=200), st.integers(0, 2**33), st.text("abc_123", min_size=1, max_size=40))
def test_it_is_what_the_library_makes(key: bytes, body: str, seconds: int, webhook_id: str) -> None:
    at = datetime.fromtimestamp(seconds, UTC)
    body = body.encode("utf-8", "ignore").decode()
    theirs = Webhook(key).sign(webhook_id, at, body)
    assert signing.signature(key, webhook_id, seconds, body.encode()) == theirs


def sent(**settings: object) -> HttpRequest:
    now_ms = round(datetime.now(UTC).timestamp() * 1_000)  # the library checks against the real time
    config = Config.model_validate({"url": "https://hook.example/", **settings})
    (request,) = render(config, notification(), Context("oncall", "msg_1", now_ms))
    assert isinstance(request, HttpRequest)
    return request


def test_receivers_verify_with_either_secret_while_it_is_changed() -> None:
    request = sent(secret=SECRET, previous_secrets=[OTHER])
    for secret in (SECRET, OTHER):
        body = Webhook(secret).verify(request.body, dict(request.headers))
        assert body["type"] == "specscope.alert.firing"
    with pytest.raises(WebhookVerificationError):
        Webhook("whsec_" + base64.b64encode(bytes(32)).decode()).verify(request.body, dict(request.headers))


def test_a_body_that_was_changed_is_seen() -> None:
    request = sent(secret=SECRET)
    changed = request.body.replace(b"firing", b"ending")
    with pytest.raises(WebhookVerificationError):
        Webhook(SECRET).verify(changed, dict(request.headers))


def test_without_a_secret_there_is_an_id_and_no_signature() -> None:
    headers = sent().headers
    assert headers["webhook-id"] == "msg_1"
    assert "webhook-signature" not in headers


def test_the_body_follows_the_specification() -> None:
    body = json.loads(sent(secret=SECRET).body)
    assert set(body) == {"type", "timestamp", "data"}
    (alert,) = body["data"]["alerts"]
    assert alert["starts"] == "2026-03-01T11:50:00.000Z"
    assert alert["values"][0]["lower"] == 1.01


@pytest.mark.parametrize(
    "secret", ["whsec_short", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_%%%%", "whsec_" + "A" * 200, ""]
)
def test_a_secret_that_is_none_is_refused_without_being_repeated(secret: str) -> None:
    with pytest.raises(ValueError, match=r"openssl rand|is not base64|write whsec_") as error:
        sent(secret=secret)
    assert len(secret) < 6 or secret not in str(error.value)
