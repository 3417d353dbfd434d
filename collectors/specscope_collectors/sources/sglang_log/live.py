"""Read a log while it is written: piece by piece, and resumable from what is stored with each piece."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import Any

import msgspec

from specscope_collectors.logs.blocks import Block
from specscope_collectors.logs.wrappers import Parts
from specscope_collectors.observations import Event, Launch
from specscope_collectors.sources.sglang_log.events import MINUTE_MS, Gathered, Gatherer
from specscope_collectors.sources.sglang_log.ranks import Rank
from specscope_collectors.sources.sglang_log.rate_definition import UNDETERMINED
from specscope_collectors.sources.sglang_log.reading import LogOptions, LogReader, Portion
from specscope_collectors.sources.sglang_log.signals import Signal

FIRST_DECISION, SURELY_UNDETERMINED = 5, 40
"""Pairs after which the definition of the printed rate is looked for, and given up for now."""
REMEMBERED_PAIRS = 400
_SAME_SECOND_MS = 2_000
"""Older times of ranks cannot meet the next one."""
_RankNumbers = tuple[int | None, int, int, int | None]


class Memory(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What the next lines depend on, as of the end of a piece."""

    launch: Launch | None = None
    is_ready: bool = False
    has_lines: bool = False
    forms: list[str] = []
    """Of the launch's dump and lines."""
    last_ms: int | None = None
    """Of the newest stamp."""
    day: str | None = None
    year: int | None = None
    rank_ms: list[tuple[_RankNumbers, int]] = []
    leaders: list[tuple[int | None, int, int]] = []
    parts: list[tuple[bytes, bytes]] = []
    """Stream → its unfinished line."""
    pairs: list[tuple[float, float, int]] = []
    told: str = ""
    """Definition of the printed rate that was told of this launch."""
    decide_at: int = FIRST_DECISION
    """Pairs at which it is looked for again."""
    gathered: list[tuple[bytes, int, Gathered | None]] = []


