"""Webhook: the notification as it is, as JSON, signed."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from pydantic import AfterValidator, Field, SecretStr

from specscope_server.alerts.channels.contract import (
    ChannelConfig,
    ChannelKind,
    Context,
    HttpRequest,
    Message,
)
from specscope_server.alerts.channels.fields import Headers, Url, is_reference
from specscope_server.alerts.channels.notification import Card, Notification
from specscope_server.alerts.channels.webhook import signing
from specscope_server.alerts.channels.words import shorten, when, within

MAX_BODY_BYTES = 20_000
"""What Standard Webhooks asks for."""
SHAPES = ((2_000, 50), (300, 20), (60, 8))
"""(characters of a text, entries of a list) of a card: the first that lets one card fit."""
_TIMES = ("starts_ms", "ends_ms", "window_from_ms", "window_to_ms")


def _signing(value: SecretStr) -> SecretStr:
    text = value.get_secret_value()
    if not is_reference(text):
        signing.key_of(text)
    return value


SigningSecret = Annotated[SecretStr, AfterValidator(_signing)]


class Config(ChannelConfig):
    """Settings."""

    url: Url = Field(description="Where to POST. Shown to readers: put tokens into `headers`.")
    secret: SigningSecret | None = Field(
        None, description="Signs each message: `whsec_` and the base64 of 24 to 64 random bytes."
    )
    previous_secrets: list[SigningSecret] = Field(
        default_factory=list,
        max_length=5,
        description="Secrets that sign too, while receivers change to the new one.",
    )
    headers: Headers = Field(default_factory=dict, description="More headers, e.g. `Authorization`.")


def render(config: Config, notification: Notification, context: Context) -> list[Message]:
    """Return one POST; what does not fit into `MAX_BODY_BYTES` is cut with a mark or counted."""
    body = next(
        (body for shape in SHAPES if len(body := _fitting(notification, *shape)) <= MAX_BODY_BYTES),
        _fitting(notification, *SHAPES[-1]),
    )
    secrets = [config.secret] if config.secret else []
    keys = [signing.key_of(each.get_secret_value()) for each in (*secrets, *config.previous_secrets)]
    headers = {name: text.get_secret_value() for name, text in config.headers.items()}
    headers |= signing.headers(keys, context.webhook_id, context.now_ms // 1_000, body)
    return [HttpRequest(config.url, body, {**headers, "content-type": "application/json"})]


def _fitting(notification: Notification, characters: int, entries: int) -> bytes:
    cards: list[dict[str, Any]] = [_card(card, characters, entries) for card in notification.alerts]
    shown, left_out = within(cards, lambda some, left: len(_body(notification, some, left)) <= MAX_BODY_BYTES)
    return _body(notification, shown, left_out)


def _body(notification: Notification, cards: list[dict[str, Any]], left_out: int) -> bytes:
    data = {
        "status": notification.status,
        "severity": notification.severity,
        "cause": notification.cause,
        "group_key": notification.group_key,
        "group_labels": notification.group_labels,
        "external_url": notification.external_url,
        "alerts": cards,
        "truncated_alerts": notification.truncated_alerts + left_out,
    }
    kind = "test" if notification.cause == "test" else notification.status
    message = {"type": f"specscope.alert.{kind}", "timestamp": when(notification.made_ms), "data": data}
    return msgspec.json.encode(message)


def _card(card: Card, characters: int, entries: int) -> dict[str, Any]:
    """Return the card with times as in the rest of the API."""
    built: dict[str, Any] = _cut(msgspec.to_builtins(card), characters, entries)
    for name in _TIMES:
        at_ms = built.pop(name)
        built[name.removesuffix("_ms")] = None if at_ms is None else when(at_ms)
    for change in built["changes"]:
        change["at"] = when(change.pop("at_ms"))
    figure = built["figure"]
    if figure:
        figure |= {"from": when(figure.pop("from_ms")), "to": when(figure.pop("to_ms"))}
    return built


def _cut(value: Any, characters: int, entries: int) -> Any:
    """Return JSON with long texts and lists cut; a card's own fields are never left out."""
    if isinstance(value, str):
        return shorten(value, characters)
    if isinstance(value, dict):
        kept = list(value.items())[: max(entries, len(Card.__struct_fields__))]
        return {shorten(key, characters): _cut(inner, characters, entries) for key, inner in kept}
    if isinstance(value, list):
        return [_cut(inner, characters, entries) for inner in value[:entries]]
    return value


KIND = ChannelKind(
    name="webhook",
    title="Webhook",
    meaning="POSTs the whole incident card as JSON, signed as Standard Webhooks.",
    config=Config,
    render=render,
    takes_acknowledgement=True,
)
