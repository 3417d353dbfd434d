"""Helpers of the demo's tests: players on a simulated clock, and readers of what they expose."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from specscope_server.demo.model import CycleModel
from specscope_server.demo.player import Player
from specscope_server.demo.scheduler import Scheduler
from specscope_server.demo.story import LaunchPlan, Load, Phase, Story
from specscope_server.demo.telemetry import Telemetry
from specscope_server.demo.versions import VERSIONS

STARTED_MS = 1_790_000_000_000
STEP_MS = 1_000


def player(version: str = "0.5.23", seed: int = 7, story: Story | None = None) -> Player:
    """Return a player at the first moment of its story."""
    return Player(VERSIONS[version], story or Story(), seed, "Kimi-K2.5", STARTED_MS, pid=100)


def single(model: CycleModel, version: str = "0.5.23", seed: int = 7, load: Load | None = None) -> Player:
    """Return a player of one endless launch, by default with one benchmark user."""
    phase = Phase("only", float("inf"), load or Load(benchmark=True), LaunchPlan(model))
    return player(version, seed, Story(1.0, (phase,)))


def play(subject: Player, seconds: float, step_ms: int = STEP_MS) -> Iterator[Player]:
    """Advance a player step by step and yield it after each step."""
    for elapsed_ms in range(0, int(seconds * 1000) + 1, step_ms):
        subject.advance(STARTED_MS + elapsed_ms)
        yield subject


def running(subject: Player) -> Scheduler:
    """Return what is up now; fails if the engine is away."""
    assert subject.current is not None
    return subject.current


def telemetry(subject: Player, seconds: float) -> Telemetry:
    """Return what the engine has counted after some time."""
    subject.advance(STARTED_MS + int(seconds * 1000))
    return running(subject).telemetry


def families(subject: Player) -> dict[str, Metric]:
    """Return what ``/metrics`` says now, by family name (counters without ``_total``)."""
    body = subject.metrics(running(subject))
    return {family.name: family for family in text_string_to_metric_families(body)}


def samples(subject: Player) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Return all samples now, by name and labels."""
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in families(subject).values()
        for sample in family.samples
    }


def leader_value(subject: Player, name: str) -> float:
    """Return the one value of a gauge of the leader."""
    (family,) = (family for family in subject.version.families if family.name == name)
    ((labels, value),) = family.rows(subject.snapshot(running(subject)))
    assert labels["tp_rank"] == "0"
    return value