class LiveGatherer(Gatherer):
    """Tells the first line of a kind and minute at once, and the further ones when the minute is over."""

    def __init__(self) -> None:
        super().__init__()
        self.told: dict[tuple[bytes, int], Gathered | None] = {}
        """What was told at once → the further lines."""
        self.now_ms = 0

    def add(self, signal: Signal, time_ms: int, line: str, detail: dict[str, Any]) -> None:
        """Note one line."""
        key = (signal.needle, time_ms // MINUTE_MS)
        if key not in self.told:
            self.told[key] = None
            super().add(signal, time_ms, line, detail)
            return
        further = Gatherer({key: gathered} if (gathered := self.told[key]) is not None else {})
        further.add(signal, time_ms, line, detail)
        self.told[key] = further.pending[key]

    def take(self) -> list[Event]:
        """Return what is to be told now."""
        for key, further in [*self.told.items()]:
            if (key[1] + 1) * MINUTE_MS <= self.now_ms:
                del self.told[key]
                if further is not None:
                    self.pending[key] = further
        return super().take()

    def end(self) -> None:
        """Let everything be told: another launch begins."""
        self.pending |= {key: further for key, further in self.told.items() if further is not None}
        self.told.clear()


class LiveReader(LogReader):
    """A `LogReader` that is fed."""

    def __init__(self, options: LogOptions, memory: Memory | None = None) -> None:
        super().__init__(options)
        self._live = self._gatherer = LiveGatherer()
        self._fed = 0
        self._told = ""
        self._decide_at = FIRST_DECISION
        if memory is not None:
            self._recall(memory)

    @property
    def launch(self) -> Launch | None:
        """The launch in force."""
        return self._launches.current

    @property
    def last_ms(self) -> int | None:
        """Time of the newest line that has one."""
        return self._clock.last_ms

    def feed(self, data: bytes, now_ms: int, *, is_cut: bool = False) -> Iterator[Portion]:
        """Take the next whole lines and yield what they say; ``data`` may be empty when time has passed."""
        self._live.now_ms = max(now_ms, self._clock.last_ms or 0)
        start, self._fed = self._fed, self._fed + max(1, len(data))
        self._inside = start
        if data:
            lines = data.count(b"\n") + (not data.endswith(b"\n"))
            if b"\r" in data:
                data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            self._block(Block(data, start, self._fed, lines, is_cut=is_cut))
            self._pending.records += self._counted(self._decided())
        self._close(self._fed)
        yield from self._take()

    def end(self) -> Iterator[Portion]:
        """Say that nothing will come any more, and yield what was kept back."""
        self._lines(self._joiner.rest(), None, may_be_cut=True)
        self._live.end()
        self._pending.records += self._counted(self._accounts.conclude())
        self._accounts.count_mirrors()
        self._fed += 1
        self._close(self._fed)
        yield from self._take()

    def memory(self) -> Memory:
        """Return what a later reader needs to go on."""
        launch, clock = self._launches.current, self._clock
        key = launch.key if launch else ""
        pairs = self._accounts.pairs[key].pairs.most_common(REMEMBERED_PAIRS) if launch else []
        return Memory(
            launch=launch,
            is_ready=self._launches.is_ready,
            has_lines=self._launches.has_lines,
            forms=sorted(self._launches.forms),
            last_ms=clock.last_ms,
            day=clock.date.isoformat() if clock.date else None,
            year=clock.year,
            rank_ms=[
                ((rank.dp, rank.pp, rank.tp, rank.ep), ms)
                for rank, ms in self._status.last_ms.items()
                if ms > (clock.last_ms or 0) - _SAME_SECOND_MS
            ],
            leaders=[(dp, *place) for (of, dp), place in self._leaders.best.items() if of == key],
            parts=[(stream, parts.joined()) for stream, parts in self._joiner.parts.items()],
            pairs=[(length, rate, count) for (length, rate), count in pairs],
            told=self._told,
            decide_at=self._decide_at,
            gathered=[(needle, minute, further) for (needle, minute), further in self._live.told.items()],
        )

    def _recall(self, memory: Memory) -> None:
        clock, launch = self._clock, memory.launch
        clock.last_ms, clock.year = memory.last_ms, memory.year
        clock.date = date.fromisoformat(memory.day) if memory.day else None
        self._status.last_ms.update((Rank(*numbers), ms) for numbers, ms in memory.rank_ms)
        self._joiner.parts.update((stream, Parts([text], len(text))) for stream, text in memory.parts)
        self._live.told.update(((needle, minute), further) for needle, minute, further in memory.gathered)
        if launch is None:
            return
        launches = self._launches
        launches.current, launches.is_ready, launches.has_lines = launch, memory.is_ready, memory.has_lines
        launches.forms = set(memory.forms)
        self._leaders.best.update(((launch.key, dp), (pp, tp)) for dp, pp, tp in memory.leaders)
        self._accounts.begin(launch)
        self._pending.launch_key = launch.key
        pairs = self._accounts.pairs[launch.key]
        pairs.pairs.update({(length, rate): count for length, rate, count in memory.pairs})
        self._told, self._decide_at = memory.told, memory.decide_at
        if memory.last_ms is not None and memory.has_lines:
            self._accounts.last_ms[launch.key] = memory.last_ms

    def _begin(self, launch: Launch | None, before: Launch | None = None) -> None:
        if launch is not None:
            self._live.end()
            self._told, self._decide_at = "", FIRST_DECISION
        super()._begin(launch, before)

    def _decided(self) -> list[Event]:
        """Look for the rate's definition, more and more seldom; tell it when it is found or changes."""
        launch = self._accounts.current
        total = self._accounts.pairs[launch.key].pairs.total() if launch else 0
        if launch is None or total < self._decide_at:
            return []
        self._decide_at = 2 * total
        events = self._accounts.conclude()
        found = launch.definition.definition if launch.definition else ""
        if found == self._told or (found == UNDETERMINED and not self._told and total < SURELY_UNDETERMINED):
            return []
        self._told = found
        return events
