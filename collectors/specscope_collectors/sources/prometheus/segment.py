"""A stretch of one server's history, read from its beginning on and stored under an id of its own.

What is old is asked for on a coarse grid, what is younger scrape by scrape. Where a grid shows that something
happened between two of its points (a restart, an end, a beginning), the scrapes between them are read.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import msgspec

from specscope_collectors.checkpoint import KnownCodec
from specscope_collectors.exposition.mapped import Mapped
from specscope_collectors.launches import Known
from specscope_collectors.observations import Batch, Level, Observation, Sink, SourceHealth, Target
from specscope_collectors.sources.prometheus.answers import RawSeries
from specscope_collectors.sources.prometheus.api import MAX_POINTS, Api, ApiProblem
from specscope_collectors.sources.prometheus.chunks import ChunkSize
from specscope_collectors.sources.prometheus.replay import Replay, Step, is_of
from specscope_collectors.sources.prometheus.scrapes import Scrape, put_together, target_labels
from specscope_collectors.sources.prometheus.state import State, encode

BATCH = 10_000
"""Observations stored at once."""
LATE_MS = 600_000
"""Samples may come in so late (remote write); only what is older counts as read where nothing was found."""
LOOKBACK_MS = 300_000
"""Age up to which a server takes a sample for the value of now (Prometheus' default)."""
FIRST_POINTS, EMPTY_POINTS = 50, 250
"""Of the first grid, and of the longest after an empty one."""
FINE_STEP_MS = 15_000
"""Grid where raw samples cannot be had at all."""


InThread: TypeAlias = Callable[[Callable[[], Any]], Awaitable[Any]]
"""Runs work beside the event loop. Whoever is cancelled meanwhile learns of it when the work has ended."""


class SharedError(RuntimeError):
    """Another process reads the same history under the same id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How the history of one server is read."""

    api: Api
    target: Target
    selector: str
    raw_ms: int
    """Age up to which every scrape is read."""
    step_ms: int
    """Grid for what is older."""
    in_thread: InThread


@dataclass(slots=True)
class Segment:
    """One stretch; `advance` does the next piece of it."""

    reading: Reading
    replay: Replay
    sink: Sink
    collector_id: str
    state: State
    sequence: int
    bound_ms: int | None = None
    """The first scrape that the segment after this one has stored as its baseline; None for the newest."""
    _stored: State = field(init=False)
    _pending: list[Observation] = field(default_factory=list)
    _codec: KnownCodec = field(default_factory=KnownCodec)
    _raw_size: ChunkSize = field(default_factory=ChunkSize)
    _grid_size: ChunkSize = field(init=False)
    _raw_refused: bool = False
    _doubled: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        step_ms = self.reading.step_ms
        self._stored = self.state
        self._grid_size = ChunkSize(
            FIRST_POINTS * step_ms, step_ms, MAX_POINTS * step_ms, EMPTY_POINTS * step_ms
        )

    async def advance(self, until_ms: int, now_ms: int) -> bool:
        """Read and store the next chunk; return whether that reached ``until_ms`` (or the bound).

        Raises `ApiProblem`, `SharedError`, and what the sink raises; then nothing is remembered of it.
        """
        limit_ms = until_ms if self.bound_ms is None else min(until_ms, self.bound_ms)
        done_ms = self.state.place.done_to_ms
        if done_ms >= limit_ms:
            return True
        try:
            return await self._advance(done_ms, limit_ms, now_ms)
        except BaseException:
            self.state, self._pending = self._stored, []
            raise

    async def _advance(self, done_ms: int, limit_ms: int, now_ms: int) -> bool:
        step_ms = self._step_ms
        raw_ms = 0 if self._raw_refused else max(self.reading.raw_ms, LATE_MS)
        old_ms = min(limit_ms, now_ms - raw_ms)
        first_ms, last_ms = (done_ms // step_ms + 1) * step_ms, old_ms // step_ms * step_ms
        close_to_ms = min(self.state.place.close_to_ms, limit_ms)
        if done_ms < close_to_ms and not self._raw_refused:
            reached_ms = await self._raw(done_ms, close_to_ms, now_ms)
        elif first_ms <= last_ms:
            reached_ms = await self._grid(first_ms, last_ms, now_ms)
        elif self._raw_refused:
            reached_ms = limit_ms
        else:
            reached_ms = await self._raw(done_ms, limit_ms, now_ms)
        return reached_ms >= limit_ms

    @property
    def _step_ms(self) -> int:
        return min(FINE_STEP_MS, self.reading.step_ms) if self._raw_refused else self.reading.step_ms

    # Scrape by scrape

    async def _raw(self, from_ms: int, limit_ms: int, now_ms: int) -> int:
        """Read one chunk of raw samples; return where it ended, ``from_ms`` when it must be tried smaller."""
        to_ms = min(from_ms + self._raw_size.length_ms, limit_ms)
        try:
            series = await self.reading.api.raw(self.reading.selector, from_ms, to_ms)
        except ApiProblem as problem:
            if not problem.too_much:
                raise
            if not self._raw_size.halve(to_ms - from_ms):
                if problem.is_passing:
                    raise
                self._raw_refused = True
            return from_ms
        samples = await self.reading.in_thread(partial(self._take_raw, series, from_ms, to_ms, now_ms))
        self._raw_size.got(samples, to_ms - from_ms)
        return to_ms

    def _take_raw(self, series: list[RawSeries], from_ms: int, to_ms: int, now_ms: int) -> int:
        scrapes, samples = self._scrapes(series, from_ms)
        for scrape in scrapes:
            if self._is_next(scrape):
                self._collect(scrape)
        self._finish(to_ms, now_ms)
        return samples

    def _is_next(self, scrape: Scrape) -> bool:
        place = self.state.place
        if place.last_ms is not None and scrape.time_ms <= place.last_ms:
            return False
        if scrape.time_ms == self.bound_ms and place.first_ms is None:
            return False  # with nothing before it, the segment after this one has said it all
        is_ours = is_of(place, scrape)
        self.replay.tally.others += scrape.is_good and not is_ours
        return is_ours

    # On a grid

    async def _grid(self, first_ms: int, last_ms: int, now_ms: int) -> int:
        step_ms = self._step_ms
        points = max(1, min(self._grid_size.length_ms // step_ms, MAX_POINTS))
        last_ms = min(last_ms, first_ms + (points - 1) * step_ms)
        try:
            series = await self.reading.api.grid(self.reading.selector, first_ms, last_ms, step_ms)
        except ApiProblem as problem:
            if not (problem.too_much and self._grid_size.halve(last_ms - first_ms + step_ms)):
                raise
            return self.state.place.done_to_ms
        found, count = await self.reading.in_thread(partial(self._lay_out, series, first_ms))
        self._grid_size.got(count, points * step_ms)
        return await self._along(found, range(first_ms, last_ms + 1, step_ms), now_ms)

    def _lay_out(self, series: list[RawSeries], first_ms: int) -> tuple[dict[int, list[Scrape]], int]:
        scrapes, samples = self._scrapes(series, first_ms - 1)
        found: dict[int, list[Scrape]] = {}
        for scrape in scrapes:
            found.setdefault(scrape.time_ms, []).append(scrape)
        return found, samples

    async def _along(self, found: dict[int, list[Scrape]], grid: range, now_ms: int) -> int:
        """Go along the grid, and look closely where something happened."""
        at = 0
        while at < len(grid):
            rest = grid[at:]
            stop = await self.reading.in_thread(partial(self._take_dull, found, rest, now_ms))
            if stop is None:
                break
            to_ms = grid[at + stop]
            self._look_closely(to_ms)
            while (from_ms := self.state.place.done_to_ms) < to_ms:
                await self._raw(from_ms, to_ms, now_ms)
                if self._raw_refused:
                    return from_ms
            at += stop + 1
        return grid[-1]

    def _look_closely(self, to_ms: int) -> None:
        place = msgspec.structs.replace(self.state.place, close_to_ms=to_ms)
        self.state = msgspec.structs.replace(self.state, place=place)

    def _take_dull(self, found: dict[int, list[Scrape]], grid: range, now_ms: int) -> int | None:
        """Take points between which nothing happened; return the position of the first other one."""
        for at, time_ms in enumerate(grid):
            scrape = next((each for each in found.get(time_ms, ()) if self._is_next(each)), None)
            mapped = self.replay.read(self.state, scrape, self._doubled) if scrape is not None else None
            if not self._raw_refused and not self._is_dull(scrape, mapped):
                return at
            if scrape is not None and mapped is not None:
                self._add(scrape, self.replay.take(self.state, scrape, mapped, exact=False))
            self._move(min(time_ms, now_ms - LATE_MS))
        self._finish(grid[-1], now_ms)
        return None

    def _is_dull(self, scrape: Scrape | None, mapped: Mapped | None) -> bool:
        place = self.state.place
        was_there = (
            place.last_ms is not None
            and not place.failed
            and place.done_to_ms - place.last_ms <= place.patience_ms
        )
        if scrape is None or mapped is None:
            return not was_there
        return was_there and self._is_settled(scrape) and not self.replay.fell(self.state, scrape, mapped)

    def _is_settled(self, scrape: Scrape) -> bool:
        """Return whether nothing happened for so long that a grid shows everything.

        A point of a grid may show a value as old as `LOOKBACK_MS`, also of a process that has ended since.
        And a process younger than a step may be outgrown by the next one within a step.
        """
        changed_ms = self.state.place.changed_ms
        return changed_ms is not None and scrape.time_ms >= changed_ms + LOOKBACK_MS + self._step_ms

    # Both

    def _scrapes(self, series: list[RawSeries], after_ms: int) -> tuple[Iterable[Scrape], int]:
        self._learn(target_labels(series))
        together = put_together(series, frozenset(self.state.place.added), after_ms)
        self._doubled = together.doubled
        return together.scrapes, together.samples

    def _learn(self, names: frozenset[str]) -> None:
        """Remember which labels the scraper adds; series that had one of them begin anew without it."""
        place, memory = self.state.place, self.state.memory
        new = names - set(place.added)
        if not new:
            return
        place = msgspec.structs.replace(place, added=tuple(sorted(names | set(place.added))))
        keys = (*memory.counters, *memory.histograms)
        if any(name in new for _, labels in keys for name, _ in labels):
            memory = type(memory)()
        self.state = msgspec.structs.replace(self.state, place=place, memory=memory)

    def _collect(self, scrape: Scrape) -> None:
        mapped = self.replay.read(self.state, scrape, self._doubled)
        self._add(scrape, self.replay.take(self.state, scrape, mapped))

    def _add(self, scrape: Scrape, step: Step) -> None:
        before, after = self.state.known, step.state.known
        if self._pending and before is not after and _key(before) != _key(after):
            self._flush()
        found = step.observations
        if scrape.time_ms == self.bound_ms:  # the segment after this one has the levels already
            found = [each for each in found if not isinstance(each, Level)]
        self._pending += found
        self.state = step.state
        if len(self._pending) >= BATCH:
            self._flush()

    def _move(self, time_ms: int) -> None:
        place = self.state.place
        if time_ms > place.done_to_ms:
            place = msgspec.structs.replace(place, done_to_ms=time_ms)
            self.state = msgspec.structs.replace(self.state, place=place)

    def _finish(self, to_ms: int, now_ms: int) -> None:
        """Note that everything up to ``to_ms`` was read, and store."""
        self._move(min(to_ms, now_ms - LATE_MS))
        if self._pending or self.state.place.done_to_ms - self._stored.place.done_to_ms >= LATE_MS // 2:
            self._flush()

    def _flush(self) -> None:
        self._apply(tuple(self._pending), self.state)
        self._pending = []

    def _apply(self, observations: tuple[Observation, ...], state: State) -> None:
        batch = Batch(
            collector_id=self.collector_id,
            sequence=self.sequence + 1,
            target=self.reading.target,
            launch_key=_key(state.known),
            observations=observations,
            checkpoint=encode(state, self._codec),
        )
        if not self.sink.apply(batch):
            raise SharedError(
                f"another process reads the history of {self.reading.target.name} too; stop one of them"
            )
        self.sequence += 1
        self._stored = state

    def tell(self, health: SourceHealth) -> None:
        """Store how reading went."""
        self._apply((health,), self._stored)


def _key(known: Known | None) -> str | None:
    return known.launch.key if known is not None else None
