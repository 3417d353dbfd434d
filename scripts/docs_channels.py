"""The page of channel settings, from the kinds' own descriptions."""

from __future__ import annotations

import json
from typing import Any

from docs_markdown import code, page, table

from specscope_server.alerts.channels.contract import ChannelConfig
from specscope_server.alerts.channels.kinds import kinds
from specscope_server.alerts.channels.listing import fields_of
from specscope_server.alerts.channels.schemas import KindField

INTRODUCTION = """
Settings of each kind of channel, in the alerts' file (`channels:`) and over REST (`settings`).
[Alert channels](../guide/alert-channels.md) explains them by example. An unknown setting is an error.

A *secret* is never shown again, and may be `${env:NAME}` or `file:/PATH` instead of the text itself.
"""


def channels_page() -> str:
    """Return the page."""
    common = fields_of(ChannelConfig)
    sections = [f"## Every kind\n\n{_table(common)}"]
    shared = {field.name for field in common}
    for kind in kinds().values():
        own = [field for field in fields_of(kind.config) if field.name not in shared]
        sections.append(f"## `{kind.name}`\n\n{kind.meaning}\n\n{_table(own)}")
    return page("Channels of alerts", INTRODUCTION, sections)


def _table(fields: list[KindField]) -> str:
    rows = [[code(field.name), _type(field), _default(field), field.meaning] for field in fields]
    return table(["setting", "type", "default", "meaning"], rows)


def _type(field: KindField) -> str:
    words: dict[str, str] = {"truth": "`true` or `false`"}
    text = " or ".join(code(each) for each in field.one_of or ()) or words.get(field.type, field.type)
    return f"secret {text}" if field.is_secret else text


def _default(field: KindField) -> str:
    if field.is_required:
        return "required"
    value: Any = field.default
    return "none" if value is None or value in ({}, [], "") else code(json.dumps(value))
