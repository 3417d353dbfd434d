"""The numbers of all lines of a block that have a known shape, taken out together, as columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from itertools import islice
from operator import le

import numpy as np
from numpy.typing import NDArray

from specscope_collectors.logs.stamps import Clockface
from specscope_collectors.sources.sglang_log.levels import ACCEPT_LENGTH, RATE, RATIOS
from specscope_collectors.sources.sglang_log.ranks import Rank, rank_from
from specscope_collectors.sources.sglang_log.shapes import MAX_TAG_DIGITS, Form, Shape

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
_STAMP_NUMBERS = 7
_LOW_NIBBLE = 15
"""Of a digit's byte it is the digit, of a space's 0."""
FIRST_YEAR, LAST_YEAR = 1971, 9997


@dataclass(frozen=True, slots=True)
class Columns:
    """Lines of one form, in their order."""

    form: Form
    lines: Integers
    """Which lines of the block."""
    times_ms: Integers
    of_rank: Integers
    """Index of each line's rank."""
    values: Floats
    """One row a line, one column a metric; NaN = the line does not tell it."""
    is_sure: NDArray[np.bool_]
    """False for lines that must be read one by one, because something about them is refused or open."""

    def rows(self, chosen: NDArray[np.bool_] | slice) -> Columns:
        """Return some of the lines."""
        return Columns(
            self.form,
            self.lines[chosen],
            self.times_ms[chosen],
            self.of_rank[chosen],
            self.values[chosen],
            self.is_sure[chosen],
        )

    def count(self, ranks: list[int] | None) -> int:
        """Return how many values all or these ranks told."""
        told = np.count_nonzero(~np.isnan(self.values), axis=1)
        return int((told if ranks is None else told[np.isin(self.of_rank, ranks)]).sum())

    def told_together(self, rank: int, metrics: Sequence[str]) -> tuple[Integers, Floats]:
        """Return lines of a rank that tell all of these metrics, and their values (one column a metric)."""
        if not set(metrics) <= set(self.form.metrics):
            return self.lines[:0], np.empty((0, len(metrics)))
        chosen = self.values[:, [self.form.metrics.index(metric) for metric in metrics]]
        is_told = (self.of_rank == rank) & ~np.isnan(chosen).any(axis=1)
        return self.lines[is_told], chosen[is_told]

    def column(self, metric: str) -> Floats | None:
        """Return the values of a metric; None when the form has none."""
        return self.values[:, self.form.metrics.index(metric)] if metric in self.form.metrics else None


@dataclass(slots=True)
class Table:
    """Where the numbers of the shapes of one form stand: one column a shape, a fixed width a number."""

    form: Form
    shapes: list[Shape] = field(default_factory=list)
    widths: list[int] = field(default_factory=list)
    places: Integers = field(default_factory=lambda: np.empty((0, 0), dtype=np.int64))
    """One row a digit."""

    def add(self, shape: Shape) -> int:
        """Add a shape; return its column."""
        self.shapes.append(shape)
        return len(self.shapes) - 1

    def numbers(self, data: NDArray[np.uint8], starts: Integers, shapes: Integers) -> Integers:
        """Return the digits of each number as one whole number: one row a number, one column a line.

        Digit by digit over all lines: a product of matrices would do the same, slower and in threads.
        """
        self._lay_out()
        numbers = np.zeros((len(self.widths), len(starts)), dtype=np.int64)
        digits = iter(self.places)
        for number, width in zip(numbers, self.widths, strict=True):
            for places in islice(digits, width):
                number *= 10
                number += data[places[shapes] + starts] & _LOW_NIBBLE
        return numbers

    def _lay_out(self) -> None:
        """Take in new shapes; all anew when a number is longer than any before."""
        new = self.shapes[self.places.shape[1] :]
        if not new:
            return
        needed = [max(map(len, places)) for places in zip(*(shape.numbers for shape in new), strict=True)]
        if self.widths and all(map(le, needed, self.widths)):
            self.places = np.concatenate([self.places, _places(new, self.widths)], axis=1)
            return
        self.widths = list(map(max, needed, self.widths or needed))
        self.places = _places(self.shapes, self.widths)


