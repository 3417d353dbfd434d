"""Increments and levels of one batch: gathered, checked, and reduced to what is new.

A batch of ten thousand values has a few hundred series, so all about a series (is the metric known? of
this kind? are the labels sane?) is decided once per distinct series, its *slot*, and all about values is
decided on whole columns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from specscope_collectors.catalogue import CATALOGUE, Kind
from specscope_collectors.observations import Distribution, Increment, Labels, Level
from specscope_server.store.limits import MAX_AHEAD_MS, label_reason
from specscope_server.store.refusal import Reason
from specscope_server.store.rollup import Samples, group_starts

Key: TypeAlias = tuple[object, ...]
"""(kind of record, metric, labels as pairs in the order of sending): what names a series within one batch."""

_KINDS = {Increment: Kind.INCREMENT, Level: Kind.LEVEL, Distribution: Kind.DISTRIBUTION}
SERVER_PREFIX = "scrape."
"""Metrics about watching itself: they belong to the server, not to one of its launches."""


@dataclass(frozen=True, slots=True)
class SeriesKey:
    """What names a series of one server."""

    metric: str
    labels: Labels

    @property
    def of_launch(self) -> bool:
        """Whether it belongs to a launch (else to the server itself)."""
        return not self.metric.startswith(SERVER_PREFIX)


@dataclass(slots=True)
class Scalars:
    """Columns of one batch; ``slot`` points into ``keys``."""

    keys: list[SeriesKey] = field(default_factory=list)
    reasons: list[Reason | None] = field(default_factory=list)
    """Per slot: why all its values are refused."""
    slot: list[int] = field(default_factory=list)
    time_ms: list[int] = field(default_factory=list)
    value: list[float] = field(default_factory=list)
    span_ms: list[int] = field(default_factory=list)


def series_reason(
    record: type[Increment | Level | Distribution], metric: str, labels: Labels
) -> Reason | None:
    """Return why a series is refused whatever its values are."""
    row = CATALOGUE.get(metric)
    if row is None:
        return Reason.UNKNOWN_METRIC
    if row.kind is not _KINDS[record]:
        return Reason.WRONG_KIND
    return label_reason(labels)


def gather(records: Sequence[Increment | Level]) -> Scalars:
    """Turn records into columns. The loop of the hot path: a few hundred nanoseconds per value."""
    scalars = Scalars()
    slots: dict[Key, int] = {}
    add_slot, add_time = scalars.slot.append, scalars.time_ms.append
    add_value, add_span = scalars.value.append, scalars.span_ms.append
    for record in records:
        kind = type(record)
        key = (kind, record.metric, *record.labels.items())
        slot = slots.get(key)
        if slot is None:
            slot = slots[key] = len(scalars.keys)
            scalars.keys.append(SeriesKey(record.metric, record.labels))
            scalars.reasons.append(series_reason(kind, record.metric, record.labels))
        add_slot(slot)
        add_time(record.time_ms)
        add_value(record.value)
        add_span(record.span_ms if kind is Increment else 0)  # type: ignore[union-attr]
    return scalars


@dataclass(frozen=True, slots=True)
class Checked:
    """Values that passed; ``refused`` counts the others by reason."""

    slot: NDArray[np.int64]
    time_ms: NDArray[np.int64]
    value: NDArray[np.float64]
    span_ms: NDArray[np.int64]
    refused: Counter[Reason]


def check(scalars: Scalars, oldest_ms: int, now_ms: int) -> Checked:
    """Refuse, by the first reason that holds, what cannot be."""
    slot = np.array(scalars.slot, dtype=np.int64)
    time_ms, span_ms = _integers(scalars.time_ms), _integers(scalars.span_ms)
    value = np.array(scalars.value, dtype=np.float64)
    refused: Counter[Reason] = Counter()
    accepted = np.ones(len(slot), dtype=np.bool_)

    def refuse(reason: Reason, where: NDArray[np.bool_]) -> None:
        hit = accepted & where
        count = int(np.count_nonzero(hit))
        if count:
            refused[reason] += count
            accepted[hit] = False

    for reason in {reason for reason in scalars.reasons if reason}:
        refuse(reason, np.array([other is reason for other in scalars.reasons])[slot])
    increments, ratios, lengths = (_flags(scalars.keys, test)[slot] for test in _TESTS)
    refuse(Reason.NOT_FINITE, ~np.isfinite(value))
    refuse(Reason.TOO_OLD, time_ms < oldest_ms)
    refuse(Reason.FUTURE, time_ms > now_ms + MAX_AHEAD_MS)
    refuse(Reason.BAD_SPAN, increments & (span_ms <= 0))
    refuse(Reason.NEGATIVE_INCREMENT, increments & (value < 0))
    refuse(Reason.RATIO_OUT_OF_RANGE, ratios & ((value < 0) | (value > 1)))
    refuse(Reason.ACCEPT_LENGTH_BELOW_ONE, lengths & (value < 1))
    return Checked(slot[accepted], time_ms[accepted], value[accepted], span_ms[accepted], refused)


def to_samples(checked: Checked, ids: NDArray[np.int64]) -> tuple[Samples, int]:
    """Return the values sorted by series and time, and how many were dropped as repeats within the batch.

    ``ids`` maps slots to series ids; values of slots with id 0 are left out. Of several values of one series
    at one time the first sent counts.
    """
    series_id = ids[checked.slot]
    samples = Samples(series_id, checked.time_ms, checked.value, checked.span_ms).take(series_id != 0)
    samples = samples.take(
        np.lexsort((samples.time_ms, samples.series_id))
    )  # stable: the first sent stays first
    first = group_starts(samples.series_id, samples.time_ms)
    return samples.take(first), len(samples) - len(first)


def _is_increment(metric: str) -> bool:
    return metric in CATALOGUE and CATALOGUE[metric].kind is Kind.INCREMENT


def _is_ratio(metric: str) -> bool:
    return metric in CATALOGUE and CATALOGUE[metric].unit == "1"


def _is_accept_length(metric: str) -> bool:
    return metric.endswith("accept_length")


_TESTS = (_is_increment, _is_ratio, _is_accept_length)


def _flags(keys: list[SeriesKey], test: object) -> NDArray[np.bool_]:
    return np.array([test(key.metric) for key in keys], dtype=np.bool_)  # type: ignore[operator]


def _integers(numbers: list[int]) -> NDArray[np.int64]:
    """Return the numbers as int64; what does not fit becomes -1, which is neither a time nor a span."""
    try:
        return np.array(numbers, dtype=np.int64)
    except OverflowError:
        return np.array([number if abs(number) < 2**63 else -1 for number in numbers], dtype=np.int64)
