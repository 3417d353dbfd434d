"""A channel that is removed and made anew is another receiver, which was told of nothing yet."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlalchemy import Connection, Engine, select
from tests.server.alerts.standin import T0, World, a_reading, everything_ok

from specscope_server.alerts.channels import stored
from specscope_server.alerts.channels.from_file import read_channels, store_channels
from specscope_server.alerts.channels.opening import Vault
from specscope_server.alerts.channels.stored import Author, Wanted
from specscope_server.alerts.pipeline.group import Route
from specscope_server.alerts.pipeline.notifying import Routing
from specscope_server.models import Delivery
from specscope_server.store.engine import write_transaction

URL = "https://hook.example/x"
VAULT = Vault()
AT_ONCE = Route.model_validate({"group_wait": "0s", "group_interval": "0s"})


def by_rest(connection: Connection, at_ms: int, *, is_there: bool) -> None:
    if is_there:
        stored.create(connection, Wanted("hook", "webhook", {"url": URL}), Author("ann", at_ms), VAULT)
    else:
        stored.remove(connection, "hook", Author("ann", at_ms))


def by_file(connection: Connection, at_ms: int, *, is_there: bool) -> None:
    entries = [{"name": "hook", "kind": "webhook", "url": URL}] if is_there else []
    store_channels(connection, read_channels(entries), Author("ann", at_ms), VAULT)


@pytest.mark.parametrize("store", [by_rest, by_file])
def test_one_that_is_made_anew_is_told_of_what_fires(
    sqlite_engine: Engine, store: Callable[..., None]
) -> None:
    world = World(sqlite_engine, routing=Routing([AT_ONCE]))
    with write_transaction(sqlite_engine) as connection:
        store(connection, T0, is_there=True)
    world.tick(a_reading())
    for is_there in (False, True):
        world.now_ms += 1_000
        with write_transaction(sqlite_engine) as connection:
            store(connection, world.now_ms, is_there=is_there)
    world.tick(a_reading())
    world.tick(*everything_ok({"server": "gpu1"}))
    with sqlite_engine.connect() as connection:
        first = connection.execute(select(Delivery.status, Delivery.reason).order_by(Delivery.id)).first()
    assert first == ("collapsed", "its channel was removed"), "it goes to no other receiver"
    fire = "low@gpu1"
    assert world.words() == [f"new: {fire} / ", f"new: {fire} / ", f"resolved:  / {fire}"]
