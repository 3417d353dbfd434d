"""History of alerts that is too old goes; what fires, and what was told of it, stays."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine, delete, func, select, update
from tests.server.alerts.standin import GPU1, GPU2, World, a_reading, a_rule, add_channel, everything_ok

from specscope_server.alerts.pipeline.group import Route
from specscope_server.alerts.pipeline.notifying import Routing
from specscope_server.alerts.rules.reading import Status
from specscope_server.models import Base, Channel, Delivery
from specscope_server.store.engine import write_transaction
from specscope_server.store.retention import Retention, enforce

DAY_MS = 86_400_000


def test_what_is_over_goes_and_what_fires_stays(store_engine: Engine) -> None:
    add_channel(store_engine)
    at_once = Route.model_validate({"group_wait": "0s", "group_interval": "0s", "group_by": ["server"]})
    world = World(store_engine, routing=Routing([at_once]))
    world.tick(a_reading(), a_reading(labels=GPU2))
    world.tick(*everything_ok(GPU1), a_reading(labels=GPU2))
    with write_transaction(store_engine) as connection:
        connection.execute(update(Delivery).values(status="sent"))
    later_ms = world.now_ms + 400 * DAY_MS
    assert not enforce(store_engine, Retention(alerts_days=500), later_ms)
    removed = enforce(store_engine, Retention(), later_ms)
    assert removed.rows == {"alert_transition": 2, "alert_state": 1, "alert_group": 1, "delivery": 3}
    left = {name: count(store_engine, name) for name in ("alert_transition", "alert_state", "alert_group")}
    assert left == {"alert_transition": 1, "alert_state": 1, "alert_group": 1}
    world.now_ms = later_ms
    world.tick(*everything_ok(GPU1, GPU2))
    assert world.words() == ["resolved:  / low@gpu2"], "its end is told a year later too"


@pytest.mark.parametrize("status", [Status.NO_DATA, Status.ERROR])
def test_what_nothing_is_known_of_any_more_goes_too(sqlite_engine: Engine, status: Status) -> None:
    world = World(sqlite_engine, [a_rule(), a_rule("other")])
    world.tick(a_reading(status=status), a_reading("other", labels=GPU2))
    assert count(sqlite_engine, "alert_state") == 2
    enforce(sqlite_engine, Retention(), world.now_ms + 364 * DAY_MS)
    assert count(sqlite_engine, "alert_state") == 2
    enforce(sqlite_engine, Retention(), world.now_ms + 366 * DAY_MS)
    assert count(sqlite_engine, "alert_state") == 1, "what fires stays"


def test_a_group_of_which_nobody_was_ever_told_goes(sqlite_engine: Engine) -> None:
    add_channel(sqlite_engine)
    world = World(sqlite_engine)
    world.tick(a_reading())
    enforce(sqlite_engine, Retention(), world.now_ms)
    assert count(sqlite_engine, "alert_group") == 1, "it waits to be told"
    world.tick(*everything_ok(GPU1))
    assert world.words() == []
    enforce(sqlite_engine, Retention(), world.now_ms)
    assert count(sqlite_engine, "alert_group") == 0


def test_what_a_channel_that_is_gone_was_told_goes(sqlite_engine: Engine) -> None:
    add_channel(sqlite_engine)
    world = World(sqlite_engine)
    world.tick(a_reading())
    world.tick(a_reading(), seconds=60)
    assert world.words() == ["new: low@gpu1 / "]
    enforce(sqlite_engine, Retention(), world.now_ms + 400 * DAY_MS)
    assert count(sqlite_engine, "alert_group") == 1, "its end is to be told"
    with write_transaction(sqlite_engine) as connection:
        connection.execute(delete(Channel))
    enforce(sqlite_engine, Retention(), world.now_ms + 400 * DAY_MS)
    assert count(sqlite_engine, "alert_group") == 0


def count(engine: Engine, table: str) -> int:
    with engine.connect() as connection:
        return connection.scalar(select(func.count()).select_from(Base.metadata.tables[table])) or 0
