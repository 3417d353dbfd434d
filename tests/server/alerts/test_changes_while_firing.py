"""What changes while an alert fires: its rule's severity, who took it, what mutes it, the clock."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from sqlalchemy import Engine, update
from tests.server.alerts.standin import GPU1, T0, World, a_reading, a_rule, add_channel, everything_ok
from tests.support.cards import card, notification

from specscope_server.alerts.card.build import ended
from specscope_server.alerts.channels.alertmanager.kind import KIND, Config
from specscope_server.alerts.channels.contract import Context
from specscope_server.alerts.pipeline.group import Route
from specscope_server.alerts.pipeline.notifying import Routing
from specscope_server.alerts.rules.schema import StoredRule
from specscope_server.models import AlertState, Base
from specscope_server.store.engine import write_transaction

HOUR = 3_600


def a_route(**fields: Any) -> Route:
    return Route.model_validate(
        {"group_wait": "0s", "group_interval": "0s", "group_by": ["server"], **fields}
    )


def a_world(engine: Engine, *routes: Route) -> World:
    return World(engine, routing=Routing(list(routes) or [a_route()]))


def another(rule: StoredRule, version: int = 2) -> StoredRule:
    """Return the rule as its next version."""
    return StoredRule(rule=rule.rule, version=version, origin=rule.origin, enabled=rule.enabled)


def test_a_severity_that_is_raised_is_told_once(store_engine: Engine) -> None:
    add_channel(store_engine)
    world = a_world(store_engine)
    world.tick(a_reading())
    world.rules = [another(a_rule(severity="critical", title="Worse", runbook="https://x.example/1"))]
    for _ in range(3):
        world.tick(a_reading())
    assert world.words() == ["new: low@gpu1 / ", "changed: low@gpu1 / "]
    before, after = (each.alerts[0] for each in world.told())
    assert (after.severity, after.title, after.runbook) == ("critical", "Worse", "https://x.example/1")
    assert (after.alert_id, after.labels["severity"]) == (before.alert_id, "critical")
    assert world.told()[1].known == [], "a kind that tells only of what is new tells of it"
    for _ in range(3):
        world.tick(*everything_ok(GPU1))
    assert world.words()[2:] == ["resolved:  / low@gpu1"]


def test_a_severity_that_is_raised_reaches_who_is_told_of_it(sqlite_engine: Engine) -> None:
    add_channel(sqlite_engine, "chat")
    add_channel(sqlite_engine, "pager")
    critical = a_route(match={"severity": "critical"}, channels=["pager"])
    world = a_world(sqlite_engine, critical, a_route(channels=["chat"]))
    world.tick(a_reading())
    world.rules = [
        a_rule(severity="critical")
    ]  # the version says nothing: its card was made before an upgrade
    done = world.tick(a_reading())
    assert done.reasons[("pager", '{server="gpu1"}')] == "1 new"
    world.tick(*everything_ok(GPU1))
    assert [each.status for each in world.told()] == ["firing", "firing", "resolved", "resolved"]


def test_an_alertmanager_ends_what_it_knows_under_former_labels() -> None:
    now = card(
        labels={"server": "gpu1", "severity": "critical"}, former=[{"server": "gpu1", "severity": "info"}]
    )
    [request] = KIND.render(Config(url="http://am.example"), notification(now), Context("am", "w", T0))
    old, new = sorted(orjson.loads(request.body), key=lambda each: each["labels"]["severity"], reverse=True)
    assert (old["labels"]["severity"], new["labels"]["severity"]) == ("info", "critical")
    assert old["endsAt"] < new["endsAt"]


@pytest.mark.parametrize("how", ["acked", "silenced", "loud"])
def test_an_alertmanager_is_told_again_before_it_forgets(sqlite_engine: Engine, how: str) -> None:
    add_channel(sqlite_engine, "am", kind="alertmanager", config='{"url":"http://am.example"}')
    world = a_world(sqlite_engine, a_route(repeat_interval="7d"))
    world.tick(a_reading())
    with write_transaction(sqlite_engine) as connection:
        if how == "acked":
            connection.execute(update(AlertState).values(acked_by="ana", acked_ms=world.now_ms))
        if how == "silenced":
            silence = {"matchers": '[{"label":"rule","operator":"=","value":"low"}]', "owner": "ana"}
            times = {"starts_ms": T0, "ends_ms": T0 + 10**10, "created_ms": T0}
            table = Base.metadata.tables["silence"]
            connection.execute(table.insert().values(reason="known", **silence, **times))
    for _ in range(50):
        world.tick(a_reading(), seconds=HOUR)
    made = [each.made_ms for each in world.told() if each.cause != "acknowledged"]
    assert len(made) >= 4
    assert all(
        after - before < 86_400_000 for before, after in zip(made, [*made[1:], world.now_ms], strict=True)
    )
    assert all(each.firing for each in world.told())


def test_another_kind_is_not_told_again_of_what_somebody_took(sqlite_engine: Engine) -> None:
    add_channel(sqlite_engine)
    world = a_world(sqlite_engine)
    world.tick(a_reading())
    with write_transaction(sqlite_engine) as connection:
        connection.execute(update(AlertState).values(acked_by="ana", acked_ms=world.now_ms))
    for _ in range(50):
        world.tick(a_reading(), seconds=HOUR)
    assert [each.cause for each in world.told()] == ["new", "acknowledged"]


def test_what_is_worse_than_anything_told_waits_for_the_group_wait_only(sqlite_engine: Engine) -> None:
    add_channel(sqlite_engine)
    rules = [
        a_rule("info", severity="info"),
        a_rule("more", severity="info"),
        a_rule("bad", severity="critical"),
    ]
    world = World(sqlite_engine, rules)
    for _ in range(4):
        world.tick(a_reading("info"))
    assert world.words() == ["new: info@gpu1 / "]
    world.tick(a_reading("info"), a_reading("more"))
    began_ms = world.now_ms + 15_000
    while len(world.words()) < 2:
        world.tick(a_reading("info"), a_reading("more"), a_reading("bad"))
        assert world.now_ms - began_ms <= 30_000
    assert world.now_ms - began_ms == 30_000
    assert world.words()[1] == "changed: bad@gpu1 info@gpu1 more@gpu1 / "


def test_an_end_is_never_before_its_beginning(sqlite_engine: Engine) -> None:
    add_channel(sqlite_engine)
    world = a_world(sqlite_engine)
    world.tick(a_reading(), seconds=86_400)
    world.tick(*everything_ok(GPU1), seconds=-86_400)
    world.tick(*everything_ok(GPU1))
    over = world.told()[-1].alerts[0]
    assert over.ends_ms == over.starts_ms
    assert ended(card(starts_ms=T0), T0 - 1, "").ends_ms == T0
