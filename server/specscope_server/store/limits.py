"""Limits of what one batch may bring, and the tests of single values against them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain

from specscope_server.store.refusal import Reason

BEGINNING_MS = int(datetime(2015, 1, 1, tzinfo=UTC).timestamp() * 1000)
"""No engine that we watch is older; an earlier time is a broken clock or another unit."""
MAX_AHEAD_MS = 86_400_000

MAX_LABELS = 64
MAX_LABEL_BYTES = 1024
MAX_TEXT_BYTES = 65_536
MAX_INTEGER = 2**63 - 1
MAX_BUCKETS = 512


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits that an operator may set."""

    max_series_per_launch: int = 50_000
    """New label sets beyond this many are refused; a restart of the engine starts again at 0."""
    max_age_ms: int | None = None
    """Refuse samples older than this (set it to the retention of raw samples); None = back to 2015."""

    def oldest_ms(self, now_ms: int) -> int:
        """Return the time before which samples are refused."""
        if self.max_age_ms is None:
            return BEGINNING_MS
        return max(BEGINNING_MS, now_ms - self.max_age_ms)


def time_reason(time_ms: int, oldest_ms: int, now_ms: int) -> Reason | None:
    """Return why a time cannot be meant."""
    if time_ms < oldest_ms:
        return Reason.TOO_OLD
    return Reason.FUTURE if time_ms > now_ms + MAX_AHEAD_MS else None


def label_reason(labels: Mapping[str, str]) -> Reason | None:
    """Return why a label set is refused."""
    if len(labels) > MAX_LABELS:
        return Reason.TOO_MANY_LABELS
    together = "".join(chain(labels, labels.values()))
    if len(together) <= MAX_LABEL_BYTES and together.isascii() and "\0" not in together:
        return None  # nearly always: one look at all instead of one at each
    for name, value in labels.items():
        if not (is_storable(name) and is_storable(value)):
            return Reason.BAD_TEXT
        if max(len(name.encode()), len(value.encode())) > MAX_LABEL_BYTES:
            return Reason.LABEL_TOO_LONG
    return None


def is_storable(text: str) -> bool:
    """Whether both databases can hold the text: valid Unicode without NUL."""
    if "\0" in text:
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def text_reason(*texts: str | None) -> Reason | None:
    """Return why one of the texts is refused."""
    for text in texts:
        if text is None:
            continue
        if not is_storable(text):
            return Reason.BAD_TEXT
        if len(text.encode()) > MAX_TEXT_BYTES:
            return Reason.TOO_LARGE
    return None


def number_reason(*numbers: float | None) -> Reason | None:
    """Return why one of the numbers (counts, durations) is refused."""
    for number in numbers:
        if number is None:
            continue
        if isinstance(number, float) and not math.isfinite(number):
            return Reason.NOT_FINITE
        if number < 0:
            return Reason.NEGATIVE_COUNT
        if number > MAX_INTEGER:
            return Reason.TOO_LARGE
    return None
