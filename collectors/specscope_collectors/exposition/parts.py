"""Several raw series → one canonical series: the raw ones are its parts.

Parts differ in labels that are dropped. They add up, with one exception. Gauges of the scheduler give the
total over priorities under ``priority=""`` beside the per-priority parts: the total replaces them, adding
both would count everything twice. Counters and histograms of requests have no such total: there
``priority=""`` holds the requests that were sent without a priority.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from specscope_collectors.exposition.labels import AGGREGATE_PRIORITIES
from specscope_collectors.increments import HistogramState

Value = TypeVar("Value")


class ContradictionError(ValueError):
    """These parts cannot belong to one series; the message says why."""


@dataclass(frozen=True, slots=True)
class Part(Generic[Value]):
    """One raw series."""

    value: Value
    priority: str | None


def without_double_count(parts: Sequence[Part[Value]]) -> list[Value]:
    """Return the gauges to combine: the totals over priorities if there are any, else all."""
    totals = [part.value for part in parts if part.priority in AGGREGATE_PRIORITIES]
    return totals or [part.value for part in parts]


def total(parts: Sequence[Part[float]]) -> float:
    """Return the sum, exactly rounded: a sum that depends on the order of lines could seem to fall."""
    return parts[0].value if len(parts) == 1 else math.fsum(part.value for part in parts)


def total_of_levels(parts: Sequence[Part[float]]) -> float:
    """Return the sum of gauges, of which one may be the total over priorities already."""
    values: list[float] = without_double_count(parts)
    return math.fsum(values)


def the_same(parts: Sequence[Part[float]]) -> float:
    """Return the value on which all parts agree; raise `ContradictionError` if they do not."""
    values = without_double_count(parts)
    if any(value != values[0] for value in values):
        raise ContradictionError(
            f"{len(values)} values for one series, from {min(values):g} to {max(values):g}"
        )
    return values[0]


def merged(parts: Sequence[Part[HistogramState]]) -> HistogramState:
    """Return the sum of histograms; raise `ContradictionError` if their bounds differ."""
    states = [part.value for part in parts]
    if len(states) == 1:
        return states[0]
    bounds = states[0].bounds
    if any(state.bounds != bounds for state in states):
        raise ContradictionError("histograms with different buckets for one series")
    return HistogramState(
        bounds,
        tuple(math.fsum(counts) for counts in zip(*(state.buckets for state in states), strict=True)),
        math.fsum(state.count for state in states),
        math.fsum(state.sum for state in states),
    )
