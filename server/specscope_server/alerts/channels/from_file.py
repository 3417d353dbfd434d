"""The channels of an alerts file: read, checked all at once, and stored in place of the last ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from sqlalchemy import Connection, select, update

from specscope_server.alerts.channels.contract import ChannelKind
from specscope_server.alerts.channels.kinds import kind_of
from specscope_server.alerts.channels.opening import FROM_API, FROM_FILE, Vault
from specscope_server.alerts.channels.secrets import EVERYTHING, resolved, secret_fields, split
from specscope_server.alerts.channels.stored import Author, Wanted, drop, next_breaker
from specscope_server.alerts.channels.validation import check_name, validated
from specscope_server.kit.errors import InvalidInput
from specscope_server.models import Audit, Channel

MAX_CHANNELS = 200
OWN = ("name", "kind", "enabled")
IN_FILE = "in the alerts' file"


def read_channels(entries: Any) -> list[Wanted]:
    """Return the channels of ``channels:``, each a map with ``name``, ``kind`` and the kind's settings.

    References are read too, so that a secret that is missing is seen at once. Raises `InvalidInput` with
    every problem.
    """
    if not isinstance(entries, list) or len(entries) > MAX_CHANNELS:
        raise InvalidInput(f"channels: write a list of at most {MAX_CHANNELS}, each with name and kind")
    found: dict[str, Wanted] = {}
    problems: list[str] = []
    for place, entry in enumerate(entries, start=1):
        try:
            wanted = _read(entry, place)
            if wanted.name in found:
                raise InvalidInput(f"two channels are called {wanted.name!r}; rename one")
            found[wanted.name] = wanted
        except InvalidInput as error:
            problems.append(f"channels[{place}]: {error.detail}")
    if problems:
        raise InvalidInput("; ".join(problems))
    return list(found.values())


def store_channels(connection: Connection, wanted: list[Wanted], author: Author, vault: Vault) -> None:
    """Make the store's channels of the file those that are wanted; secrets stay in this process.

    Raises `InvalidInput` for a name that a channel made by REST has. What is the same is not written.
    """
    rows = {row.name: row for row in connection.execute(select(Channel.__table__).with_for_update())}
    taken = [each.name for each in wanted if each.name in rows and rows[each.name].origin == FROM_API]
    if taken:
        raise InvalidInput(
            f"channels made over REST are called {', '.join(taken)} already; rename those of the file"
        )
    secrets: dict[str, dict[str, Any]] = {}
    for each in wanted:
        shown, secrets[each.name] = split(_config(kind_of(each.kind), each))
        _store(connection, each, msgspec.json.encode(shown).decode(), rows.get(each.name), author)
    gone = [name for name, row in rows.items() if row.origin == FROM_FILE and name not in secrets]
    for name in gone:
        drop(connection, rows[name], IN_FILE, author.at_ms)
        _audit(connection, author, "channel.remove", name, None)
    vault.of_file.update(secrets)  # in place, and never empty meanwhile: deliveries read it
    for name in gone:
        vault.of_file.pop(name, None)


def _read(entry: Any, place: int) -> Wanted:
    if not isinstance(entry, Mapping) or not all(isinstance(key, str) for key in entry):
        raise InvalidInput("is no map; write name, kind and settings")
    name, kind, enabled = (entry.get(key, default) for key, default in zip(OWN, ("", "", True), strict=True))
    if not isinstance(name, str) or not isinstance(kind, str) or not isinstance(enabled, bool):
        raise InvalidInput("name and kind must be texts, and enabled true or false")
    settings = {key: value for key, value in entry.items() if key not in OWN}
    wanted = Wanted(check_name(name or f"(channel {place} without a name)"), kind, settings, enabled)
    if not name:
        raise InvalidInput("it has no name; give it one")
    _config(kind_of(kind), wanted)
    return wanted


def _config(kind: ChannelKind, wanted: Wanted) -> Any:
    """Return the settings as they are written; checked with their references read."""
    where = f"channel {wanted.name!r}"
    config = validated(kind, wanted.settings, where)
    validated(kind, resolved(wanted.settings, secret_fields(kind.config), EVERYTHING), where)
    return config


def _store(connection: Connection, wanted: Wanted, config: str, row: Any, author: Author) -> None:
    values = {"kind": wanted.kind, "enabled": wanted.enabled, "config": config}
    if row is None:
        connection.execute(
            Channel.__table__.insert().values(  # type: ignore[attr-defined]
                name=wanted.name, origin=FROM_FILE, disabled_reason="", breaker="{}",
                updated_ms=author.at_ms, revision=1, **values,
            )
        )  # fmt: skip
        _audit(connection, author, "channel.create", wanted.name, values)
    elif (row.kind, row.config) != (wanted.kind, config) or _is_switched(row, wanted):
        connection.execute(
            update(Channel)
            .where(Channel.name == wanted.name)
            .values(
                disabled_reason="", updated_ms=author.at_ms, revision=row.revision + 1,
                breaker=next_breaker(connection, row, wanted.enabled, IN_FILE, author.at_ms), **values,
            )
        )  # fmt: skip
        _audit(connection, author, "channel.change", wanted.name, values)


def _is_switched(row: Any, wanted: Wanted) -> bool:
    """Tell whether the file turned it on or off; one that was turned off otherwise stays off."""
    return bool(row.enabled) != wanted.enabled and not (wanted.enabled and row.disabled_reason)


def _audit(
    connection: Connection, author: Author, action: str, name: str, after: Mapping[str, Any] | None
) -> None:
    text = None if after is None else msgspec.json.encode(after).decode()
    connection.execute(
        Audit.__table__.insert().values(  # type: ignore[attr-defined]
            at_ms=author.at_ms, actor=author.actor, action=action, target=name, before=None, after=text
        )
    )
