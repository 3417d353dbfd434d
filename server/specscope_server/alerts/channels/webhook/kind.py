"""Webhook: the notification as it is, as JSON, signed."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

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
from specscope_server.alerts.channels.words import roomiest, shorten, when

MAX_BODY_BYTES = 20_000
"""What Standard Webhooks asks for."""
MAX_CARDS = 10
Shape: TypeAlias = tuple[int, int, int]
SHAPES: tuple[Shape, ...] = ((2_000, 50, 50), (300, 20, 24), (60, 8, 24), (24, 1, 4))
"""(bytes of a text, entries of a list, of a map) of a card. The roomiest in which all cards fit is taken; in
the last one `MAX_CARDS` do, whatever they say."""
GROUP: Shape = (60, 0, 20)
_WHOLE = frozenset({"alert_id", "fingerprint", "rule", "status", "severity"})
"""What names an alert is never cut."""
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
    """Return one POST; texts that do not fit into `MAX_BODY_BYTES` are cut with a mark."""
    body = roomiest(
        notification.alerts, SHAPES, lambda some, shape, left: _body(notification, some, shape, left),
        lambda written: len(written) <= MAX_BODY_BYTES,
    )  # fmt: skip
    secrets = [config.secret] if config.secret else []
    keys = [signing.key_of(each.get_secret_value()) for each in (*secrets, *config.previous_secrets)]
    headers = {name: text.get_secret_value() for name, text in config.headers.items()}
    headers |= signing.headers(keys, context.webhook_id, context.now_ms // 1_000, body)
    return [HttpRequest(config.url, body, {**headers, "content-type": "application/json"})]


def _body(notification: Notification, cards: list[Card], shape: Shape, left_out: int) -> bytes:
    known = set(notification.known)
    data = {
        "status": notification.status,
        "severity": notification.severity,
        "cause": notification.cause,
        "group_key": notification.group_key,
        "group_labels": _cut(notification.group_labels, max(shape, GROUP)),
        "external_url": notification.external_url,
        "alerts": [{**_card(card, shape), "is_known": card.alert_id in known} for card in cards],
        "truncated_alerts": notification.truncated_alerts + left_out,
        "part": notification.part,
        "parts": notification.parts,
    }
    kind = "test" if notification.cause == "test" else notification.status
    message = {"type": f"specscope.alert.{kind}", "timestamp": when(notification.made_ms), "data": data}
    return msgspec.json.encode(message)


def _card(card: Card, shape: Shape) -> dict[str, Any]:
    """Return the card with times as in the rest of the API."""
    built: dict[str, Any] = {
        name: value if name in _WHOLE else _fields(value, shape) if name == "figure" else _cut(value, shape)
        for name, value in msgspec.to_builtins(card).items()
    }
    for name in _TIMES:
        at_ms = built.pop(name)
        built[name.removesuffix("_ms")] = None if at_ms is None else when(at_ms)
    for change in built["changes"]:
        change["at"] = when(change.pop("at_ms"))
    figure = built["figure"]
    if figure:
        figure |= {"from": when(figure.pop("from_ms")), "to": when(figure.pop("to_ms"))}
    return built


def _cut(value: Any, shape: Shape) -> Any:
    """Return JSON with long texts, lists and maps cut."""
    most, entries, pairs = shape
    if isinstance(value, str):
        return _short(value, most)
    if isinstance(value, dict):
        return {_short(key, most): _cut(inner, shape) for key, inner in list(value.items())[:pairs]}
    if isinstance(value, list):
        return [_fields(inner, shape) for inner in value[:entries]]
    return value


def _fields(entry: Any, shape: Shape) -> Any:
    """Return a value, change, link or figure with long texts cut: it keeps its fields."""
    if isinstance(entry, dict):
        return {name: _cut(value, shape) for name, value in entry.items()}
    return _cut(entry, shape)


def _short(text: str, most: int) -> str:
    """Return the text in at most ``most`` bytes of JSON; a character takes up to six."""
    kept = shorten(text, most)
    return kept if len(msgspec.json.encode(kept)) - 2 <= most else shorten(text, most // 6)


KIND = ChannelKind(
    name="webhook",
    title="Webhook",
    meaning="POSTs the whole incident card as JSON, signed as Standard Webhooks.",
    config=Config,
    render=render,
    most_cards=MAX_CARDS,
    takes_acknowledgement=True,
)
