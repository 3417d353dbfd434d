"""Template: a body that the operator writes, for a receiver that none of the other kinds fits."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from jinja2 import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment
from pydantic import AfterValidator, Field

from specscope_server.alerts.channels.contract import (
    ChannelConfig,
    ChannelKind,
    Context,
    HttpRequest,
    Message,
)
from specscope_server.alerts.channels.fields import Headers, Url
from specscope_server.alerts.channels.notification import Notification
from specscope_server.alerts.channels.template.rendering import rendered
from specscope_server.alerts.channels.words import headline
from specscope_server.kit.errors import InvalidInput

MAX_TEMPLATE = 16_384
MAX_CARDS = 20
JSON = "application/json"


def _template(text: str) -> str:
    try:
        ImmutableSandboxedEnvironment(autoescape=False).parse(text)
    except TemplateError as error:
        raise ValueError(f"is no Jinja template: {error}") from None
    except RecursionError:
        raise ValueError("is nested too deeply; write it flatter") from None
    return text


class Config(ChannelConfig):
    """Settings."""

    url: Url = Field(description="Where it is sent. Shown to readers: put tokens into `headers`.")
    method: Literal["POST", "PUT", "PATCH"] = Field("POST", description="Of the request.")
    content_type: str = Field(
        JSON, max_length=100, pattern=r"^[A-Za-z0-9.+-]+/[A-Za-z0-9.+-]+(; ?charset=[A-Za-z0-9-]+)?$",
        description=f"Of the body. With `{JSON}` the body must be JSON.",
    )  # fmt: skip
    headers: Headers = Field(default_factory=dict, description="More headers, e.g. `Authorization`.")
    body: Annotated[str, AfterValidator(_template)] = Field(
        max_length=MAX_TEMPLATE,
        description="Jinja template. Knows `notification` (with `alerts`, `status` …), `headline` and "
        "`channel`; `{{ x | tojson }}` writes JSON safely.",
    )


def render(config: Config, notification: Notification, context: Context) -> list[Message]:
    """Return one request. Raises `InvalidInput` when the template fails or takes or writes too much."""
    known = {"notification": msgspec.to_builtins(notification), "headline": headline(notification)}
    body = rendered(config.body, {**known, "channel": context.channel})
    if config.content_type.startswith(JSON):
        _check_json(body)
    headers = {name: text.get_secret_value() for name, text in config.headers.items()}
    return [HttpRequest(config.url, body, {**headers, "content-type": config.content_type}, config.method)]


def _check_json(body: bytes) -> None:
    try:
        msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(
            f"the template does not write JSON ({error}); use {{{{ … | tojson }}}} for each value"
        ) from None


KIND = ChannelKind(
    name="template",
    title="Template",
    meaning="Sends a body that you write as a Jinja template.",
    config=Config,
    render=render,
    most_cards=MAX_CARDS,
)
