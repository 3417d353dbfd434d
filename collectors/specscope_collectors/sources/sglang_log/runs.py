"""Lines that are read together, and the block that they are from."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from specscope_collectors.sources.sglang_log.columns import Columns, Floats, Integers
from specscope_collectors.sources.sglang_log.levels import ACCEPT_LENGTH
from specscope_collectors.sources.sglang_log.ranks import Rank

MIN_RUN = 24
"""Fewer lines are read one by one: taking them together costs as much."""


@dataclass(frozen=True, slots=True)
class Run:
    """Lines that are read together: nothing else that matters stands between them."""

    lines: Integers
    """Which lines of the block, ascending."""
    times_ms: Integers
    of_rank: Integers
    """Index of each line's rank."""
    ranks: tuple[Rank, ...]
    parts: tuple[Columns, ...]
    """The same lines by form."""

    def between(self, start: int, stop: int) -> Run:
        """Return the lines from the ``start``-th to before the ``stop``-th; there must be some."""
        chosen = slice(start, stop)
        lines = self.lines[chosen]
        ends = (int(lines[0]), int(lines[-1]) + 1)
        parts = (part.rows(slice(*part.lines.searchsorted(ends).tolist())) for part in self.parts)
        return Run(
            lines,
            self.times_ms[chosen],
            self.of_rank[chosen],
            self.ranks,
            tuple(part for part in parts if len(part.lines)),
        )

    def count(self, ranks: list[int] | None = None) -> int:
        """Return how many values all or these ranks told."""
        return sum(part.count(ranks) for part in self.parts)

    def told_together(self, rank: int, *metrics: str) -> tuple[Floats, ...]:
        """Return the values of these metrics in the lines of a rank that tell all of them."""
        told = [part.told_together(rank, metrics) for part in self.parts]
        values = np.concatenate([values for _, values in told])
        if len([lines for lines, _ in told if len(lines)]) > 1:
            values = values[np.argsort(np.concatenate([lines for lines, _ in told]))]
        return tuple(values.T)

    def told_apart(self, last_ms: dict[Rank, int]) -> Integers:
        """Tell lines of one rank and second apart, as `lines.StatusReader` does; update ``last_ms``."""
        times_ms = self.times_ms.copy()
        for at in np.unique(self.of_rank).tolist():
            chosen = np.flatnonzero(self.of_rank == at)
            rank = self.ranks[at]
            times_ms[chosen] = _told_apart(times_ms[chosen], last_ms.get(rank))
            last_ms[rank] = int(times_ms[chosen[-1]])
        return times_ms

    def stops(self, is_known: list[bool], longest: float) -> list[int]:
        """Return the first line of each unknown rank, and all with a longer accept length."""
        found = set()
        if not all(is_known):
            distinct, first = np.unique(self.of_rank, return_index=True)
            pairs = zip(distinct.tolist(), first.tolist(), strict=True)
            found = {place for rank, place in pairs if not is_known[rank]}
        for part in self.parts:
            length = part.column(ACCEPT_LENGTH)
            if length is not None and (length > longest).any():
                found.update(self.lines.searchsorted(part.lines[length > longest]).tolist())
        return sorted(found)


def _told_apart(times_ms: Integers, last_ms: int | None) -> Integers:
    """Return times: within a second each is later than the one before, as far as the second reaches.

    Within a second, ``time[i] = max(stamp[i], time[i-1] + 1)``: so ``time[i] - i`` is a running maximum.
    """
    stamps = times_ms if last_ms is None else np.append(last_ms, times_ms)
    seconds = stamps // 1000
    is_new = np.append(True, seconds[1:] != seconds[:-1])
    if (np.diff(seconds) < 0).any():  # a clock was set back: second by second
        borders = np.append(np.flatnonzero(is_new), len(stamps)).tolist()
        found = np.concatenate([_within(stamps[a:b], seconds[a:b]) for a, b in pairwise(borders)])
    else:
        found = _within(stamps, seconds)
    return found[len(stamps) - len(times_ms) :]


def _within(stamps: Integers, seconds: Integers) -> Integers:
    """Do it where seconds do not fall."""
    places = np.arange(len(stamps))
    is_new = np.append(True, seconds[1:] != seconds[:-1])
    places -= np.maximum.accumulate(np.where(is_new, places, 0))
    return np.minimum(np.maximum.accumulate(stamps - places) + places, seconds * 1000 + 999)


@dataclass(frozen=True, slots=True)
class Mixture:
    """One block of lines, sorted; lines that are in neither say nothing."""

    starts: Integers
    ends: Integers
    singly: Integers
    """Lines to be read one by one, ascending."""
    run: Run
    """Lines of known shapes."""

    def bounds(self, line: int) -> tuple[int, int]:
        """Return where a line starts and ends in the block."""
        return int(self.starts[line]), int(self.ends[line])

    def pieces(self, stops: Callable[[Run], list[int]]) -> Iterator[int | Run]:
        """Yield lines and runs in the order of the log. ``stops``: lines of a run to be read one by one."""
        cuts = self.run.lines.searchsorted(self.singly).tolist()
        done = 0
        for line, cut in zip(self.singly.tolist(), cuts, strict=True):
            yield from self._stretch(done, cut, stops)
            yield line
            done = cut
        yield from self._stretch(done, len(self.run.lines), stops)

    def _stretch(self, start: int, end: int, stops: Callable[[Run], list[int]]) -> Iterator[int | Run]:
        done = start
        for stop in stops(self.run.between(start, end)) if end - start >= MIN_RUN else ():
            yield from self._together(done, start + stop)
            yield int(self.run.lines[start + stop])
            done = start + stop + 1
        yield from self._together(done, end)

    def _together(self, start: int, end: int) -> Iterator[int | Run]:
        if end - start >= MIN_RUN:
            yield self.run.between(start, end)
        else:
            yield from self.run.lines[start:end].tolist()
