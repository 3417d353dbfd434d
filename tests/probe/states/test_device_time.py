"""The probe's own time on the device: read when it is there, and never made up where there is none."""

from __future__ import annotations

import queue
from types import SimpleNamespace
from typing import Any

from prometheus_client import CollectorRegistry

from specscope_probe.exporting import Metrics
from specscope_probe.states.counts import StateCounts
from specscope_probe.states.finishing import Taken
from specscope_probe.states.options import StateOptions
from specscope_probe.states.pipeline import Pipeline
from specscope_probe.states.report import report_states

NAME = "specscope_states_device_seconds_total"


class Event:
    """What is used of an event of the device."""

    def __init__(self, time_ms: float) -> None:
        self.time_ms = time_ms
        self.is_over = False

    def query(self) -> bool:
        """Say whether the device has passed it."""
        return self.is_over

    def elapsed_time(self, end: Event) -> float:
        """Return ms; reading earlier would be an error of the device."""
        assert end.is_over
        return end.time_ms - self.time_ms


def piped(counts: StateCounts, *pairs: tuple[Event | None, Event | None]) -> Pipeline:
    """Return a pipeline with sampled forwards on their way."""
    finisher: Any = SimpleNamespace(entries=queue.SimpleQueue())
    pipeline = Pipeline(None, finisher, StateOptions(), counts, lambda: False)  # type: ignore[arg-type]
    for began, done in pairs:
        pipeline._waiting.append(Taken(SimpleNamespace(began=began, done=done), None))  # type: ignore[arg-type]
    return pipeline


def exported(counts: StateCounts) -> float | None:
    """Return the exported seconds."""
    registry = CollectorRegistry()
    report_states(Metrics({"tp_rank": "0"}, registry), counts)
    return registry.get_sample_value(NAME, {"tp_rank": "0"})


def test_events_around_the_reduction_are_read_once_they_are_over() -> None:
    counts, ends = StateCounts(), [Event(12.0), Event(25.0)]
    pipeline = piped(counts, (Event(10.0), ends[0]), (Event(20.0), ends[1]))
    pipeline.poll(1)
    assert exported(counts) is None
    ends[0].is_over = True
    pipeline.poll(2)
    assert exported(counts) == 0.002
    ends[1].is_over = True
    pipeline.poll(3)
    assert exported(counts) == 0.007


def test_on_the_cpu_nothing_is_exported() -> None:
    counts = StateCounts()
    pipeline = piped(counts, (None, None))
    pipeline.poll(1)
    assert not pipeline._waiting
    assert exported(counts) is None
