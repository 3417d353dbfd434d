"""What a source remembers of a target's counters between scrapes, and its compact form for checkpoints."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, TypeAlias

import msgspec
import zstandard

LabelPairs: TypeAlias = tuple[tuple[str, str], ...]
"""Labels as (name, value) pairs sorted by name: hashable, equal when the sets are equal."""

SeriesKey: TypeAlias = tuple[str, LabelPairs]
"""(canonical metric, labels)."""

MAX_CHECKPOINT_BYTES = 256 * 1024 * 1024
"""Largest decompressed checkpoint that is read back."""

_FORMAT = 1

_Position: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]


class CheckpointError(ValueError):
    """These bytes are no counter memory; start anew (growth since the last scrape is then not known)."""


class HistogramState(msgspec.Struct, frozen=True, array_like=True):
    """A cumulative-in-time histogram at one instant, or the growth of one.

    ``buckets`` are per-bucket counts, one more than ``bounds`` (the last is the overflow, +Inf).
    """

    bounds: tuple[float, ...]
    buckets: tuple[float, ...]
    count: float
    sum: float


class _Wire(msgspec.Struct, array_like=True):
    """Layout of a checkpoint: each label set stands once, series refer to it by position."""

    format: int
    scraped_ms: int | None
    label_sets: list[LabelPairs]
    counters: list[tuple[str, _Position, float, int]]
    histograms: list[tuple[str, _Position, HistogramState, int]]


@dataclass(frozen=True, slots=True)
class CounterMemory:
    """Last value and time of every series of one target. Treat the dicts as read-only."""

    scraped_ms: int | None = None
    """Time of the last good scrape; None = never scraped."""
    counters: Mapping[SeriesKey, tuple[float, int]] = field(default_factory=dict)
    """Series → (last value, time it was last read, epoch ms)."""
    histograms: Mapping[SeriesKey, tuple[HistogramState, int]] = field(default_factory=dict)

    def forgotten(self, down_ms: int | None = None) -> CounterMemory:
        """Return the memory of a process that just started: all series at 0 since the last good scrape.

        ``down_ms`` is when nothing served at the target: the process cannot have grown before that.
        """
        if self.scraped_ms is None or down_ms is None:
            return CounterMemory(self.scraped_ms)
        return CounterMemory(max(self.scraped_ms, down_ms))

    def rebased(self, time_ms: int) -> CounterMemory:
        """Return the same values with no time after ``time_ms``: for a clock that went back."""
        return CounterMemory(
            time_ms,
            {key: (value, min(seen_ms, time_ms)) for key, (value, seen_ms) in self.counters.items()},
            {key: (state, min(seen_ms, time_ms)) for key, (state, seen_ms) in self.histograms.items()},
        )

    def encode(self) -> bytes:
        """Return this memory as compressed MessagePack."""
        label_sets: dict[LabelPairs, int] = {}

        def position(labels: LabelPairs) -> int:
            return label_sets.setdefault(labels, len(label_sets))

        counters = [(key[0], position(key[1]), value, ms) for key, (value, ms) in self.counters.items()]
        histograms = [(key[0], position(key[1]), state, ms) for key, (state, ms) in self.histograms.items()]
        wire = _Wire(_FORMAT, self.scraped_ms, list(label_sets), counters, histograms)
        return zstandard.ZstdCompressor(level=3).compress(msgspec.msgpack.encode(wire))

    @classmethod
    def decode(cls, data: bytes) -> CounterMemory:
        """Return the memory that `encode` wrote; raise `CheckpointError` if ``data`` is anything else."""
        wire = _read(data)
        try:
            memory = cls(
                wire.scraped_ms,
                {(name, wire.label_sets[at]): (value, ms) for name, at, value, ms in wire.counters},
                {(name, wire.label_sets[at]): (state, ms) for name, at, state, ms in wire.histograms},
            )
        except IndexError as error:
            raise CheckpointError("counter checkpoint names a label set that it does not hold") from error
        _check(memory)
        return memory


def _read(data: bytes) -> _Wire:
    try:
        size = zstandard.frame_content_size(data)
        if not 0 <= size <= MAX_CHECKPOINT_BYTES:
            raise CheckpointError(
                f"counter checkpoint claims {size} bytes, at most {MAX_CHECKPOINT_BYTES} are read"
            )
        wire = msgspec.msgpack.decode(zstandard.ZstdDecompressor().decompress(data), type=_Wire)
    except (zstandard.ZstdError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise CheckpointError(f"counter checkpoint of {len(data)} bytes cannot be read: {error}") from error
    if wire.format != _FORMAT:
        raise CheckpointError(f"counter checkpoint has format {wire.format}, this version reads {_FORMAT}")
    return wire


def _check(memory: CounterMemory) -> None:
    """Refuse values that would poison every later subtraction."""
    _check_finite("counter", ((key, (value,)) for key, (value, _) in memory.counters.items()))
    for key, (state, _) in memory.histograms.items():
        if len(state.buckets) != len(state.bounds) + 1:
            raise CheckpointError(
                f"histogram {key[0]} in the counter checkpoint has buckets that do not fit its bounds"
            )
        _check_finite("histogram", [(key, (*state.bounds, *state.buckets, state.count, state.sum))])


def _check_finite(what: str, rows: Iterable[tuple[SeriesKey, tuple[float, ...]]]) -> None:
    for key, values in rows:
        if not all(math.isfinite(value) for value in values):
            raise CheckpointError(f"{what} {key[0]} in the counter checkpoint is not finite")
