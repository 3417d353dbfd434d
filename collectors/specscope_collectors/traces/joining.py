"""Kernels → occurrences of phases: by the launch that started them, else by the GPU's own ranges."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from specscope_collectors.traces.columns import NO_CORRELATION, Columns
from specscope_collectors.traces.intervals import Floats, Ints
from specscope_collectors.traces.spans import Occurrence

NOWHERE = -1


def by_launch(columns: Columns, occurrences: list[Occurrence]) -> Ints:
    """Return the occurrence of each kernel, shape (kernels,); `NOWHERE` where no launch says.

    A launch belongs to the occurrence on its own thread in which it begins. All kernels of a CUDA graph carry
    the correlation of its launch.
    """
    launches = columns.launches
    place = containing(launches["ts"], launches["thread"], occurrences)
    order = np.argsort(launches["correlation"], kind="stable")
    known = launches["correlation"][order]
    wanted = columns.kernels["correlation"]
    if not len(known):
        return np.full(len(wanted), NOWHERE, dtype=np.int64)
    found = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    joined = (known[found] == wanted) & (wanted != NO_CORRELATION)
    return np.where(joined, place[order][found], NOWHERE)


def by_gpu_range(columns: Columns, occurrences: list[Occurrence]) -> Ints:
    """Return the occurrence (of ranges on the GPU) in which each kernel begins on the same device."""
    devices = _devices(columns)
    middle = columns.kernels["ts"] + columns.kernels["dur"] / 2
    threads = devices[columns.kernels["stream"]] if len(columns.kernels) else np.zeros(0, np.int64)
    moved = [
        Occurrence(each.phase, each.start, each.end, int(devices[each.thread]), each.batch_size)
        for each in occurrences
    ]
    return containing(middle, threads, moved)


def _devices(columns: Columns) -> Ints:
    """Return a number for the device of each place (``device/stream``)."""
    names = [text.rpartition("/")[0] for text in columns.places.texts]
    known = {name: number for number, name in enumerate(dict.fromkeys(names))}
    return np.array([known[name] for name in names], dtype=np.int64)


def containing(times: Floats, threads: NDArray[Any], occurrences: list[Occurrence]) -> Ints:
    """Return the occurrence in which each time lies on its thread, shape (times,)."""
    result = np.full(len(times), NOWHERE, dtype=np.int64)
    for thread in {each.thread for each in occurrences}:
        places = [number for number, each in enumerate(occurrences) if each.thread == thread]
        starts = np.array([occurrences[place].start for place in places])
        ends = np.array([occurrences[place].end for place in places])
        own = np.flatnonzero(threads == thread)
        at = np.searchsorted(starts, times[own], side="right") - 1
        inside = (at >= 0) & (times[own] < ends[np.maximum(at, 0)])
        result[own[inside]] = np.array(places, dtype=np.int64)[at[inside]]
    return result
