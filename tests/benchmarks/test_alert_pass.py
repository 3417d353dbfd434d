"""One pass over the shipped rules, per watched server: of one and of many, beside a pass that keeps nothing.

Servers have every source: metrics each five seconds, the probe's times and states with what the draft was
trained on, finished requests, a canary. Between two passes all of them are read as often as in production.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from sqlalchemy import Engine
from sqlalchemy.orm import Session
from tests.benchmarks.fleet import multiply
from tests.demo.days import Hours
from tests.demo.stage import Stage

from specscope_server.alerts.rules import evaluate as evaluating
from specscope_server.alerts.rules.storing import rules_in_force
from specscope_server.kit.web.state import AppState
from specscope_server.store.one_pass import one_pass

SERVERS, SCRAPE_SECONDS, INTERVAL_MS = 50, 5, 15_000
ROUNDS, WARM_UP = 12, 2
LIMIT_MS, LEAST_GAIN = 25.0, 1.5


@pytest.fixture
def stage(sqlite_engine: Engine, tmp_path: Path) -> Stage:
    """One server after half an hour of traffic."""
    hours = Hours(day=0.4, idle=0, few=0, monday=0)
    stage = Stage(
        sqlite_engine, hours.story(), tmp_path / "spool", SCRAPE_SECONDS, before_reading=hours.ask
    )  # fmt: skip
    stage.upload_references()
    stage.play(hours.seconds)
    stage.alerting.prepare()
    return stage


@contextmanager
def nothing_kept(*_: object) -> Iterator[None]:
    """Read as everybody does who asks once."""
    yield


def pass_ms(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, reading: Callable[..., AbstractContextManager[None]]
) -> Sequence[float]:
    """Return ms of one core that each pass took, while time goes on through the last stored minutes."""
    monkeypatch.setattr(evaluating, "one_pass", reading)
    state = AppState(stage.engine, stage.clock, SCRAPE_SECONDS * 1_000)
    found = []
    for number in range(WARM_UP + ROUNDS):
        now_ms = stage.now_ms - (WARM_UP + ROUNDS - number) * INTERVAL_MS
        with Session(stage.engine) as session:
            rules = rules_in_force(session)
            began = time.process_time()
            answer = evaluating.evaluate(session, state, rules, now_ms)
            found.append(1_000 * (time.process_time() - began))
        assert not answer.problems
    return found[WARM_UP:]


@pytest.mark.benchmark
def test_a_pass_costs_little_for_each_server(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    without = statistics.median(pass_ms(stage, monkeypatch, nothing_kept))
    alone = statistics.median(pass_ms(stage, monkeypatch, one_pass))
    multiply(stage.engine, SERVERS)
    together = [whole / SERVERS for whole in pass_ms(stage, monkeypatch, one_pass)]
    each = statistics.median(together)
    print(  # noqa: T201
        f"\none pass over the shipped rules: {without:.1f} ms a server that keeps nothing, {alone:.1f} ms of "
        f"one server, {each:.1f} ms for each of {SERVERS} (at best {min(together):.1f}, at worst "
        f"{max(together):.1f}): {each * SERVERS / INTERVAL_MS:.1%} of one core at an interval of "
        f"{INTERVAL_MS / 1000:.0f} s"
    )
    assert each < without / LEAST_GAIN
    assert min(together) < LIMIT_MS
