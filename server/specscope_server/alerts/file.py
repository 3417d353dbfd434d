"""The operator's file: rules, channels and routes, checked all at once, and brought into the store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from sqlalchemy import Engine
from sqlalchemy.exc import IntegrityError

from specscope_server.alerts.channels.from_file import read_channels, store_channels
from specscope_server.alerts.channels.opening import Vault
from specscope_server.alerts.channels.stored import Author, Wanted
from specscope_server.alerts.pipeline.group import Route
from specscope_server.alerts.rules import storing
from specscope_server.alerts.rules.files import AlertsFileError, RulesFile, read_rules, read_rules_file
from specscope_server.alerts.rules.schema import Rule
from specscope_server.kit.errors import InvalidInput
from specscope_server.store.engine import write_transaction

MAX_ROUTES = 200
TRIES = 3
"""Of several processes that start at once, those that come second find the rows there."""


@dataclass(frozen=True, slots=True)
class AlertsFile:
    """What the file says."""

    rules: list[Rule]
    channels: list[Wanted] = field(default_factory=list)
    routes: list[Route] = field(default_factory=list)


def read_alerts_file(path: Path, content: bytes | None = None) -> AlertsFile:
    """Check the file, which is read unless its ``content`` was. Raises `InvalidInput` with every problem."""
    try:
        found = read_rules_file(path) if content is None else read_rules(content, str(path))
    except AlertsFileError as error:
        raise InvalidInput("; ".join(error.problems)) from None
    value = found.document.value or {}
    problems: list[str] = []
    channels = _part(problems, path, lambda: read_channels(value.get("channels") or []))
    names = [channel.name for channel in channels]
    routes = _part(problems, path, lambda: _routes(found, value.get("routes") or [], names))
    if problems:
        raise InvalidInput("; ".join(problems))
    return AlertsFile(found.rules, channels, routes)


def _part(problems: list[str], path: Path, read: Callable[[], list[Any]]) -> list[Any]:
    try:
        return read()
    except InvalidInput as error:
        problems.append(f"{path}: {error.detail}")
        return []


def _routes(found: RulesFile, entries: Any, names: Sequence[str]) -> list[Route]:
    if not isinstance(entries, list) or len(entries) > MAX_ROUTES:
        raise InvalidInput(f"routes: write a list of at most {MAX_ROUTES}, each with match and channels")
    routes, problems = [], []
    for place, entry in enumerate(entries):
        line = found.document.line(("routes", place))
        try:
            route = Route.model_validate(entry)
        except ValidationError as error:
            problems += [f"line {line}: routes[{place + 1}]: {_explain(each)}" for each in error.errors()]
            continue
        unknown = [name for name in route.channels or () if name not in names]
        if unknown and names:
            problems.append(
                f"line {line}: routes[{place + 1}]: there is no channel {unknown[0]!r} in this file; it has "
                f"{', '.join(names)}"
            )
        routes.append(route)
    if problems:
        raise InvalidInput("; ".join(problems))
    return routes


def _explain(entry: Any) -> str:
    place = ".".join(str(part) for part in entry["loc"]) or "route"
    reason = str(entry["msg"]).removeprefix("Value error, ")
    if entry["type"] == "extra_forbidden":
        known = [field.alias or name for name, field in Route.model_fields.items()]
        reason = f"a route has no such setting; it has {', '.join(known)}"
    return f"{place}: {reason}"


def bring_in(engine: Engine, found: AlertsFile | None, vault: Vault, now_ms: int) -> list[str]:
    """Make the store's rules and channels of pack and file those that are wanted; return the names of rules
    that are gone. Raises `InvalidInput`.

    Every process does it at its start: what is the same is not written, and secrets of the file stay here.
    """
    gone: list[str] = []
    for left in reversed(range(TRIES)):
        try:
            gone += storing.sync(engine, None if found is None else found.rules, now_ms)
            with write_transaction(engine) as connection:
                wanted = [] if found is None else found.channels
                store_channels(connection, wanted, Author("file", now_ms), vault)
        except IntegrityError:
            if not left:
                raise
        else:
            break
    return gone
