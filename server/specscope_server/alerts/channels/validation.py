"""Settings of a channel, checked: wrong ones are named with the reason, and never repeated when secret."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from specscope_server.alerts.channels.contract import ChannelConfig, ChannelKind
from specscope_server.kit.errors import InvalidInput
from specscope_server.kit.names import did_you_mean

MAX_NAME = 60


def validated(kind: ChannelKind, values: Mapping[str, Any], where: str) -> ChannelConfig:
    """Return the settings; raise `InvalidInput` that names each wrong field."""
    try:
        return kind.config.model_validate(dict(values))
    except ValidationError as error:
        wrong = [_explain(kind, entry) for entry in error.errors(include_input=False, include_url=False)]
        raise InvalidInput(
            f"{where}: " + "; ".join(f"{each['location']}: {each['reason']}" for each in wrong), wrong
        ) from None


def check_name(name: str) -> str:
    """Return the name of a channel. Raises `InvalidInput`."""
    if not name.strip() or len(name) > MAX_NAME or not name.isprintable() or "/" in name:
        raise InvalidInput(
            f"{name[:60]!r} is no name for a channel; use 1 to {MAX_NAME} printable characters without /"
        )
    return name


def _explain(kind: ChannelKind, entry: Mapping[str, Any]) -> dict[str, str]:
    place = ".".join(str(part) for part in entry["loc"]) or "settings"
    reason = str(entry["msg"]).removeprefix("Value error, ")
    field = str(entry["loc"][0]) if entry["loc"] else ""
    if entry["type"] == "extra_forbidden":
        hint = did_you_mean(field, kind.config.model_fields)
        reason = f"a {kind.name} has no such setting.{hint} It has: {', '.join(kind.config.model_fields)}"
    elif entry["type"] == "missing":
        reason = "is missing; a channel of this kind needs it"
    return {"location": place[:200], "reason": reason, "input": ""}
