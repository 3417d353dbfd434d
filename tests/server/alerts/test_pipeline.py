"""From readings to the outbox, on both databases: each stage as it shows in what is told."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Engine, select, update
from tests.server.alerts.standin import (
    GPU1,
    GPU2,
    T0,
    World,
    a_reading,
    a_rule,
    add_channel,
    everything_ok,
    idle,
)

from specscope_server.alerts.pipeline.evaluating import OFF, Step
from specscope_server.alerts.pipeline.group import Route
from specscope_server.alerts.pipeline.notifying import Routing
from specscope_server.alerts.rules.reading import Status
from specscope_server.models import AlertState, Base, Delivery
from specscope_server.store.engine import write_transaction


@pytest.fixture
def world(store_engine: Engine) -> World:
    """A store with one channel, a rule without waiting, and routes without waiting."""
    add_channel(store_engine)
    url = "https://specscope.example.org"
    return World(store_engine, routing=Routing([a_route()], url), step=Step(public_url=url))


def a_route(**fields: Any) -> Route:
    return Route.model_validate(
        {"group_wait": "0s", "group_interval": "0s", "group_by": ["server"], **fields}
    )


def silence(engine: Engine, matchers: str, until_ms: int) -> None:
    row = {"matchers": matchers, "owner": "ana", "reason": "known", "starts_ms": T0, "ends_ms": until_ms}
    with write_transaction(engine) as connection:
        connection.execute(Base.metadata.tables["silence"].insert().values(created_ms=T0, **row))


def test_a_fire_is_told_once_and_its_end_once(world: World) -> None:
    for _ in range(3):
        world.tick(a_reading())
    for _ in range(3):
        world.tick(*everything_ok(GPU1))
    assert world.words() == ["new: low@gpu1 / ", "resolved:  / low@gpu1"]
    assert world.history() == [("normal", "firing"), ("firing", "resolved")]
    fired, ended = world.told()
    assert fired.alerts[0].alert_id == ended.alerts[0].alert_id
    assert ended.alerts[0].ends_ms == T0 + 60_000
    assert ended.alerts[0].reason == "1.90 is not below 1.50"


def test_the_card_says_what_somebody_who_is_woken_needs(world: World) -> None:
    world.tick(a_reading())
    card = world.told()[0].alerts[0]
    [value] = card.values
    assert (value.value, value.lower, value.upper, value.bound) == (1.1, 1.0, 1.2, 1.5)
    assert (card.n, card.severity, card.title) == (4_000, "warning", "The rule low")
    assert (card.window_from_ms, card.window_to_ms) == (T0 - 300_000, T0)
    page, own = card.links
    assert page.url.startswith("https://specscope.example.org/?server=gpu1&from=2026-")
    assert own.url == f"https://specscope.example.org/alerts/{card.alert_id}"


def test_a_restart_neither_fires_again_nor_forgets(world: World) -> None:
    world.tick(a_reading())
    again = World(world.engine, world.rules, now_ms=world.now_ms, routing=world.routing)
    again.tick(a_reading(), seconds=7_200)
    assert again.words() == ["new: low@gpu1 / "]
    again.tick(*everything_ok(GPU1))
    assert again.words()[1:] == ["resolved:  / low@gpu1"]


def test_alerts_of_a_group_are_told_together_after_the_wait(world: World) -> None:
    world.routing = Routing([a_route(group_wait="30s", group_interval="5m", group_by=[])])
    world.tick(a_reading())
    world.tick(a_reading(), a_reading(labels=GPU2))
    assert world.words() == []
    world.tick(a_reading(), a_reading(labels=GPU2))
    assert world.words() == ["new: low@gpu1 low@gpu2 / "]
    world.tick(*everything_ok(GPU1), a_reading(labels=GPU2))
    assert len(world.words()) == 1, "the next one waits for the interval"
    world.tick(*everything_ok(GPU1), a_reading(labels=GPU2), seconds=300)
    assert world.words()[1:] == ["changed: low@gpu2 / low@gpu1"]


def test_what_is_over_before_anybody_was_told_is_not_told(world: World) -> None:
    world.routing = Routing([a_route(group_wait="30s")])
    world.tick(a_reading())
    done = world.tick(*everything_ok(GPU1))
    world.tick(*everything_ok(GPU1), seconds=60)
    assert world.words() == []
    assert list(done.reasons.values()) == ["over, or muted, before anybody was told"]
    assert world.history() == [("normal", "firing"), ("firing", "resolved")], "it stays in the history"


def test_a_restart_during_the_wait_does_not_begin_it_again(world: World) -> None:
    world.routing = Routing([a_route(group_wait="30s")])
    world.tick(a_reading())
    World(world.engine, world.rules, now_ms=world.now_ms, routing=world.routing).tick(a_reading(), seconds=30)
    assert world.words() == ["new: low@gpu1 / "]


def test_it_is_repeated_while_it_fires_and_nobody_took_it(world: World) -> None:
    world.routing = Routing([a_route(repeat_interval="1h")])
    for _ in range(3):
        world.tick(a_reading(), seconds=1_800)
    assert world.words() == ["new: low@gpu1 / ", "repeat: low@gpu1 / "]
    with write_transaction(world.engine) as connection:
        connection.execute(update(AlertState).values(acked_by="ana", acked_ms=world.now_ms))
    for _ in range(3):
        world.tick(a_reading(), seconds=3_600)
    assert world.words()[2:] == ["acknowledged: low@gpu1 / "]


def test_a_source_that_is_down_mutes_the_rest_of_its_server(world: World) -> None:
    down = a_rule("down", inhibits=[{"target": {"rule": "*"}, "equal": ["server"]}])
    world.rules.append(down)
    world.tick(a_reading("down"))
    world.tick(a_reading("down"), a_reading(), a_reading(labels=GPU2))
    assert world.words() == ["new: down@gpu1 / ", "new: low@gpu2 / "]
    world.tick(*everything_ok(GPU1, rule="down"), a_reading(), a_reading(labels=GPU2))
    assert world.words()[2:] == ["changed: low@gpu1 / down@gpu1"], (
        "what is left is told when the cause is gone"
    )


def test_two_that_would_mute_each_other_do_not_both_fall_silent(world: World) -> None:
    each = [{"target": {"rule": "*"}}]
    world.rules = [a_rule("a", inhibits=each), a_rule("b", inhibits=each)]
    world.tick(a_reading("a"), a_reading("b"))
    assert len(world.words()) == 1


def test_an_idle_engine_mutes_what_speaks_of_its_work(world: World) -> None:
    world.routing = Routing([a_route(group_wait="15s", repeat_interval="1h")])
    world.tick(a_reading())
    for _ in range(10):
        world.tick(idle(), seconds=3_600)
    assert world.words() == []
    world.tick(a_reading())
    world.tick(a_reading())
    assert world.words() == ["new: low@gpu1 / "]


@pytest.mark.parametrize(
    ("category", "is_muted"),
    [("acceptance", True), ("timing", True), ("drift", False), ("configuration", False), ("probe", False)],
)
def test_idle_time_mutes_nothing_that_lasts(world: World, category: str, is_muted: bool) -> None:
    world.rules = [a_rule(category=category)]
    world.routing = Routing([a_route(group_wait="30s")])
    world.tick(a_reading())
    for _ in range(3):
        world.tick(idle())
    assert world.words() == ([] if is_muted else ["new: low@gpu1 / "])


def test_a_silence_mutes_until_it_ends(world: World) -> None:
    text = (
        '[{"label":"server","operator":"=~","value":"gpu[0-9]"},{"label":"rule","operator":"!=","value":"x"}]'
    )
    silence(world.engine, text, T0 + 100_000)
    for _ in range(6):
        world.tick(a_reading())
        assert world.words() == []
    world.tick(a_reading())
    assert world.words() == ["new: low@gpu1 / "]


def test_the_end_of_what_was_told_is_told_under_a_silence_too(world: World) -> None:
    world.tick(a_reading())
    silence(world.engine, '[{"label":"rule","value":"low"}]', T0 + 10**9)
    world.tick(a_reading(), seconds=36_000)
    assert len(world.words()) == 1
    world.tick(*everything_ok(GPU1))
    assert world.words()[1:] == ["resolved:  / low@gpu1"]


def test_routes_say_who_is_told(world: World) -> None:
    add_channel(world.engine, "chat")
    add_channel(world.engine, "off", enabled=False)
    critical = a_route(match={"severity": "critical"}, channels=["oncall"])
    world.routing = Routing([critical, a_route(channels=["chat"])])
    world.rules = [a_rule("bad", severity="critical"), a_rule("low")]
    world.tick(a_reading("bad"), a_reading("low"))
    assert deliveries(world) == [("chat", "low"), ("oncall", "bad")]


def test_nothing_falls_through_the_routes(world: World) -> None:
    world.routing = Routing([a_route(match={"severity": "info"}), a_route(channels=["gone"])])
    world.tick(a_reading())
    assert deliveries(world) == [("oncall", "low")]


def test_a_vanished_series_ends_as_missing(world: World) -> None:
    world.tick(a_reading())
    for _ in range(3):
        world.tick()
    assert world.words()[1:] == ["resolved:  / low@gpu1"]
    assert "missing" in world.told()[1].alerts[0].reason


def test_a_rule_that_is_turned_off_ends_its_alerts(world: World) -> None:
    world.tick(a_reading())
    world.rules = []
    world.tick(a_reading())
    assert world.told()[1].alerts[0].reason == OFF


def test_a_rule_that_cannot_be_evaluated_ends_nothing(world: World) -> None:
    world.tick(a_reading())
    for _ in range(10):
        world.tick(a_reading(status=Status.ERROR, labels={}, reason="no such signal"))
    assert world.words() == ["new: low@gpu1 / "]


def test_a_fire_that_was_given_up_is_told_again_while_it_fires(world: World) -> None:
    world.tick(a_reading())
    with write_transaction(world.engine) as connection:
        connection.execute(update(Delivery).values(status="expired"))
    world.tick(a_reading())
    assert world.words() == ["new: low@gpu1 / ", "new: low@gpu1 / "]


def test_a_fire_that_was_given_up_has_no_end(world: World) -> None:
    world.tick(a_reading())
    with write_transaction(world.engine) as connection:
        connection.execute(update(Delivery).values(status="expired"))
    world.tick(*everything_ok(GPU1))
    assert world.words() == ["new: low@gpu1 / "]


def test_what_another_process_wrote_first_is_left_alone(world: World) -> None:
    world.tick(a_reading())
    other = World(world.engine, world.rules, now_ms=world.now_ms, routing=world.routing)
    other.found = list(everything_ok(GPU1))
    evaluation = world._evaluation

    def late(*given: Any) -> Any:
        found = evaluation(*given)
        other.now_ms += 1_000
        other.evaluate()
        return found

    world._evaluation = late  # type: ignore[method-assign]
    world.found, world.now_ms = list(everything_ok(GPU1)), world.now_ms + 2_000
    assert world.evaluate().lost == 1
    assert world.history() == [("normal", "firing"), ("firing", "resolved")]


def test_a_pass_that_comes_second_tells_nothing(world: World) -> None:
    world.now_ms += 15_000
    world.found = [a_reading()]
    world.evaluate()
    world.notify()
    assert world.notify().deliveries == []
    assert len(world.told()) == 1


def test_routes_that_change_do_not_end_what_fires(world: World) -> None:
    world.tick(a_reading())
    world.routing = Routing([a_route(group_by=["rule"])])
    world.tick(a_reading())
    assert not any(each.resolved for each in world.told())


def deliveries(world: World) -> list[tuple[str, str]]:
    with world.engine.connect() as connection:
        channels = connection.scalars(select(Delivery.channel).order_by(Delivery.id)).all()
    return sorted(zip(channels, (each.alerts[0].rule for each in world.told()), strict=True))


def test_a_clock_set_back_by_a_day_does_not_hold_back_a_repeat_for_a_day(world: World) -> None:
    world.routing = Routing([a_route(repeat_interval="1h")])
    for _ in range(2):
        world.tick(a_reading(), seconds=30)
    world.now_ms -= 86_400_000
    for _ in range(2):
        world.tick(a_reading(), seconds=30)
    assert world.words() == ["new: low@gpu1 / ", "repeat: low@gpu1 / "]
