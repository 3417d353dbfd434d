"""More alerts in a group than a message holds: every fire and every end reaches every kind, once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import pytest
from sqlalchemy import Engine
from tests.server.alerts.delivery.desk import Desk
from tests.server.alerts.far_side import SETTINGS, FarSide, stand_in
from tests.server.alerts.standin import World, a_reading, a_rule, everything_ok

from specscope_server.alerts.pipeline.group import Route
from specscope_server.alerts.pipeline.notifying import Routing
from specscope_server.alerts.rules.reading import Reading

Scene: TypeAlias = "Callable[[str], tuple[World, Desk, FarSide]]"
MANY = 250
FEWER = {"template": 45, "pagerduty": 110}
"""Each message of a template is a process, each alert for PagerDuty a message."""


@pytest.fixture
def scene(sqlite_engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Scene:
    """Return what makes a world whose only channel is of one kind."""

    def make(kind: str, **settings: Any) -> tuple[World, Desk, FarSide]:
        desk = Desk(sqlite_engine)
        desk.channels({"name": "oncall", "kind": kind, "per_minute": 10_000, **SETTINGS[kind], **settings})
        at_once = {"group_wait": "0s", "group_interval": "0s", "group_by": []}
        world = World(sqlite_engine, routing=Routing([Route.model_validate(at_once)]))
        far_side = FarSide(desk.clock)
        stand_in(monkeypatch, far_side)
        return world, desk, far_side

    return make


def named(count: int, first: int = 0) -> list[dict[str, str]]:
    return [{"server": f"gpu{number}"} for number in range(first, first + count)]


def bad(*labels: dict[str, str]) -> Iterable[Reading]:
    return (a_reading(labels=each) for each in labels)


def step(world: World, desk: Desk, *found: Reading) -> None:
    """Evaluate, decide, and deliver until nothing is due."""
    world.tick(*found)
    desk.now_ms = world.now_ms
    while desk.deliver():
        pass


@pytest.mark.parametrize("kind", sorted(SETTINGS))
def test_every_fire_and_every_end_arrives_once(scene: Scene, kind: str) -> None:
    world, desk, far_side = scene(kind)
    servers = named(FEWER.get(kind, MANY))
    step(world, desk, *bad(*servers))
    names = sorted(each["server"] for each in servers)
    assert sorted(far_side.all()) == [(name, "firing") for name in names]
    fires = len(far_side.messages)
    step(world, desk, *everything_ok(*servers))
    assert sorted(far_side.all()[len(names) :]) == [(name, "resolved") for name in names]
    assert {row.status for row in desk.rows()} == {"sent"}
    assert len({row.webhook_id for row in desk.rows()}) == len(far_side.messages) == 2 * fires


@pytest.mark.parametrize("kind", ["discord", "email", "slack", "webhook"])
def test_what_is_new_stands_before_what_fires_as_before(scene: Scene, kind: str) -> None:
    world, desk, far_side = scene(kind)
    old = named(60)
    step(world, desk, *bad(*old))
    far_side.messages.clear()
    new = named(3, first=100)
    step(world, desk, *bad(*old[2:], *new), *everything_ok(*old[:2]))
    [message] = far_side.messages
    assert sorted(message[:3]) == [("gpu100", "firing"), ("gpu101", "firing"), ("gpu102", "firing")]
    assert sorted(message[3:5]) == [("gpu0", "resolved"), ("gpu1", "resolved")]
    assert {status for _, status in message[5:]} == {"firing"}
    told = world.told()[-1]
    assert len(told.alerts) + told.truncated_alerts == 58 + 3 + 2


def test_pagerduty_hears_of_a_change_only_what_is_new_and_of_a_repeat_all(scene: Scene) -> None:
    world, desk, far_side = scene("pagerduty")
    step(world, desk, *bad(*named(12)))
    far_side.messages.clear()
    step(world, desk, *bad(*named(13)))
    assert far_side.all() == [("gpu12", "firing")]
    world.now_ms += 5 * 3_600_000
    step(world, desk, *bad(*named(13)))
    assert len(far_side.all()) == 1 + 13


def test_an_alertmanager_hears_all_each_time_since_it_forgets(scene: Scene) -> None:
    world, desk, far_side = scene("alertmanager")
    step(world, desk, *bad(*named(120)))
    far_side.messages.clear()
    step(world, desk, *bad(*named(121)))
    assert sorted(map(len, far_side.messages)) == [21, 100]


def test_the_worst_are_told_first(scene: Scene) -> None:
    world, desk, far_side = scene("pagerduty")
    world.rules = [a_rule("low"), a_rule("bad", severity="critical")]
    step(world, desk, *bad(*named(5)), a_reading("bad", labels={"server": "gpu9"}))
    assert far_side.all()[0] == ("gpu9", "firing")


def test_what_waited_is_told_in_parts_and_in_order(scene: Scene) -> None:
    world, desk, far_side = scene("slack")
    far_side.answers = lambda _: 503
    step(world, desk, *bad(*named(25)))
    step(world, desk, *bad(*named(35)), *everything_ok(*named(0)))
    step(world, desk, *bad(*named(30, first=5)), *everything_ok(*named(5)))
    far_side.answers = lambda _: 200
    desk.until_quiet()
    assert sorted(far_side.all()) == sorted((f"gpu{number}", "firing") for number in range(5, 35))
    assert [len(message) for message in far_side.messages] == [10, 10, 10]
    step(world, desk, *everything_ok(*named(35)))
    assert sorted(far_side.all()[30:]) == sorted((f"gpu{number}", "resolved") for number in range(5, 35))


def test_a_channel_that_takes_fewer_than_before_is_told_all(scene: Scene) -> None:
    world, desk, far_side = scene("alertmanager_webhook")
    world.tick(*bad(*named(30)))
    world.tick(*bad(*named(29, first=1)), *everything_ok(*named(1)))
    settings = {**SETTINGS["alertmanager_webhook"], "max_alerts": 4}
    desk.channels({"name": "oncall", "kind": "alertmanager_webhook", "per_minute": 10_000, **settings})
    desk.now_ms = world.now_ms
    while desk.deliver():
        pass
    assert max(map(len, far_side.messages)) == 4
    first = far_side.all().index(("gpu0", "firing"))
    assert first < far_side.all().index(("gpu0", "resolved"))
    assert {name for name, status in far_side.all() if status == "firing"} == {
        each["server"] for each in named(30)
    }
