"""Read a finished vLLM log from its beginning to its end, and hand over what it says portion by portion."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from specscope_collectors.logs.blocks import Block, Unpacked, read_blocks
from specscope_collectors.logs.options import LogOptions
from specscope_collectors.logs.stamps import Clockface
from specscope_collectors.logs.wrappers import PARTIALS, Joiner, without_colours
from specscope_collectors.observations import Event, Increment, Labels, Launch, Level, Observation
from specscope_collectors.sources.vllm_log.counting import Counting
from specscope_collectors.sources.vllm_log.launch import NEEDLE, read_start, to_launch, unknown_launch
from specscope_collectors.sources.vllm_log.lines import (
    LOAD,
    SPECULATION,
    TOTALS,
    read_interval,
    read_load,
    read_totals,
)
from specscope_collectors.sources.vllm_log.stamps import VllmClock
from specscope_collectors.sources.vllm_log.summary import Summary

NEEDLES = (SPECULATION.encode(), TOTALS.encode(), LOAD.encode(), NEEDLE)
PORTION_VALUES = 4_000
MAX_PROCESS = 80
TOLD_BY = {"told_by": "log"}
"""Keeps these series apart from those of the same server's metrics, which count the same drafts."""


@dataclass(frozen=True)
class Portion:
    """Observations of one launch; see `specscope_collectors.logs.options.LogPortion`."""

    launch_key: str | None
    end: int
    records: tuple[Launch | Event, ...] = ()
    values: tuple[Observation, ...] = ()

    @property
    def observations(self) -> tuple[Observation, ...]:
        """Everything."""
        return (*self.records, *self.values)


@dataclass(slots=True)
class _Pending:
    records: list[Launch | Event] = field(default_factory=list)
    values: list[Increment | Level] = field(default_factory=list)


class VllmLogReader:
    """Reads a log, or its parts one after the other (oldest first): the launch goes on over parts."""

    def __init__(self, options: LogOptions) -> None:
        self.summary = Summary()
        self._salt = f"{options.server} {options.fingerprint}"
        self._clock = VllmClock(Clockface(options.zone, options.date, options.year))
        self._launch: Launch | None = None
        self._counting = Counting()
        self._joiner = Joiner()
        self._pending = _Pending()
        self._ready: list[Portion] = []
        self._inside = 0
        self._ranks: dict[str, str | None] = {}
        """Writing process → the engine of its last line about load, which its line on speculation follows."""

    @property
    def first_ms(self) -> int | None:
        """Time of the first line that was used."""
        return self.summary.first_ms

    @property
    def found(self) -> bool:
        """Whether anything of vLLM was found."""
        return self.summary.launches > 0

    def report(self) -> Iterator[str]:
        """Yield what was read, in words."""
        return self.summary.report()

    def read(self, log: Unpacked, *, done_to: int = 0) -> Iterator[Portion]:
        """Yield the portions of one part; a portion ends at ``done_to``, where a former reading ended."""
        end = 0
        for block in read_blocks(log, cut_at=done_to):
            if end and (len(self._pending.values) >= PORTION_VALUES or end <= done_to):
                self._close(end)
            self._inside, end = block.start, block.end
            self._block(block)
            yield from self._take()
        self._lines(self._joiner.rest())
        if log.damage:
            self.summary.refused[log.damage] += 1
        self._close(end)
        yield from self._take()

    def _take(self) -> Iterator[Portion]:
        ready, self._ready = self._ready, []
        yield from ready

    def _close(self, end: int | None = None) -> None:
        pending, self._pending = self._pending, _Pending()
        if pending.records or pending.values:
            self._inside += 1
            key = self._launch.key if self._launch else None
            portion = Portion(key, end or self._inside, tuple(pending.records), tuple(pending.values))
            self._ready.append(portion)

    def _block(self, block: Block) -> None:
        self.summary.bytes_read += block.end - block.start
        self.summary.lines += block.lines
        data = without_colours(block.data)
        if self._joiner.has_begun(data) or any(mark in data for mark in PARTIALS):
            data = self._joiner.joined(data)
        self._lines(data)

    def _lines(self, data: bytes) -> None:
        for start, end in lines_with(data, NEEDLES):
            self._line(data[start:end].decode(errors="replace"))

    def _line(self, line: str) -> None:
        found = read_start(line)
        for needle in (SPECULATION, TOTALS, LOAD):
            at = line.find(needle)
            if found is None and at >= 0:
                self._status(needle, line[:at], line[at:])
                return
        if found is None:
            return
        time_ms = self._clock.read(line[: line.find("Initializing")])
        if isinstance(time_ms, str):
            self.summary.refused[time_ms] += 1
            return
        self._begin(to_launch(found, salt=self._salt, time_ms=time_ms, reason=self._reason()))

    def _reason(self) -> str:
        return "first seen" if self._launch is None else "restarted"

    def _begin(self, launch: Launch) -> None:
        self._close()
        kind = "launch" if self._launch is None else "restart"
        self._launch, self._counting = launch, Counting(launch.speculative.algorithm)
        self._ranks.clear()
        self.summary.launches += 1
        event = Event(kind=kind, time_ms=launch.time_ms, message=launch.reason)
        self._pending.records += [launch, event]

    def _status(self, needle: str, prefix: str, text: str) -> None:
        time_ms = self._clock.read(prefix)
        if isinstance(time_ms, str):
            self.summary.refused[time_ms] += 1
            return
        if self._launch is None:
            self._begin(unknown_launch(salt=self._salt, time_ms=time_ms))
        self.summary.saw(time_ms)
        process = prefix[:MAX_PROCESS].partition(") ")[0] if ") " in prefix else ""
        values = self._values(needle, process, prefix + text, text, time_ms)
        if values is None:
            self.summary.refused["nothing of the line is whole, or it cannot be"] += 1
        else:
            self._pending.values += values

    def _values(
        self, needle: str, process: str, line: str, text: str, time_ms: int
    ) -> list[Increment | Level] | None:
        if needle == LOAD:
            load = read_load(line)
            if load is None:
                return None
            self.summary.load_lines += 1
            self._ranks[process] = load.engine
            labels = self._labels(load.engine)
            return [
                Level(metric=metric, labels=labels, time_ms=time_ms, value=value)
                for metric, value in load.values.items()
            ]
        rank = self._ranks.get(process)
        if needle == TOTALS:
            totals = read_totals(text)
            return None if totals is None else self._counting.of_totals(totals, self._labels(rank), time_ms)
        interval = read_interval(text)
        if interval is None:
            return None
        found = self._counting.of_interval(interval, rank, self._labels(rank), time_ms)
        if found is not None:
            self.summary.count(found.cycles is not None)
        return None if found is None else found.values

    def _labels(self, rank: str | None) -> Labels:
        launch = self._launch
        model = (launch.served_model_name or launch.model) if launch else None
        labels = dict(TOLD_BY) if rank is None else TOLD_BY | {"dp_rank": rank}
        return labels | ({"model_name": model} if model else {})


def lines_with(data: bytes, needles: tuple[bytes, ...]) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of each line that holds a needle, in order."""
    ends: dict[int, int] = {}
    for needle in needles:
        at = data.find(needle)
        while at >= 0:
            end = data.find(b"\n", at)
            end = len(data) if end < 0 else end
            ends[data.rfind(b"\n", 0, at) + 1] = end
            at = data.find(needle, end)
    yield from sorted(ends.items())
