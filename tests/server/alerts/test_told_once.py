"""Whatever happens to receivers: every fire is told before its end, no end without it, nothing told twice.

Groups of up to 150 alerts, a channel of each kind (but for templates: a process for each message, else like
webhooks), and receivers that are down, refuse, take without an answer, or cannot take one alert.
"""

from __future__ import annotations

import json
import shutil
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test
from sqlalchemy import select
from tests.server.alerts.delivery.desk import Desk
from tests.server.alerts.far_side import SETTINGS, FarSide, Seen, stand_in
from tests.server.alerts.standin import T0, World, a_reading, everything_ok

from specscope_server.alerts.channels.notification import Notification
from specscope_server.alerts.channels.opening import Opened
from specscope_server.alerts.delivery import attempting
from specscope_server.alerts.delivery.attempting import Attempted
from specscope_server.alerts.delivery.http import Lost
from specscope_server.alerts.pipeline.group import Route
from specscope_server.alerts.pipeline.notifying import Routing
from specscope_server.models import AlertState
from specscope_server.store.engine import create_store_engine

KINDS = sorted(set(SETTINGS) - {"template"})
SERVERS = [f"gpu{number}" for number in range(150)]
WAYS = (
    "works", "works for a while", "down", "refuses", "wrong address", "takes and dies", "cannot take gpu7",
    "nobody delivers",
)  # fmt: skip
PLACES, COUNTS, TIMES = st.integers(0, 150), st.sampled_from([1, 4, 150]), st.sampled_from([15, 60, 900])
AT_ONCE = {"group_wait": "15s", "group_interval": "15s", "repeat_interval": "10m", "group_by": []}
ROUTES = (
    {**AT_ONCE, "match": {"server": "gpu?"}},
    {**AT_ONCE, "channels": [kind for kind in KINDS if kind != "pagerduty"]},
)
"""PagerDuty hears of ten servers only: each alert is a message."""
GROUPINGS: list[list[str]] = [[], ["rule"], ["severity", "rule"], ["category"]]


