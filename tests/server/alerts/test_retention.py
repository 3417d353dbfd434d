"""History of alerts that is too old goes; what fires, and what was told of it, stays."""

from __future__ import annotations

from sqlalchemy import Engine, func, select, update
from tests.server.alerts.standin import GPU1, GPU2, World, a_reading, add_channel, everything_ok

from specscope_server.alerts.pipeline.group import Route
from specscope_server.alerts.pipeline.notifying import Routing
from specscope_server.models import Base, Delivery
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


def count(engine: Engine, table: str) -> int:
    with engine.connect() as connection:
        return connection.scalar(select(func.count()).select_from(Base.metadata.tables[table])) or 0
