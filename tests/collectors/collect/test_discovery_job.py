"""What is watched follows what is listed: with a grace, through errors, restarts and hostile lists."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.collectors.collect.jobs import POOL
from tests.collectors.runner.engine import FakeClock, MemorySink

from specscope_collectors.config import CollectorOptions
from specscope_collectors.discoveries import (
    Answer,
    Discover,
    DiscoveryContext,
    DiscoveryError,
    DiscoveryKind,
    Listed,
)
from specscope_collectors.discovery_job import DiscoveryJob, Surroundings
from specscope_collectors.observations import HealthState, SourceHealth
from specscope_collectors.own_health import OwnHealth
from specscope_collectors.plan import DiscoveryPlan, Watching, collector_target
from specscope_collectors.roster import Roster

DOWN = DiscoveryError("it is down", state=HealthState.TIMEOUT, remedy="mend it")


@dataclass
class Scripted:
    """Answers what it is told to."""

    answer: Answer | DiscoveryError = field(default_factory=lambda: Answer(()))
    keep_seconds: float | None = None
    asked: str = "script"
    is_closed: bool = False

    async def look(self) -> Answer:
        if isinstance(self.answer, DiscoveryError):
            raise self.answer
        return self.answer

    async def close(self) -> None:
        self.is_closed = True


@dataclass
class Scene:
    """A discovery at work, with its own time."""

    config: Discover = field(default_factory=lambda: Discover(grace_seconds=60))
    sink: MemorySink = field(default_factory=MemorySink)
    script: Scripted = field(default_factory=Scripted)
    clock: FakeClock = field(default_factory=FakeClock)
    targets: tuple[Watching, ...] = ()
    changes: int = 0

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Lose what only the process knew."""
        roster = Roster(self._take)
        roster.set_order(("discover_test",))
        kind = DiscoveryKind("test", Discover, lambda config, context: self.script)
        plan = DiscoveryPlan(kind=kind, config=self.config, options=CollectorOptions(), where="f")
        around = Surroundings(
            roster=roster,
            health=OwnHealth(self.sink, collector_target("h"), "discover_test"),
            pool=POOL,
            clock=self.clock,
            monotonic=self.clock.monotonic,
        )
        discovery = kind.build(self.config, DiscoveryContext(options=plan.options))
        self.targets = ()
        self.job = DiscoveryJob("discover_test", plan, discovery, around)

    def _take(self, targets: Sequence[Watching]) -> None:
        self.targets = tuple(targets)
        self.changes += 1

    def look(self, answer: Answer | DiscoveryError | None = None, seconds: float = 30) -> float:
        self.clock.advance(seconds)
        if answer is not None:
            self.script.answer = answer
        return asyncio.run(self.job.step())

    def names(self) -> list[str]:
        return sorted(watching.target.name for watching in self.targets)

    def health(self) -> SourceHealth:
        return self.sink.health("discover_test")


def listed(*urls: str, **changes: Any) -> Answer:
    return Answer(tuple(Listed(url) for url in urls), **changes)


def test_servers_are_named_and_labelled() -> None:
    scene = Scene(Discover(labels={"cluster": "c1"}))
    scene.look(
        Answer((Listed("http://gpu1:1", "left", {"rack": "r1", "cluster": "said"}), Listed("gpu2:1/metrics")))
    )
    left, right = scene.targets
    assert (left.target.name, left.labels) == ("left", {"rack": "r1", "cluster": "c1"})
    assert (right.target.name, right.target.base_url) == ("gpu2:1", "http://gpu2:1")
    assert (scene.health().state, scene.health().series, scene.health().url) == (HealthState.OK, 2, "script")
    assert scene.sink.batches[-1].target.base_url == "collector://h"


def test_a_missing_server_is_watched_for_the_grace() -> None:
    scene = Scene()
    scene.look(listed("a:1", "b:1"))
    scene.look(listed("a:1"))
    assert (scene.names(), scene.changes) == (["a:1", "b:1"], 1)
    assert scene.health().detail == "1 no longer listed, still watched for a while"
    scene.look(listed("a:1", "b:1"))
    scene.look(listed("a:1"), 59)
    scene.look(listed("a:1"), 59)
    assert (scene.names(), scene.changes) == (["a:1", "b:1"], 1)
    scene.look(listed("a:1"), 1)
    assert (scene.names(), scene.changes) == (["a:1"], 2)


def test_an_empty_list_ends_all_after_the_grace_and_says_so() -> None:
    scene = Scene()
    scene.look(listed("a:1"))
    scene.look(listed())
    assert scene.names() == ["a:1"]
    scene.look(seconds=60)
    assert scene.names() == []
    assert (scene.health().state, scene.health().detail) == (HealthState.PARTIAL, "the list is empty")