@dataclass
class Told:
    """What one receiver knows."""

    fires: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Alert → ids of the messages that told of it as new."""
    ends: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    firing: set[str] = field(default_factory=set)

    def take(self, webhook_id: str, notification: Notification) -> None:
        """Take a message; raise `AssertionError` for one that must not come."""
        known = set(notification.known)
        for card in notification.alerts:
            key = card.alert_id
            if card.status == "resolved":
                assert key in self.firing or webhook_id in self.ends[key], "an end without its fire"
                self.ends[key].add(webhook_id)
                self.firing.discard(key)
            else:
                assert not self.ends.get(key), "a fire after its end"
                self.fires[key] |= set() if key in known else {webhook_id}
                self.firing.add(key)
            assert len(self.fires[key]) <= 1, "a fire told twice"
            assert len(self.ends[key]) <= 1, "an end told twice"


class Scene(RuleBasedStateMachine):
    """Turns of the server, in any order with deliveries to receivers that behave in any way."""

    template: Path
    folder: Path
    use: Callable[[Scene], None]
    ended: int = 0
    """How many of its stories were played to their end, where all that is told must be true."""

    def __init__(self) -> None:
        super().__init__()
        file = self.folder / "scene.sqlite3"
        shutil.copyfile(self.template, file)
        self.engine = create_store_engine(f"sqlite:///{file}")
        self.desk = Desk(self.engine, now_ms=T0)
        self.desk.channels(
            *({"name": kind, "kind": kind, "per_minute": 10_000, **SETTINGS[kind]} for kind in KINDS)
        )
        self.world = World(self.engine, routing=Routing([Route.model_validate(each) for each in ROUTES]))
        self.bad: set[str] = set()
        self.told = {kind: Told() for kind in KINDS}
        self.far_side = FarSide(self.desk.clock, self.answer)
        self.way, self.left = "works", 0
        self.problems: list[str] = []
        self.attempted: tuple[Opened, Notification, str] | None = None
        type(self).use(self)

    @initialize(count=st.sampled_from([3, 25, 150]))
    def begin(self, count: int) -> None:
        """Choose how many alerts there may be."""
        self.servers = SERVERS[:count]

    @rule(first=PLACES, count=COUNTS, seconds=TIMES, way=st.sampled_from(WAYS), left=st.integers(1, 12))
    def fires(self, first: int, count: int, seconds: int, way: str, left: int) -> None:
        """Something goes wrong at some servers."""
        self.bad |= set(self.servers[first % len(self.servers) :][:count])
        self.turn(seconds)
        self.deliver(way, left)

    @rule(first=PLACES, count=COUNTS, seconds=TIMES, way=st.sampled_from(WAYS), left=st.integers(1, 12))
    def ends(self, first: int, count: int, seconds: int, way: str, left: int) -> None:
        """Some are well again."""
        self.bad -= set(self.servers[first % len(self.servers) :][:count])
        self.turn(seconds)
        self.deliver(way, left)

    @rule(by=st.sampled_from(GROUPINGS), seconds=TIMES, way=st.sampled_from(WAYS), left=st.integers(1, 12))
    def regroups(self, by: list[str], seconds: int, way: str, left: int) -> None:
        """The file is changed while alerts fire and messages about them wait."""
        self.world.routing = Routing([Route.model_validate({**each, "group_by": by}) for each in ROUTES])
        self.turn(seconds)
        self.deliver(way, left)

    def deliver(self, way: str, left: int) -> None:
        """Deliver what is due while receivers behave in one way."""
        self.way, self.left = way, left
        while way != "nobody delivers" and self.desk.deliver():
            pass
        assert not self.problems

    def turn(self, seconds: int) -> None:
        """Evaluate and decide."""
        found = [a_reading(labels={"server": server}) for server in sorted(self.bad)]
        well = [{"server": server} for server in self.servers if server not in self.bad]
        self.world.tick(*found, *everything_ok(*well), seconds=seconds)
        self.desk.now_ms = self.world.now_ms

    def answer(self, seen: Seen) -> int:
        """Answer one message of the delivery that is attempted."""
        assert self.attempted is not None
        opened, notification, webhook_id = self.attempted
        status = self._status(seen)
        if notification.cause != "channel":  # how other channels fare is told, too
            self._check(seen, opened.name, notification, webhook_id if status < 300 else None)
        if self.way == "takes and dies":
            raise Lost("no answer", was_sent=True)
        return status

    def _check(self, seen: Seen, channel: str, notification: Notification, webhook_id: str | None) -> None:
        """Take a message if it has an id. What is wrong is kept: the product goes on after an error."""
        cards = [(card.labels["server"], card.status) for card in notification.alerts]
        try:
            assert seen == cards, f"{channel} leaves something out"
            if webhook_id is not None:
                self.told[channel].take(webhook_id, notification)
        except AssertionError as error:
            self.problems.append(f"{channel}: {error}")

    def _status(self, seen: Seen) -> int:
        if self.way == "works for a while":
            self.left -= 1
            return 200 if self.left >= 0 else 503
        if self.way == "cannot take gpu7":
            return 400 if any(server == "gpu7" for server, _ in seen) else 200
        return {"down": 503, "refuses": 422, "wrong address": 404}.get(self.way, 200)

    def teardown(self) -> None:
        """When receivers work again, all know what is true."""
        try:
            for _ in range(5):
                self.turn(960)
                self.deliver("works", 0)
            on = select(AlertState.alert_id, AlertState.labels).where(AlertState.state == "firing")
            with self.engine.connect() as connection:
                firing = {row.alert_id: json.loads(row.labels)["server"] for row in connection.execute(on)}
            assert set(firing.values()) == self.bad
            few = {key for key, server in firing.items() if len(server) == len("gpu0")}
            wanted = {kind: few if kind == "pagerduty" else set(firing) for kind in KINDS}
            assert {kind: told.firing for kind, told in self.told.items()} == wanted
            type(self).ended += 1
        finally:
            self.engine.dispose()


def test_every_channel_is_told_of_everything_once_and_in_order(
    sqlite_template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempt = attempting.attempt

    def use(scene: Scene) -> None:
        def watched(channel: Opened, told: Notification, webhook_id: str, *rest: Any) -> Attempted:
            scene.attempted = channel, told, webhook_id
            return attempt(channel, told, webhook_id, *rest)

        monkeypatch.setattr(attempting, "attempt", watched)
        stand_in(monkeypatch, scene.far_side)

    class Here(Scene):
        template, folder = sqlite_template, tmp_path

    Here.use = staticmethod(use)  # type: ignore[assignment]
    run_state_machine_as_test(
        Here,
        settings=settings(
            max_examples=6,
            stateful_step_count=8,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=[
                Phase.explicit,
                Phase.reuse,
                Phase.generate,
            ],  # a shorter story would take minutes to find
        ),
    )
    assert Here.ended >= 6
