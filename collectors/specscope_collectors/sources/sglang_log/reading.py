"""Read a finished log from its beginning to its end, and hand over what it says portion by portion."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from importlib.util import find_spec
from itertools import chain
from typing import TYPE_CHECKING

from specscope_collectors.logs.blocks import Block, Unpacked, read_blocks
from specscope_collectors.logs.options import LogOptions
from specscope_collectors.logs.stamps import BAD_STAMP, BRACKET, Clockface
from specscope_collectors.logs.wrappers import PARTIALS, Joiner, without_colours
from specscope_collectors.observations import Event, Labels, Launch, Observation
from specscope_collectors.sources.sglang_log.events import Gatherer
from specscope_collectors.sources.sglang_log.launches import Launches, begin_event
from specscope_collectors.sources.sglang_log.levels import longest_possible, to_levels
from specscope_collectors.sources.sglang_log.lines import MAX_RANKS, Status, StatusReader
from specscope_collectors.sources.sglang_log.ranks import Leaders, Rank
from specscope_collectors.sources.sglang_log.report import report
from specscope_collectors.sources.sglang_log.rows import Row, Rows, RunRows
from specscope_collectors.sources.sglang_log.scan import lines_of_interest
from specscope_collectors.sources.sglang_log.segments import split
from specscope_collectors.sources.sglang_log.server_args import find_dump, read_dump
from specscope_collectors.sources.sglang_log.signals import ERROR, READY, details, find_signal
from specscope_collectors.sources.sglang_log.statistics import Accounts
from specscope_collectors.sources.sglang_log.summary import Summary

if TYPE_CHECKING:  # numpy comes with the server only
    from specscope_collectors.sources.sglang_log.mixture import CutBlock, Sorter
    from specscope_collectors.sources.sglang_log.runs import Mixture, Run

__all__ = ["LogOptions", "LogReader", "Portion"]

PORTION_LEVELS = 4_000
MIN_TOGETHER_BYTES = 32_768
"""Lines of smaller blocks (of a log that is followed) are read one by one."""
TOO_LONG, PARTS_LOST = "line too long: read in pieces", "line too long: parts of it are lost"
LINES_BACK = 50
"""How far back the time of a line without a stamp (of a traceback) is looked for."""


@dataclass(frozen=True)
class Portion:
    """Observations of one launch. ``end`` grows strictly: up to where in the log it reaches."""

    launch_key: str | None
    end: int
    records: tuple[Launch | Event, ...]
    rows: tuple[Rows, ...] = ()

    @cached_property
    def observations(self) -> tuple[Observation, ...]:
        """All records; levels are made when they are asked for."""
        return tuple(chain(self.records, chain.from_iterable(row.levels() for row in self.rows)))


@dataclass(slots=True)
class _Pending:
    launch_key: str | None = None
    rows: list[Rows] = field(default_factory=list)
    records: list[Launch | Event] = field(default_factory=list)
    levels: int = 0


class LogReader:
    """Reads a log, or its parts one after the other (oldest first): the launch goes on over parts."""

    def __init__(self, options: LogOptions, *, together_from_bytes: int = MIN_TOGETHER_BYTES) -> None:
        """``together_from_bytes``: smaller blocks are read line by line; the result is the same."""
        self.summary = Summary()
        self._clock = Clockface(options.zone, options.date, options.year)
        self._status = StatusReader(self._clock, self.summary.refused)
        self._launches = Launches(options.server, options.fingerprint)
        self._accounts = Accounts(self.summary)
        self._leaders = Leaders()
        self._gatherer = Gatherer()
        self._joiner = Joiner()
        self._pending = _Pending()
        self._ready: list[tuple[int, _Pending]] = []
        self._labels: dict[Rank, Labels] = {}
        """Of the launch in force."""
        self._sorter: Sorter | None = None
        self._together_from = together_from_bytes
        self._inside = 0
        self._looked_to = 0
        """Up to here in the block, stamps in front of lines without one have been looked for."""

    def read(self, log: Unpacked, *, done_to: int = 0) -> Iterator[Portion]:
        """Yield the portions of one part; a portion ends at ``done_to``, where a former reading ended."""
        end, is_cut = 0, False
        for block in read_blocks(log, cut_at=done_to):
            if end and (self._pending.levels >= PORTION_LEVELS or end <= done_to):
                self._close(end)
            yield from self._take()
            self._inside, end, is_cut = block.start, block.end, block.is_cut
            self._block(block)
            yield from self._take()
        self.summary.lines += is_cut  # the last line has no end
        self._lines(self._joiner.rest(), None, may_be_cut=True)
        self._finish(log, end)
        yield from self._take()

    @property
    def first_ms(self) -> int | None:
        """Time of the first line that was used."""
        return self.summary.first_ms

    @property
    def found(self) -> bool:
        """Whether anything of SGLang was found."""
        return bool(self.summary.launches)

    def report(self) -> Iterator[str]:
        """Yield what was read, in words."""
        return report(self.summary)

    def _take(self) -> Iterator[Portion]:
        ready, self._ready = self._ready, []
        for end, pending in ready:
            yield self._portion(pending, end)

    def _finish(self, log: Unpacked, end: int) -> None:
        if log.damage:
            self.summary.damage.append(log.damage)
        if self._joiner.dropped:
            self.summary.refused[PARTS_LOST] = self._joiner.dropped
        self._pending.records += self._counted(self._accounts.conclude())
        self._accounts.count_mirrors()
        self._close(end)

    def _portion(self, pending: _Pending, end: int) -> Portion:
        leads = partial(self._leaders.leads, pending.launch_key or "")
        self.summary.levels += sum(row.keep(leads) for row in pending.rows)
        return Portion(pending.launch_key, end, tuple(pending.records), tuple(pending.rows))

    def _close(self, end: int | None = None) -> None:
        """End the portion in the making, at ``end`` or (a launch begins) somewhere inside the block."""
        self._pending.records += self._counted(self._gatherer.take())
        if self._pending.rows or self._pending.records:
            self._inside += 1
            self._ready.append((end or self._inside, self._pending))
        launch = self._launches.current
        self._pending = _Pending(launch.key if launch else None)

    def _counted(self, events: list[Event]) -> list[Event]:
        for event in events:
            self.summary.events[event.kind] += int(event.detail.get("lines", 1))
        return events

    def _block(self, block: Block) -> None:
        self.summary.bytes_read += block.end - block.start
        self.summary.lines += block.lines
        if block.pieces:
            self.summary.refused[TOO_LONG] += 1
        data = without_colours(block.data)
        if self._joiner.has_begun(data):
            data = self._joiner.joined(data)
            self._lines(data, self._cut(data), may_be_cut=block.is_cut)
            return
        cut = self._cut(data)
        if cut.has_partials if cut is not None else any(mark in data for mark in PARTIALS):
            data = self._joiner.joined(data)
            cut = self._cut(data)
        self._lines(data, cut, may_be_cut=block.is_cut)

    def _cut(self, data: bytes) -> CutBlock | None:
        """Return the lines of a block with their kinds; None where they are to be read one by one."""
        if len(data) < self._together_from or not find_spec("numpy"):
            return None
        if self._sorter is None:
            from specscope_collectors.sources.sglang_log.mixture import Sorter

            self._sorter = Sorter(self._clock)
        return self._sorter.cut(data)

    def _lines(self, data: bytes, cut: CutBlock | None, *, may_be_cut: bool) -> None:
        self._looked_to = 0
        if cut is not None and self._sorter is not None:
            mixture = self._sorter.sort(cut, may_be_cut=may_be_cut)
            self._sorted(mixture, data, may_be_cut=may_be_cut)
            return
        for start, end in lines_of_interest(data):
            self._read_line(data, start, end, may_be_cut=may_be_cut)

    def _sorted(self, mixture: Mixture, data: bytes, *, may_be_cut: bool) -> None:
        for piece in mixture.pieces(self._not_together):
            if isinstance(piece, int):
                start, end = mixture.bounds(piece)
                self._read_line(data, start, end, may_be_cut=may_be_cut)
            else:
                self._add_run(piece)

    def _not_together(self, run: Run) -> list[int]:
        """Which lines of a run must be read one by one as things stand: a rank's first, the impossible."""
        if len(self._status.last_ms) + len(run.ranks) > MAX_RANKS:
            return list(range(len(run.lines)))
        is_known = [rank in self._labels for rank in run.ranks]
        return run.stops(is_known, longest_possible(self._launches.expected))

    def _add_run(self, run: Run) -> None:
        self._clock.last_ms = int(run.times_ms[-1])
        for part in run.parts:
            self._learn(self._launches.written_as(part.form.written_as))
        times_ms = run.told_apart(self._status.last_ms).tolist()
        launch = self._launches.current
        assert launch is not None
        labels = [self._labels.get(rank) for rank in run.ranks]
        self._pending.rows.append(RunRows(run, times_ms, labels))
        self._pending.levels += run.count()
        is_leader = [self._leaders.leads(launch.key, rank) for rank in run.ranks]
        self._accounts.add_run(run, times_ms, is_leader)

    def _read_line(self, data: bytes, start: int, end: int, *, may_be_cut: bool) -> None:
        line = data[start:end].decode(errors="replace")
        self._line(line, data, start, may_be_cut=may_be_cut and end == len(data))

    def _line(self, line: str, data: bytes, start: int, *, may_be_cut: bool) -> None:
        at = find_dump(line)
        if at >= 0 and "obj=" not in line[:at]:
            self._dump(line, at, data, start)
            return
        statuses = 0
        for segment in split(line):
            statuses += 1
            status = self._status.read(segment, self._launches.expected, may_be_cut=may_be_cut)
            if status is not None:
                self._add(status)
        if not statuses:
            self._signal(line, data, start)

    def _add(self, status: Status) -> None:
        self._begin(self._launches.by_line(status.time_ms))
        self._learn(self._launches.written_as(status.form))
        launch = self._launches.current
        assert launch is not None
        self._leaders.note(launch.key, status.rank)
        labels = self._labels.get(status.rank)
        if labels is None:
            labels = self._labels[status.rank] = status.rank.labels() | self._launches.model_labels()
        self._pending.rows.append(Row(status.rank, to_levels(status.values, labels, status.time_ms)))
        self._pending.levels += len(status.values)
        self._accounts.add(status, is_leader=self._leaders.leads(launch.key, status.rank))

    def _dump(self, line: str, at: int, data: bytes, start: int) -> None:
        dump = read_dump(line)
        time_ms = self._time(line[:at], data, start)
        if dump is None or time_ms is None:
            self.summary.refused["server_args that cannot be read" if dump is None else "no_stamp"] += 1
            return
        if dump.is_cut:
            self.summary.refused["server_args cut off: the rest is missing"] += 1
        before = self._launches.current
        self._begin(self._launches.by_dump(dump.config, dump.form, time_ms), before)

    def _signal(self, line: str, data: bytes, start: int) -> None:
        encoded = line.encode()
        signal = find_signal(encoded)
        if signal is None or "obj=" in line:
            return
        detail = details(signal, line)
        time_ms = None if detail is None else self._time(line[: encoded.find(signal.needle)], data, start)
        if detail is None or time_ms is None:
            self.summary.refused["no_stamp"] += detail is not None
            return
        if signal.kind == READY:
            before = self._launches.current
            self._begin(self._launches.by_ready(time_ms), before)
            return
        if signal.kind != ERROR or self._launches.current is not None:
            self._begin(self._launches.by_line(time_ms))
        self._gatherer.add(signal, time_ms, line, dict(detail))

    def _begin(self, launch: Launch | None, before: Launch | None = None) -> None:
        if launch is None:
            return
        self._pending.records += self._counted(self._accounts.conclude())
        self._close()
        self._pending.records += [launch, *self._counted([begin_event(before, launch)])]
        self._accounts.begin(launch)
        self._labels.clear()

    def _learn(self, launch: Launch | None) -> None:
        """Say more of the launch in force: in its record if that is still here, else once more."""
        if launch is not None:
            records = self._pending.records
            self._pending.records = [
                launch if isinstance(record, Launch) and record.key == launch.key else record
                for record in records
            ]
            if launch not in self._pending.records:
                self._pending.records.append(launch)

    def _time(self, prefix: str, data: bytes, start: int) -> int | None:
        """Return the time of a line, else of the nearest line before it that has a stamp."""
        found = self._clock.read(prefix)
        if isinstance(found, int):
            return found
        if found == BAD_STAMP:
            return None
        looked_to, self._looked_to = self._looked_to, start
        for _ in range(LINES_BACK):
            if start <= looked_to:
                break
            begin = data.rfind(b"\n", 0, start - 1) + 1
            text = data[begin : min(start, begin + 200)].decode(errors="replace")
            found = self._clock.read(text) if BRACKET.search(text) else found
            if isinstance(found, int):
                return found
            start = begin
        return self._clock.last_ms
