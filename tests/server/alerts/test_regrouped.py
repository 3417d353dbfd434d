"""`group_by` changes while alerts fire: nothing is told again at once, and every end is told once."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Engine, update
from tests.server.alerts.standin import GPU1, GPU2, World, a_reading, a_rule, add_channel, everything_ok

from specscope_server.alerts.pipeline.dedup import Told
from specscope_server.alerts.pipeline.group import Route
from specscope_server.alerts.pipeline.notifying import Routing
from specscope_server.alerts.pipeline.outbox import KeptGroup
from specscope_server.alerts.pipeline.regroup import Move, records
from specscope_server.models import Base
from specscope_server.store.engine import write_transaction

BOTH = (a_reading(), a_reading(labels=GPU2))


def by(*labels: str, **fields: Any) -> Routing:
    """Return one route for everything, grouped by these labels."""
    body = {"group_wait": "0s", "group_interval": "0s", "repeat_interval": "1h", **fields}
    return Routing([Route.model_validate({**body, "group_by": list(labels)})])


def deliver(engine: Engine) -> None:
    """Have everything that waits arrive."""
    with write_transaction(engine) as connection:
        connection.execute(update(Base.metadata.tables["delivery"]).values(status="sent"))


@pytest.fixture
def world(store_engine: Engine) -> World:
    """Two servers that fire, told one by one, and arrived."""
    add_channel(store_engine)
    found = World(store_engine, routing=by("server"))
    found.tick(*BOTH)
    deliver(store_engine)
    assert sorted(found.words()) == ["new: low@gpu1 / ", "new: low@gpu2 / "]
    return found


@pytest.mark.parametrize("labels", [["rule"], [], ["severity", "rule"]])
def test_what_was_told_is_not_told_again_and_ends_once(world: World, labels: list[str]) -> None:
    world.routing = by(*labels)
    for _ in range(3):
        world.tick(*BOTH)
    assert len(world.words()) == 2
    for _ in range(3):
        world.tick(*everything_ok(GPU1, GPU2))
    assert world.words()[2:] == ["resolved:  / low@gpu1 low@gpu2"]


def test_it_comes_with_the_next_repeat(world: World) -> None:
    world.routing = by("rule")
    for _ in range(25):
        world.tick(*BOTH, seconds=180)
    assert world.words()[2:] == ["repeat: low@gpu1 low@gpu2 / "], "an hour after it was told, in one group"


def test_groups_split_and_come_together_again(world: World) -> None:
    for labels in (["rule"], ["server"], [], ["server"]):
        world.routing = by(*labels)
        world.tick(*BOTH)
    assert len(world.words()) == 2
    world.tick(BOTH[0], *everything_ok(GPU2))
    world.tick(*everything_ok(GPU1, GPU2))
    assert world.words()[2:] == ["resolved:  / low@gpu2", "resolved:  / low@gpu1"]


def test_what_waits_under_the_former_name_stays_until_it_arrived(store_engine: Engine) -> None:
    add_channel(store_engine)
    world = World(store_engine, routing=by("server"))
    world.tick(a_reading())
    world.routing = by("rule")
    world.tick(*BOTH)
    assert world.words()[1:] == ["new: low@gpu2 / "], "the other one is told under the new name"
    world.tick(*everything_ok(GPU1), BOTH[1])
    old, _, end = world.told()
    assert end.group_key == old.group_key, "in one queue an end cannot overtake its fire"
    deliver(store_engine)
    world.tick(*everything_ok(GPU1, GPU2))
    assert world.words()[2:] == ["resolved:  / low@gpu1", "resolved:  / low@gpu2"]


def test_somebody_who_took_it_and_its_severity_move_along(world: World) -> None:
    with write_transaction(world.engine) as connection:
        connection.execute(update(Base.metadata.tables["alert_state"]).values(acked_by="ana", acked_ms=1))
    world.tick(*BOTH)
    deliver(world.engine)
    before = len(world.words())
    world.routing = by("rule")
    world.tick(*BOTH)
    assert len(world.words()) == before
    world.rules = [a_rule(severity="critical")]
    world.tick(*BOTH)
    assert world.words()[before:] == ["changed: low@gpu1 low@gpu2 / "], "a severity that changes is told"


def test_what_two_groups_were_told_of_before_ends_once() -> None:
    """An alert that both groups know, as before records moved: the former one forgets it."""
    told = Told({"a": "", "b": "ana"}, None, 50, {"b": "info"})
    kept = {
        ("c", name): KeptGroup("c", name, {}, each, "", 1)
        for name, each in (("old", told), ("new", Told({"a": ""}, None, 70)))
    }
    found = records([Move("a", ("c", "old"), None), Move("b", ("c", "old"), ("c", "new"))], kept)
    assert found.told[("c", "old")] == Told({}, None, 50)
    assert found.told[("c", "new")] == Told({"a": "", "b": "ana"}, None, 50, {"b": "info"})


def test_a_group_of_which_nothing_is_told_any_more_repeats_nothing(store_engine: Engine) -> None:
    """Grouping goes back to how it was once: that all was over then says nothing of now."""
    add_channel(store_engine)
    world = World(store_engine, routing=by("rule"))
    world.tick(*BOTH)
    deliver(store_engine)
    world.tick(*everything_ok(GPU1, GPU2))
    deliver(store_engine)
    world.routing = by("server")
    world.tick(*BOTH, seconds=7_200)
    deliver(store_engine)
    told = len(world.words())
    world.routing = by("rule")
    world.tick(*BOTH)
    assert world.words()[told:] == []
