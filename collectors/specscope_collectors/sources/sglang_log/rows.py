"""Levels of status lines, kept as they were read and made into records when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Protocol

from specscope_collectors.observations import Labels, Level
from specscope_collectors.sources.sglang_log.ranks import Rank

if TYPE_CHECKING:  # numpy comes with the server only
    from specscope_collectors.sources.sglang_log.runs import Run


class Rows(Protocol):
    """Levels of one launch."""

    def keep(self, leads: Callable[[Rank], bool]) -> int:
        """Leave out the ranks that only mirror another one; return how many levels stay."""
        ...

    def levels(self) -> Iterator[Level]:
        """Yield what stays."""
        ...


@dataclass(slots=True)
class Row:
    """One line."""

    rank: Rank
    found: list[Level]

    def keep(self, leads: Callable[[Rank], bool]) -> int:
        """See `Rows.keep`."""
        if not leads(self.rank):
            self.found = []
        return len(self.found)

    def levels(self) -> Iterator[Level]:
        """See `Rows.levels`."""
        return iter(self.found)


@dataclass(slots=True)
class RunRows:
    """The lines of a run."""

    run: Run
    times_ms: list[int]
    """As they are stored: lines of one rank and second told apart."""
    labels: list[Labels | None]
    """By index of the rank; None = left out, or not in the run."""

    def keep(self, leads: Callable[[Rank], bool]) -> int:
        """See `Rows.keep`."""
        pairs = zip(self.run.ranks, self.labels, strict=True)
        self.labels = [labels if labels is not None and leads(rank) else None for rank, labels in pairs]
        return self.run.count([at for at, labels in enumerate(self.labels) if labels is not None])

    def levels(self) -> Iterator[Level]:
        """See `Rows.levels`."""
        lines: list[list[Level]] = [[]] * len(self.times_ms)
        for part in self.run.parts:
            places = self.run.lines.searchsorted(part.lines).tolist()
            metrics = part.form.metrics
            for place, rank, row in zip(places, part.of_rank.tolist(), part.values.tolist(), strict=True):
                labels = self.labels[rank]
                if labels is not None:
                    time_ms = self.times_ms[place]
                    lines[place] = [
                        Level(metric=metric, labels=labels, time_ms=time_ms, value=value)
                        for metric, value in zip(metrics, row, strict=True)
                        if value == value  # NaN: the line does not tell it
                    ]
        return chain.from_iterable(lines)
