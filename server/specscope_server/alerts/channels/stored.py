"""Channels in the store: read, made, changed, removed. Every change is audited, without secrets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from sqlalchemy import Connection, Row, delete, select, update

from specscope_server.alerts.channels.contract import ChannelKind
from specscope_server.alerts.channels.kinds import kind_of
from specscope_server.alerts.channels.opening import FROM_API, FROM_FILE, Vault, open_channel
from specscope_server.alerts.channels.secrets import secret_fields, split
from specscope_server.alerts.channels.validation import check_name, validated
from specscope_server.alerts.delivery import failing
from specscope_server.alerts.delivery.breaker import breaker_of
from specscope_server.alerts.delivery.outbox import COLLAPSED, PENDING
from specscope_server.kit.errors import InvalidInput, NotFound
from specscope_server.models import AlertGroup, Audit, Channel, Delivery

DESTINATIONS = ("url", "host", "port", "security", "method")
"""Settings that say who gets the secrets: changed, the secrets must be given again."""
HIDDEN = "(secret)"
REMOVED = "its channel was removed"


@dataclass(frozen=True, slots=True)
class Wanted:
    """A channel as somebody wants it."""

    name: str
    kind: str
    settings: Mapping[str, Any]
    enabled: bool = True


@dataclass(frozen=True, slots=True)
class Author:
    """Who changes something, and when."""

    actor: str
    at_ms: int


def find(connection: Connection, name: str, *, to_change: bool = False) -> Row[Any]:
    """Return a channel's row. Raises `NotFound`.

    ``to_change``: locked until the transaction ends, so that no attempt moves its breaker meanwhile.
    """
    query = select(Channel.__table__).where(Channel.name == name)
    row = connection.execute(query.with_for_update() if to_change else query).one_or_none()
    if row is None:
        raise NotFound(f"there is no channel {name[:60]!r}; see /api/v1/alerts/channels")
    return row


def shown_settings(row: Row[Any]) -> dict[str, Any]:
    """Return the settings with secrets hidden; ones that are references are shown as such."""
    kind = kind_of(row.kind)
    settings: dict[str, Any] = msgspec.json.decode(row.config, type=dict)
    hidden = {name: HIDDEN for name in secret_fields(kind.config) if name not in settings}
    return settings | hidden


def create(connection: Connection, wanted: Wanted, author: Author, vault: Vault) -> None:
    """Make a channel by REST. Raises `InvalidInput`."""
    check_name(wanted.name)
    if connection.execute(select(Channel.id).where(Channel.name == wanted.name)).first() is not None:
        raise InvalidInput(f"there is a channel {wanted.name!r} already; choose another name")
    kind = kind_of(wanted.kind)
    values = _values(kind, wanted.name, wanted.settings, vault)
    connection.execute(
        Channel.__table__.insert().values(  # type: ignore[attr-defined]
            name=wanted.name, kind=wanted.kind, origin=FROM_API, enabled=wanted.enabled, disabled_reason="",
            breaker="{}", updated_ms=author.at_ms, revision=1, **values,
        )
    )  # fmt: skip
    _audit(connection, author, "channel.create", wanted.name, None)


def change(connection: Connection, wanted: Wanted, author: Author, vault: Vault) -> None:
    """Change a channel that was made by REST. Secrets that are not given stay. Raises `InvalidInput`."""
    row = _own(connection, wanted.name)
    if row.kind != wanted.kind:
        raise InvalidInput(f"the channel {row.name!r} is a {row.kind}; remove it to make a {wanted.kind}")
    kind = kind_of(row.kind)
    before = msgspec.json.decode(row.config, type=dict)
    settings = _with_kept_secrets(kind, row, wanted.settings, vault)
    values = _values(kind, wanted.name, settings, vault)
    _check_destination(kind, before, msgspec.json.decode(values["config"], type=dict), wanted.settings, row)
    connection.execute(
        update(Channel)
        .where(Channel.name == wanted.name, Channel.revision == row.revision)
        .values(
            enabled=wanted.enabled, disabled_reason="", updated_ms=author.at_ms, revision=row.revision + 1,
            breaker=next_breaker(connection, row, wanted.enabled, f"by {author.actor}", author.at_ms),
            **values,
        )
    )  # fmt: skip
    _audit(connection, author, "channel.change", wanted.name, row)


def switch(connection: Connection, name: str, enabled: bool, author: Author) -> None:
    """Turn a channel on (its breaker starts anew) or off; also one of the file."""
    row = find(connection, name, to_change=True)
    breaker = next_breaker(connection, row, enabled, f"by {author.actor}", author.at_ms)
    connection.execute(
        update(Channel)
        .where(Channel.name == name)
        .values(
            enabled=enabled, disabled_reason="" if enabled else f"turned off by {author.actor}",
            breaker=breaker, updated_ms=author.at_ms, revision=row.revision + 1,
        )
    )  # fmt: skip
    _audit(connection, author, "channel.enable" if enabled else "channel.disable", name, row)


def remove(connection: Connection, name: str, author: Author) -> None:
    """Remove a channel that was made by REST; what waits for it is not sent."""
    row = _own(connection, name)
    drop(connection, row, f"by {author.actor}", author.at_ms)
    _audit(connection, author, "channel.remove", name, row)


def next_breaker(connection: Connection, row: Row[Any], enabled: bool, how: str, at_ms: int) -> str:
    """Return the breaker of a channel that is changed or switched. One that is off no longer fails."""
    if enabled:
        return failing.anew(row.breaker)
    breaker = breaker_of(row.breaker)
    failing.tell_over(connection, row.name, breaker, f"the channel was turned off {how}", at_ms)
    return "{}"


def drop(connection: Connection, row: Row[Any], how: str, at_ms: int) -> None:
    """Remove a channel with what waits for it and what it was told: one made anew with its name is another.

    Who heard that it fails is told that it is no more.
    """
    breaker = breaker_of(row.breaker)
    failing.tell_over(connection, row.name, breaker, f"the channel was removed {how}", at_ms)
    waits = (Delivery.channel == row.name) & (Delivery.status == PENDING)
    connection.execute(
        update(Delivery).where(waits).values(status=COLLAPSED, reason=REMOVED, finished_ms=at_ms)
    )
    connection.execute(delete(AlertGroup).where(AlertGroup.channel == row.name))
    connection.execute(delete(Channel).where(Channel.name == row.name))


def _own(connection: Connection, name: str) -> Row[Any]:
    row = find(connection, name, to_change=True)
    if row.origin == FROM_FILE:
        raise InvalidInput(f"the channel {name!r} stands in the alerts file; change it there")
    return row


def _values(kind: ChannelKind, name: str, settings: Mapping[str, Any], vault: Vault) -> dict[str, Any]:
    """Return the columns of settings, checked with their references read."""
    config = validated(kind, settings, f"channel {name!r}")
    if config.allow_private and not vault.api_may_allow_private:
        raise InvalidInput(
            "allow_private: only the operator may allow that, in the alerts file or by alerts_allow_private; "
            "or alerts_private_networks opens single networks to all channels"
        )
    shown, hidden = split(config)
    text = msgspec.json.encode(shown).decode()
    sealed = vault.seal.close(name, hidden) if hidden else None
    open_channel(name, kind.name, FROM_API, text, sealed, vault)
    return {"config": text, "secrets": sealed}


def _with_kept_secrets(
    kind: ChannelKind, row: Row[Any], settings: Mapping[str, Any], vault: Vault
) -> dict[str, Any]:
    given = {name: value for name, value in settings.items() if value != HIDDEN}
    missing = [name for name in secret_fields(kind.config) if name not in given]
    if not missing:
        return given
    before = {**msgspec.json.decode(row.config, type=dict), **vault.seal.open(row.name, row.secrets)}
    return {**{name: before[name] for name in missing if name in before}, **given}


def _check_destination(
    kind: ChannelKind, before: Mapping[str, Any], after: Mapping[str, Any], given: Mapping[str, Any],
    row: Row[Any],
) -> None:  # fmt: skip
    """Else who may change a channel but never saw its secrets could have them sent to themselves."""
    moved = [name for name in DESTINATIONS if before.get(name) != after.get(name)]
    secret = set(secret_fields(kind.config)) - set(before) if row.secrets else set()
    kept = sorted(name for name in secret if given.get(name, HIDDEN) == HIDDEN)
    if moved and kept:
        raise InvalidInput(
            f"{', '.join(moved)} changes where secrets go: give {', '.join(kept)} again, or null to drop them"
        )


def _audit(connection: Connection, author: Author, action: str, name: str, before: Row[Any] | None) -> None:
    after = connection.execute(select(Channel.__table__).where(Channel.name == name)).one_or_none()
    connection.execute(
        Audit.__table__.insert().values(  # type: ignore[attr-defined]
            at_ms=author.at_ms, actor=author.actor, action=action, target=name, before=_told(before),
            after=_told(after),
        )
    )  # fmt: skip


def _told(row: Row[Any] | None) -> str | None:
    """Return a channel without secrets."""
    if row is None:
        return None
    told = {"kind": row.kind, "origin": row.origin, "enabled": row.enabled, "settings": shown_settings(row)}
    return msgspec.json.encode(told).decode()
