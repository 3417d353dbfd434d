"""Two processes that watch one target into one store: nothing is lost and nothing counted twice."""

from __future__ import annotations

import random
from itertools import pairwise

import structlog
from tests.collectors.runner.engine import Bench, bench

TOKENS = "tokens.generated"


def take_turns(b: Bench, rounds: int, chance: random.Random) -> None:
    """Scrape with one of two collectors at a time, in an order left to chance."""
    collectors = [b.join(), b.collector]
    b.scrape()
    for _ in range(rounds):
        b.engine.serve(tokens=chance.randrange(1, 50))
        b.collector = chance.choice(collectors)
        b.scrape()
    for b.collector in collectors * 2:
        b.scrape()


def test_growth_is_counted_once_whoever_stores_it() -> None:
    with bench() as b:
        b.scrape()
        before = b.engine.tokens
        take_turns(b, 30, random.Random(4))
        assert b.sink.total(TOKENS) == b.engine.tokens - before
        assert len(b.sink.launches()) == 1
        spans = [(each.time_ms - each.span_ms, each.time_ms) for each in b.sink.all_increments(TOKENS)]
        assert all(end == start for (_, end), (start, _) in pairwise(spans))


def test_a_restart_that_the_other_saw_is_no_second_launch() -> None:
    with bench() as b:
        b.scrape()
        other = b.join()
        b.scrape()
        b.engine.break_down()
        b.scrape()
        b.engine.recover()
        b.engine.restart(tokens=30)
        b.scrape()
        b.collector = other
        b.scrape(3)
        assert len(b.sink.launches()) == 2
        assert b.sink.total(TOKENS) == 30


def test_it_is_said_once() -> None:
    with bench() as b, structlog.testing.capture_logs() as logs:
        b.scrape()
        take_turns(b, 20, random.Random(5))
        said = [entry for entry in logs if entry["event"] == "another process watches this target too"]
        assert len(said) == 2  # once by each
        assert "stop one of them" in said[0]["remedy"]
