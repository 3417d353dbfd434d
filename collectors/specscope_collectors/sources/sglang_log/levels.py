"""The fields of a status line → canonical levels; what cannot be is refused and counted."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from specscope_collectors.observations import Labels, Level

ACCEPT_LENGTH, RATE = "spec.accept_length", "spec.engine_accept_rate"
RUNNING, THROUGHPUT = "requests.running", "throughput.generated"

_COMMON = {
    "#running-req": ("requests.running", 1.0),
    "#queue-req": ("requests.queued", 1.0),
    "token usage": ("kv.usage", 1.0),
    "full token usage": ("kv.usage", 1.0),
    "gpu token usage": ("kv.usage", 1.0),
}
"""Field as printed → (metric, divisor)."""
_DECODE = _COMMON | {
    "#token": ("kv.used_tokens", 1.0),
    "#full token": ("kv.used_tokens", 1.0),
    "#gpu token": ("kv.used_tokens", 1.0),
    "gen throughput (token/s)": ("throughput.generated", 1.0),
    "accept len": (ACCEPT_LENGTH, 1.0),
    "accept rate": (RATE, 1.0),
    "cap len": ("spec.cap_length", 1.0),
    "block accept len": ("spec.block_accept_length", 1.0),
    "fwd occupancy": ("engine.forward_occupancy", 100.0),
}
RATIOS = ("kv.usage", RATE, "engine.forward_occupancy")


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What the launch allows; None = not known."""

    draft_tokens: int | None = None
    is_adaptive: bool = False


def read_values(
    fields: dict[str, float], *, is_decode: bool, expected: Expected, refused: Counter[str]
) -> dict[str, float]:
    """Return metric → value. ``refused`` counts by reason what cannot be."""
    values = {
        metric: fields[name] / divisor
        for metric, (name, divisor) in read_from(fields, is_decode=is_decode).items()
    }
    if min(values.values(), default=0.0) < 0:
        _drop_negative(values, refused)
    _settle(values, expected, refused)
    return values


def read_from(names: Iterable[str], *, is_decode: bool) -> dict[str, tuple[str, float]]:
    """Return metric → (name of the field that it is read from, divisor) of a line with these fields."""
    table = _DECODE if is_decode else _COMMON
    return {table[name][0]: (name, table[name][1]) for name in names if name in table}


def _drop_negative(values: dict[str, float], refused: Counter[str]) -> None:
    for metric in [metric for metric, value in values.items() if value < 0]:
        refused[f"negative {metric}"] += 1
        del values[metric]


def to_levels(values: dict[str, float], labels: Labels, time_ms: int) -> list[Level]:
    """Return one level per value."""
    return [
        Level(metric=metric, labels=labels, time_ms=time_ms, value=value) for metric, value in values.items()
    ]


def _settle(values: dict[str, float], expected: Expected, refused: Counter[str]) -> None:
    """Take out zeros that are no measurement, and what is impossible.

    ``accept len: 0.00`` means that no cycle ended in the window; 1.00, that nothing was accepted, is real.
    """
    length, rate = values.get(ACCEPT_LENGTH), values.get(RATE)
    if length == 0:
        del values[ACCEPT_LENGTH]
        values.pop(RATE, None)
        length = rate = None
    for metric in ("spec.cap_length", "spec.block_accept_length"):
        if values.get(metric) == 0:
            del values[metric]
    if length is not None and (why := _impossible_length(length, expected)):
        refused[why] += 1
        del values[ACCEPT_LENGTH]
    for metric in RATIOS:
        if values.get(metric, 0.0) > 1:
            refused[f"{metric} above 1"] += 1
            del values[metric]
    if rate == 0 and length is not None and length > 1.01:
        refused["accept rate 0 beside an accept length above 1"] += 1
        del values[RATE]
    if values.get("spec.block_accept_length", 1.0) < 1:
        refused["block accept length below 1"] += 1
        del values["spec.block_accept_length"]


def longest_possible(expected: Expected) -> float:
    """Return the greatest accept length that a launch allows: an engine may add two tokens of its own."""
    most = expected.draft_tokens
    return math.inf if most is None or expected.is_adaptive else most + 1


def _impossible_length(length: float, expected: Expected) -> str:
    if length < 1:
        return "accept length below 1"
    return "accept length above what the launch can draft" if length > longest_possible(expected) else ""
