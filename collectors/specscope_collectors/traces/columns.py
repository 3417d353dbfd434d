"""What is kept of a trace's events: columns of numbers, about 40 bytes each instead of a kilobyte of JSON."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specscope_collectors.traces.events import Scalar, TraceEvent, number
from specscope_collectors.traces.names import merged_label
from specscope_collectors.traces.phases import mark_of

GPU_KINDS = frozenset({"kernel", "gpu_memcpy", "gpu_memset"})
LAUNCH_KINDS = frozenset({"cuda_runtime", "cuda_driver", "hip_runtime", "hip_driver", "runtime", "driver"})
ANNOTATIONS = frozenset({"user_annotation", "gpu_user_annotation"})
MAX_NAMES, MAX_NAME = 50_000, 300
NO_CORRELATION = -1
_GRAPH = "GraphLaunch"


class Table:
    """Columns of one kind of event: number → row."""

    def __init__(self, **kinds: str) -> None:
        self._columns = {name: array(kind) for name, kind in kinds.items()}
        self._append = [column.append for column in self._columns.values()]

    def add(self, *values: float) -> None:
        """Add a row, in the order of the columns."""
        for append, value in zip(self._append, values, strict=True):
            append(value)  # type: ignore[arg-type]

    def __len__(self) -> int:
        return len(next(iter(self._columns.values())))

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return a column (a view: add nothing while it is used)."""
        column = self._columns[name]
        return np.frombuffer(column, dtype=column.typecode) if len(column) else np.zeros(0, column.typecode)


class Names:
    """Texts ↔ small numbers; beyond ``MAX_NAMES`` all share the last."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._ids: dict[str, int] = {}

    def id_of(self, text: str) -> int:
        """Return the number of a text."""
        found = self._ids.get(text)
        if found is not None:
            return found
        text = text[:MAX_NAME] if len(self.texts) < MAX_NAMES else "(more names)"
        if text not in self._ids:
            self._ids[text] = len(self.texts)
            self.texts.append(text)
        return self._ids[text]


def _kernels() -> Table:
    return Table(ts="d", dur="d", correlation="q", name="i", stream="i")


def _launches() -> Table:
    return Table(ts="d", dur="d", correlation="q", thread="i", graph="b")


def _ranges() -> Table:
    return Table(ts="d", dur="d", thread="i", name="i", mark="b")


@dataclass
class Columns:
    """Events of one rank. Times are microseconds of the trace's own clock."""

    names: Names = field(default_factory=Names)
    places: Names = field(default_factory=Names)
    """Threads, and devices with their streams."""
    kernels: Table = field(default_factory=_kernels)
    """Kernels and copies on the GPU."""
    launches: Table = field(default_factory=_launches)
    ranges: Table = field(default_factory=_ranges)
    """Named ranges on the CPU that say something of phases."""
    gpu_ranges: Table = field(default_factory=_ranges)
    """The same, mirrored on the GPU by the profiler."""
    refused: Counter[str] = field(default_factory=Counter)
    """Why events were left out → how many."""
    first_us: float = float("inf")
    last_us: float = float("-inf")

    @property
    def kept(self) -> int:
        """How many events are held."""
        return len(self.kernels) + len(self.launches) + len(self.ranges) + len(self.gpu_ranges)


class Sorter:
    """Puts events into the columns of their rank."""

    def __init__(self, max_kept: int) -> None:
        self.ranks: dict[str, Columns] = {}
        """Label of a merged trace (else "") → its events."""
        self.events = 0
        self.left_out = 0
        """Events beyond ``max_kept``."""
        self._left = max_kept
        self._marks: dict[str, int] = {}
        self._labels: dict[Scalar, str] = {}

    def add(self, events: Sequence[TraceEvent]) -> None:
        """Take a batch."""
        self.events += len(events)
        for event in events:
            kind = event.cat
            if kind is None or event.ph != "X":
                self._count_halves(event)
            elif kind in GPU_KINDS or kind in LAUNCH_KINDS or kind in ANNOTATIONS:
                self._keep(event, kind)

    def _count_halves(self, event: TraceEvent) -> None:
        """Count events that say begin and end apart, which no version of Kineto writes."""
        if event.ph == "B" and event.cat in GPU_KINDS:
            self._columns(event.pid).refused["begin and end apart"] += 1

    def _keep(self, event: TraceEvent, kind: str) -> None:
        name = str(event.name)
        mark = self._mark(name) if kind in ANNOTATIONS else 0
        if kind in ANNOTATIONS and not mark:
            return
        columns = self._columns(event.pid)
        start, length = number(event.ts), number(event.dur)
        if start is None or length is None:
            columns.refused["without a time or duration"] += 1
        elif length < 0:
            columns.refused["negative duration"] += 1
        elif self._left <= 0:
            self.left_out += 1
        else:
            self._left -= 1
            columns.first_us = min(columns.first_us, start)
            columns.last_us = max(columns.last_us, start + length)
            _put(columns, event, kind, name, mark, start, length)

    def _mark(self, name: str) -> int:
        found = self._marks.get(name)
        if found is None:
            found = int(mark_of(name) or 0)
            if len(self._marks) < MAX_NAMES:
                self._marks[name] = found
        return found

    def _columns(self, pid: Scalar) -> Columns:
        label = self._labels.get(pid)
        if label is None:
            label = merged_label(pid)
            if len(self._labels) < MAX_NAMES:
                self._labels[pid] = label
        found = self.ranks.get(label)
        if found is None:
            found = self.ranks[label] = Columns()
        return found


def _put(
    columns: Columns, event: TraceEvent, kind: str, name: str, mark: int, start: float, length: float
) -> None:
    if kind in GPU_KINDS:
        place = columns.places.id_of(f"{event.pid}/{event.tid}")
        columns.kernels.add(start, length, _correlation(event), columns.names.id_of(name), place)
        return
    thread = columns.places.id_of(f"{event.pid}/{event.tid}")
    if kind in LAUNCH_KINDS:
        correlation = _correlation(event)
        if correlation != NO_CORRELATION:
            columns.launches.add(start, length, correlation, thread, _GRAPH in name)
        return
    table = columns.ranges if kind == "user_annotation" else columns.gpu_ranges
    table.add(start, length, thread, columns.names.id_of(name), mark)


def _correlation(event: TraceEvent) -> int:
    found = number(event.args.correlation) if event.args is not None else None
    return int(found) if found is not None and 0 < found < 2**62 else NO_CORRELATION