def test_an_error_never_removes_a_server() -> None:
    scene = Scene()
    scene.look(listed("a:1"))
    for _ in range(10):
        scene.look(DOWN, 100_000)
    assert (scene.names(), scene.changes) == (["a:1"], 1)
    health = scene.health()
    assert (health.state, health.remedy) == (HealthState.TIMEOUT, "mend it")
    assert health.detail == "it is down; the last good list is kept: 1 server"


def test_an_error_does_not_lengthen_the_grace_for_ever() -> None:
    scene = Scene()
    scene.look(listed("a:1", "b:1"))
    scene.look(listed("a:1"))
    scene.look(DOWN, 1_000)
    assert scene.names() == ["a:1", "b:1"]
    scene.look(listed("a:1"))
    assert scene.names() == ["a:1"]


def test_where_addresses_change_hands_errors_keep_the_list_only_for_a_while() -> None:
    scene = Scene(script=Scripted(keep_seconds=3_600))
    scene.look(listed("a:1"))
    scene.look(DOWN, 3_599)
    assert scene.names() == ["a:1"]
    scene.look(DOWN, 1)
    assert scene.names() == []
    assert scene.health().detail == "it is down; no servers known"


def test_the_last_list_outlives_a_restart() -> None:
    scene = Scene()
    scene.look(Answer((Listed("a:1", "left", {"rack": "r"}),)))
    scene.restart()
    assert scene.names() == []
    scene.look(DOWN)
    assert (scene.names(), scene.targets[0].labels) == (["left"], {"rack": "r"})
    scene.restart()
    scene.look(listed("b:1"))
    assert scene.names() == ["b:1", "left"]


def test_a_store_that_is_down_is_no_reason_not_to_watch() -> None:
    scene = Scene()
    scene.look(listed("a:1"))
    scene.sink.is_full = True
    try:
        scene.look(listed("a:1", "b:1"))
    except Exception as error:
        assert "full" in str(error)  # noqa: PT017 (the step is tried again by who runs it)
    assert scene.names() == ["a:1", "b:1"]
    scene.sink.is_full = False
    scene.look()
    assert scene.health().series == 2


def test_health_is_said_when_it_changes_and_now_and_then() -> None:
    scene = Scene()
    for _ in range(10):
        scene.look(listed("a:1"), 1)
    assert len(scene.sink.batches) == 1
    scene.look(seconds=10)
    scene.look(listed("a:1", "b:1"), 1)
    assert [batch.sequence for batch in scene.sink.batches] == [1, 2, 3]


def test_what_is_refused_is_counted_and_told() -> None:
    scene = Scene(Discover(max_targets=3))
    scene.look(
        Answer(
            (
                Listed("http://u:secret@a:1"),
                Listed("b:1", "x"),
                Listed("c:1", "x"),
                Listed("d:1"),
                Listed("e:1"),
            ),
            refused=("f is odd",),
        )
    )
    health = scene.health()
    assert scene.names() == ["x"]
    assert (health.state, health.refused, health.series) == (HealthState.PARTIAL, 4, 1)
    assert "secret" not in health.detail
    assert health.detail.startswith("f is odd; ")
    assert health.detail.endswith("; and 1 more")


def test_names_from_a_peer_are_bounded() -> None:
    scene = Scene()
    scene.look(Answer((Listed("a:1", "x" * 300), Listed("b:1", "bad\nname"), Listed("c:1", "  "))))
    assert (scene.names(), scene.health().refused) == (["c:1"], 2)


def test_it_is_asked_again_as_soon_as_the_answer_expires() -> None:
    scene = Scene(Discover(interval_seconds=30))
    assert scene.look(listed("a:1", next_seconds=7)) == 7
    assert scene.look(listed("a:1", next_seconds=70)) == 30
    assert scene.look(DOWN) == 30


URLS = st.sampled_from(["a:1", "b:1", "c:1", "http://u@d:1", "ftp://e"])
ANSWERS = st.one_of(st.just(DOWN), st.lists(URLS, max_size=4).map(lambda urls: listed(*urls)))


@given(st.lists(st.tuples(ANSWERS, st.integers(1, 100)), min_size=1, max_size=12))
@settings(deadline=None, max_examples=150)
def test_watched_is_what_was_listed_within_the_grace(
    steps: list[tuple[Answer | DiscoveryError, int]],
) -> None:
    scene = Scene(Discover(grace_seconds=60))
    absent: dict[str, float] = {}
    watched: set[str] = set()
    for answer, seconds in steps:
        scene.look(answer, seconds)
        if isinstance(answer, Answer):
            now = scene.clock.monotonic()
            good = {each.url for each in answer.listed if each.url in ("a:1", "b:1", "c:1")}
            for url in watched - good:
                absent.setdefault(url, now)
            for url in good:
                absent.pop(url, None)
            watched = {url for url in watched | good if url in good or now - absent[url] < 60}
            absent = {url: since for url, since in absent.items() if url in watched}
        assert scene.names() == sorted(watched)
