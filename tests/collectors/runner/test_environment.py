"""Variables of the environment that the engine tells: a launch with others is told as such."""

from __future__ import annotations

from tests.collectors.runner.engine import bench

from specscope_collectors.alternation import HELD_SCRAPES
from specscope_collectors.observations import Event

DOUBTED = 1 + HELD_SCRAPES
"""Scrapes until a restart that no failed scrape announced is believed."""


def test_a_restart_with_another_environment_names_the_variables() -> None:
    with bench() as b:
        b.engine.info |= {"env_vars": {"NCCL_ALGO": "Ring", "NCCL_DEBUG": "WARN", "HOME": "a"}}
        b.scrape()
        b.engine.restart()
        b.engine.info |= {"env_vars": {"NCCL_ALGO": "NVLS", "NCCL_DEBUG": "WARN", "HOME": "b"}}
        b.scrape(DOUBTED)
        event: Event = b.sink.all(Event)[-1]
        assert event.detail["changes"] == {"env.NCCL_ALGO": ["Ring", "NVLS"]}
        assert event.message == "restarted with another configuration: env.NCCL_ALGO 'Ring' → 'NVLS'"


def test_an_environment_that_became_readable_is_no_change() -> None:
    with bench() as b:
        b.scrape()
        b.engine.restart()
        b.engine.info |= {"env_vars": {"NCCL_ALGO": "NVLS"}}
        b.scrape(DOUBTED)
        assert b.sink.launches()[1].environment == {"NCCL_ALGO": "NVLS"}
        assert b.sink.launches()[1].reason == "restarted"
