"""Counters that jump back and forth: several processes behind one address."""

from __future__ import annotations

import copy
import random
from itertools import pairwise

import structlog
from tests.collectors.info.bodies import restarted
from tests.collectors.runner.engine import Bench, Engine, bench

from specscope_collectors.alternation import CALM_SCRAPES, HELD_SCRAPES
from specscope_collectors.observations import HealthState, Increment

TOKENS = "tokens.generated"


class Replicas:
    """Two engines behind the address of the bench's one."""

    def __init__(self, b: Bench) -> None:
        self.b = b
        self.one = (9000.0, 4000.0, 90.0, b.engine.info)
        self.two = (300.0, 120.0, 9.0, restarted(copy.deepcopy(b.engine.info)))

    def answer(self, *, first: bool) -> None:
        """Let both serve a request, and one of them answer the next scrape."""
        self.one, self.two = ((t + 10, c + 4, n + 1, info) for t, c, n, info in (self.one, self.two))
        engine = self.b.engine
        engine.tokens, engine.verify_calls, engine.requests, engine.info = self.one if first else self.two
        self.b.scrape()


def test_engines_that_take_turns_are_flagged_and_give_no_growth_between_each_other() -> None:
    with bench() as b, structlog.testing.capture_logs() as logs:
        replicas = Replicas(b)
        for at in range(30):
            replicas.answer(first=at % 2 == 0)
        assert b.sink.health().state is HealthState.INVALID
        assert "several processes" in b.sink.health().detail
        assert "load balancer" in b.sink.health().remedy
        assert b.sink.all(Increment) == []
        assert len(b.sink.launches()) == 1
        assert "spec.accept_length" not in b.sink.levels()
        assert len(logs) < 6


def test_engines_that_answer_at_random_soon_give_no_growth() -> None:
    with bench() as b:
        replicas, chance = Replicas(b), random.Random(3)
        for _ in range(10):
            replicas.answer(first=chance.random() < 0.5)
        stored = len(b.sink.all(Increment))
        for _ in range(60):
            replicas.answer(first=chance.random() < 0.5)
        assert len(b.sink.all(Increment)) == stored
        assert b.sink.health().state is HealthState.INVALID


def test_after_they_stop_taking_turns_the_one_that_stays_is_measured_anew() -> None:
    with bench() as b:
        replicas = Replicas(b)
        for at in range(8):
            replicas.answer(first=at % 2 == 0)
        for _ in range(CALM_SCRAPES):
            replicas.answer(first=False)
        assert b.sink.all(Increment) == []
        replicas.answer(first=False)
        assert b.sink.health().state is HealthState.OK
        assert b.sink.increments()[TOKENS].value == 10
        assert b.sink.increments()[TOKENS].span_ms == 5000
        assert len(b.sink.launches()) == 2


def test_one_answer_of_another_engine_is_a_gap() -> None:
    with bench() as b:
        replicas = Replicas(b)
        for at in range(10):
            replicas.answer(first=at != 4)
        assert b.sink.total(TOKENS) == 90
        assert len(b.sink.launches()) == 1


def test_a_restart_within_one_interval_waits_and_loses_nothing() -> None:
    with bench() as b:
        b.scrape()
        b.engine.restart(tokens=30, verify_calls=12)
        b.scrape(HELD_SCRAPES)
        assert b.sink.health().state is HealthState.PARTIAL
        assert len(b.sink.launches()) == 1
        b.engine.serve(tokens=5)
        b.scrape()
        first, second = b.sink.launches()
        assert (b.sink.total(TOKENS, first.key), b.sink.total(TOKENS, second.key)) == (0, 35)
        assert b.sink.health().state is HealthState.OK


def test_a_restart_that_outgrows_the_old_counters_while_it_waits_is_still_one() -> None:
    with bench() as b:
        b.scrape()
        b.engine.restart(tokens=30, verify_calls=12)
        b.scrape()
        b.engine.serve(tokens=5000, verify_calls=2000)
        b.scrape(HELD_SCRAPES)
        second = b.sink.launches()[-1]
        assert b.sink.total(TOKENS, second.key) == 5030
        assert len(b.sink.launches()) == 2


def test_an_engine_that_restarts_often_is_not_taken_for_several() -> None:
    """Each time it says that it is a process never seen before; a load balancer's engines come back."""
    with bench() as b:
        b.scrape()
        for _ in range(4):
            b.engine.serve(tokens=100)
            b.scrape()
            b.engine.restart(tokens=30, verify_calls=12)
            b.scrape(1 + HELD_SCRAPES)
            assert b.sink.health().state is HealthState.OK
        assert len(b.sink.launches()) == 5
        assert b.sink.total(TOKENS) == 4 * 130


def test_a_single_odd_counter_is_no_reason_to_doubt_the_others() -> None:
    engine = Engine()
    names = ("prompt_tokens_total", "cached_tokens_total", "num_aborted_requests_total")
    with bench(engine) as b:
        for odd in (5, 3, 8, 2, 9):
            values = zip(names, (odd, 100, 100), strict=True)
            engine.extra = "".join(f'sglang:{name}{{model_name="m"}} {value}\n' for name, value in values)
            b.scrape()
            engine.serve(tokens=10)
        assert b.sink.states() == [HealthState.OK] * 5
        grown = [each for each in b.sink.all(Increment) if each.metric == TOKENS]
        assert [each.value for each in grown] == [10] * 4
        assert all(later.time_ms - later.span_ms == each.time_ms for each, later in pairwise(grown))