def _places(shapes: list[Shape], widths: list[int]) -> Integers:
    """Return the places of all digits; in front of shorter numbers stands a space."""
    rows = [
        [
            place
            for number, width in zip(shape.numbers, widths, strict=True)
            for place in (*(shape.blank,) * (width - len(number)), *number)
        ]
        for shape in shapes
    ]
    return np.ascontiguousarray(np.array(rows, dtype=np.int64).T)


def columns_of(
    form: Form, numbers: Integers, lines: Integers, clock: Clockface, known: dict[Rank, int]
) -> Columns:
    """Sort out what the numbers mean; ranks not yet in ``known`` are added to it."""
    others, values = numbers[: -len(form.metrics)], numbers[-len(form.metrics) :]
    times_ms, is_sure = _times(form, others, clock)
    scaled = (values.T / np.array(form.scales)) / np.array(form.divisors)
    is_sure &= _settled(form, scaled)
    of_rank = _ranks(form, others[len(others) - len(form.tags) :], known)
    return Columns(form, lines, times_ms, of_rank, scaled, is_sure)


def _times(form: Form, numbers: Integers, clock: Clockface) -> tuple[Integers, NDArray[np.bool_]]:
    """Return epoch ms, and whether each is sure."""
    year, month, day, hour, minute, second, fraction = numbers[:_STAMP_NUMBERS]
    keys = (((year * 100 + month) * 100 + day) * 100 + hour) * 100 + minute
    distinct, places = np.unique(keys, return_inverse=True)
    minutes = [_minute(int(key), clock if not form.zone else None) for key in distinct]
    starts = np.array([-1 if start is None else start for start in minutes], dtype=np.int64)[places]
    times = starts + second * 1000 + fraction * 10 ** (3 - form.fraction)
    is_sure: NDArray[np.bool_] = (starts >= 0) & (second < 60)
    if form.zone in ("+", "-"):
        hours, minutes_off = numbers[_STAMP_NUMBERS : _STAMP_NUMBERS + 2]
        is_sure &= (hours < 24) & (minutes_off < 60)
        times -= (hours * 60 + minutes_off) * (60_000 if form.zone == "+" else -60_000)
    return times, is_sure


def _minute(key: int, clock: Clockface | None) -> int | None:
    """Return the epoch ms of the minute YYYYMMDDHHMM, in the reader's zone or UTC; None: not sure."""
    digits = f"{key:012}"
    text = f"{digits[:4]}-{digits[4:6]}-{digits[6:8]} {digits[8:10]}:{digits[10:]}"
    if not FIRST_YEAR <= int(digits[:4]) <= LAST_YEAR:
        return None
    return clock.only_minute(text) if clock else _utc_minute(text)


@lru_cache(maxsize=4096)
def _utc_minute(text: str) -> int | None:
    try:
        return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * 1000
    except ValueError:
        return None


def _ranks(form: Form, tags: Integers, known: dict[Rank, int]) -> Integers:
    if not form.tags:
        return np.full(tags.shape[1], known.setdefault(rank_from({}), len(known)), dtype=np.int64)
    base = 10**MAX_TAG_DIGITS
    distinct, places = np.unique(base ** np.arange(len(tags)) @ tags, return_inverse=True)
    found = []
    for code in distinct.tolist():
        numbers = {tag: code // base**at % base for at, tag in enumerate(form.tags)}
        found.append(known.setdefault(rank_from(numbers), len(known)))
    return np.array(found, dtype=np.int64)[places]


def _settled(form: Form, values: Floats) -> NDArray[np.bool_]:
    """Take out zeros that are no measurement, as `levels` does; return which lines have nothing to refuse."""
    by_metric = dict(zip(form.metrics, values.T, strict=True))  # views: what is written here is in ``values``
    nothing = np.full(len(values), np.nan)
    length, rate = by_metric.get(ACCEPT_LENGTH, nothing), by_metric.get(RATE, nothing)
    is_idle = length == 0
    length[is_idle] = rate[is_idle] = np.nan
    cap, block = (by_metric.get(f"spec.{name}_length", nothing) for name in ("cap", "block_accept"))
    cap[cap == 0] = np.nan
    block[block == 0] = np.nan
    is_odd: NDArray[np.bool_] = (length < 1) | (block < 1) | ((rate == 0) & (length > 1.01))
    for metric in RATIOS:
        is_odd |= by_metric.get(metric, nothing) > 1
    return ~is_odd
