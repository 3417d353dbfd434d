"""Follows the logs of one server: from new lines to stored batches, resumable after each of them."""

from __future__ import annotations

import glob
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, tzinfo

import msgspec
import structlog

from specscope_collectors.board import Watched
from specscope_collectors.health import scrape_levels
from specscope_collectors.job import JobContext
from specscope_collectors.logs.options import LAUNCH_BYTES, launch_name
from specscope_collectors.observations import Batch, Event, Launch, Observation, SourceHealth, Target
from specscope_collectors.sources.sglang_log import SOURCE, follow_state
from specscope_collectors.sources.sglang_log.follow_state import FileState
from specscope_collectors.sources.sglang_log.live import LiveReader
from specscope_collectors.sources.sglang_log.reading import LogOptions, Portion
from specscope_collectors.sources.sglang_log.services import (
    SeveralServicesError,
    check_one,
    only,
    printing_services,
)
from specscope_collectors.sources.sglang_log.telling import Telling
from specscope_collectors.sources.sglang_log.witness import Ruling, Said, rule
from specscope_collectors.tailing import Group, Reading, Tail, TailState

FOLLOWED = "followed log"
"""Address of a server that is known from its log alone."""
PIECES_AT_ONCE = 8
REPORT_SECONDS = 5.0
HOLD_SECONDS = 60.0
"""How long the first values of a launch wait for the scrape that tells which launch it is."""
FORGET_SECONDS = 3600.0
"""After which a file of a pattern that is gone is forgotten."""
LOST, GAP = "lines that were lost", "log_gap"

log = structlog.get_logger("specscope.collector")


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What the log itself does not say."""

    zone: tzinfo
    day: date | None = None
    year: int | None = None


class Following:
    """The work of the job; safe to close while a step is being done."""

    def __init__(
        self, *, path: str, server: str, service: str | None, from_beginning: bool, told: Told,
        context: JobContext, collector_id: str,
    ) -> None:  # fmt: skip
        self.collector_id = collector_id
        self._server = server
        self._service = service
        self._told = told
        self._context = context
        self._group = Group(
            path,
            lambda found, is_new: Tail(found, from_beginning=is_new, monotonic=context.monotonic),
            from_beginning=from_beginning,
        )
        self._is_pattern = glob.has_magic(path)
        self._turn = threading.Lock()
        self._sequence = 0
        self._stored: dict[str, FileState] | None = None
        """As of the last stored batch; None until the store was asked."""
        self._files: dict[str, FileState] = {}
        """May be ahead of what is stored by pieces that said nothing."""
        self._has_looked = False
        self._readers: dict[str, tuple[FileState, LiveReader]] = {}
        """Readers as of the state beside them."""
        self._held_since: dict[str, float] = {}
        self._missing_since: dict[str, float] = {}
        self._services: set[str] = set()
        self._telling = Telling()
        self._reported: float | None = None
        self._is_shared = False

    def step(self) -> bool:
        """Read and store what has come; return whether there is more at once. Raises what the sink raises."""
        with self._turn:
            if self._stored is None:
                self._resume()
            try:
                return self._step()
            except Exception:
                self._forget()
                raise

    def close(self) -> None:
        """Close all files."""
        with self._turn:
            self._group.close()

    # One look

    def _step(self) -> bool:
        began = self._context.monotonic()
        try:
            tails = self._group.tails(self._files if self._has_looked else None)
        except ValueError as error:  # more files than can be meant
            tails, self._telling.mixed = {}, str(error)
        has_more = False
        for path, tail in tails.items():
            for _ in range(PIECES_AT_ONCE):
                if not self._piece(path, tail):
                    break
            else:
                has_more = True
        self._has_looked = True
        self._telling.seconds += self._context.monotonic() - began
        self._report_if_due(len(tails))
        return has_more

    def _piece(self, path: str, tail: Tail) -> bool:
        """Read and store one piece of one file; return whether another look is worth it at once."""
        state = self._files.get(path, FileState())
        reading = tail.read(state.position, exactly=state.stored_of[0] if state.stored_of else 0)
        self._notice(path, reading)
        if reading.position is None:
            return False
        try:
            data = self._of_service(reading.data)
        except SeveralServicesError as error:
            self._telling.mixed = str(error)
            return False
        reader = self._reader(path, state, data)
        lines, statuses, refused = _counts(reader)
        portions = list(reader.feed(data, self._context.clock(), is_cut=reading.is_cut))
        if not self._store(path, state, reading, reader, portions):
            return False
        after = _counts(reader)
        self._telling.lines += after[0] - lines
        self._telling.status_lines += after[1] - statuses
        self._telling.refuse(self._context.clock(), after[2] - refused)
        self._told_of(reading, reader)
        return reading.has_more

    def _store(
        self, path: str, state: FileState, reading: Reading, reader: LiveReader, portions: Sequence[Portion]
    ) -> bool:
        """Store the portions, each with what a restart needs to go on behind it; False while they wait."""
        launches = _launches(state, portions)
        done = state.stored_of[1] if state.stored_of else 0
        told: list[tuple[str | None, tuple[Observation, ...]]] = []
        for at, portion in enumerate(portions):
            if at < done:
                continue
            ruling = self._rule(path, state, portion, launches)
            if ruling.is_held:
                self._readers.pop(path, None)
                self._held_since.setdefault(path, self._context.monotonic())
                return False
            self._held_since.pop(path, None)
            state = msgspec.structs.replace(state, bond=ruling.bond, stored_of=(len(reading.data), at + 1))
            told = [(ruling.launch_key, ruling.observations)]
            if at + 1 < len(portions):
                self._apply(path, state, *told.pop())
        after = FileState(position=reading.position, memory=reader.memory(), bond=state.bond)
        told += self._of_gap(reading, after)
        for launch_key, observations in told:
            if observations:
                self._apply(path, after, launch_key, observations)
        self._files = {**self._files, path: after}
        self._readers[path] = (after, reader)
        return True

    def _of_gap(self, reading: Reading, after: FileState) -> list[tuple[str | None, tuple[Observation, ...]]]:
        if not reading.lost:
            return []
        self._telling.refuse(self._context.clock(), Counter({LOST: 1}))
        log.warning("log lines are lost", server=self._server, reason=reading.lost)
        launch = after.memory.launch if after.memory else None
        key = after.bond.key or (launch.key if launch is not None and after.bond.log_key else None)
        event = Event(kind=GAP, time_ms=self._context.clock(), message=reading.lost[:400])
        return [(key, (event,))]

    def _rule(self, path: str, state: FileState, portion: Portion, launches: dict[str, Launch]) -> Ruling:
        held_since = self._held_since.get(path)
        now = self._context.monotonic()
        said = Said(launches.get(portion.launch_key or ""), portion.launch_key, portion.observations)
        return rule(
            said,
            state.bond,
            self._context.board.look(self._server) or self._lead(path),
            is_expected=self._context.board.is_expected(self._server),
            is_patient=held_since is None or now - held_since < HOLD_SECONDS,
        )

    def _lead(self, path: str) -> Watched | None:
        """Return what the first file says: the files of several nodes tell of one launch."""
        for other in sorted(self._files):
            if other == path:
                return None
            state = self._files[other]
            if state.memory is not None and state.memory.launch is not None and state.bond.log_key:
                # each node draws a seed of its own, which tells nothing of the launch
                launch = msgspec.structs.replace(state.memory.launch, config={})
                return Watched(self._target(), launch, frozenset())
        return None

    # What is read

    def _reader(self, path: str, state: FileState, data: bytes) -> LiveReader:
        held = self._readers.pop(path, None)
        if held is not None and held[0] is state:
            return held[1]
        today = datetime.fromtimestamp(self._context.clock() / 1000, self._told.zone)
        options = LogOptions(
            server=self._server,
            fingerprint=self._name_of(path, state, data),
            zone=self._told.zone,
            date=self._told.day or today.date(),
            year=self._told.year or today.year,
        )
        return LiveReader(options, state.memory)

    def _name_of(self, path: str, state: FileState, data: bytes) -> str:
        """Return what names the launch of lines before the first dump: as an import of the file names it, if
        it is read from its beginning.
        """
        is_whole = state.position is None or state.position.mark.is_beginning
        if is_whole and len(data) >= LAUNCH_BYTES:
            return launch_name(data)
        return f"followed {path}#{self._service or ''}"

    def _of_service(self, data: bytes) -> bytes:
        if self._service is not None:
            return only(data, self._service)
        self._services |= printing_services(data)
        check_one(self._services, 'service = "{}"')
        return data

    def _notice(self, path: str, reading: Reading) -> None:
        now, telling = self._context.monotonic(), self._telling
        if reading.state is TailState.OK:
            telling.trouble.pop(path, None)
        else:
            telling.trouble[path] = reading
        if reading.state is not TailState.MISSING:
            self._missing_since.pop(path, None)
        elif self._is_pattern and now - self._missing_since.setdefault(path, now) > FORGET_SECONDS:
            self._files = {other: state for other, state in self._files.items() if other != path}
            telling.trouble.pop(path, None)

    def _told_of(self, reading: Reading, reader: LiveReader) -> None:
        if not reading.data:
            return
        self._telling.body_bytes += len(reading.data)
        self._telling.last_line_ms = self._context.clock()
        if reading.position and reader.last_ms is not None and not reading.behind_bytes:
            self._telling.ahead_ms = reader.last_ms - reading.position.modified_ns // 1_000_000

    # What is stored

    def _report_if_due(self, files: int) -> None:
        now = self._context.monotonic()
        span = REPORT_SECONDS if self._reported is None else now - self._reported
        if self._reported is not None and span < REPORT_SECONDS:
            return
        health = self._telling.report(SOURCE, self._group.pattern, files, self._context.clock(), span)
        self._send(self._files, None, _with_levels(health))
        self._reported = now

    def _apply(
        self, path: str, state: FileState, launch_key: str | None, observations: tuple[Observation, ...]
    ) -> None:
        files = {**self._files, path: state}
        self._send(files, launch_key, observations)
        self._files = files

    def _send(
        self, files: dict[str, FileState], launch_key: str | None, observations: tuple[Observation, ...]
    ) -> None:
        batch = Batch(
            collector_id=self.collector_id,
            sequence=self._sequence + 1,
            target=self._target(),
            launch_key=launch_key,
            observations=observations,
            checkpoint=follow_state.encode(files),
        )
        if not self._context.sink.apply(batch):
            if not self._is_shared:
                log.warning("another process follows this log too", server=self._server, remedy="stop one")
            self._is_shared = True
            raise SharedError(f"another process follows {self._group.pattern} under the same name; stop one")
        self._sequence = batch.sequence
        self._stored = files

    def _target(self) -> Target:
        watched = self._context.board.look(self._server)
        return watched.target if watched else Target(name=self._server, base_url=FOLLOWED)

    def _resume(self) -> None:
        resume = self._context.sink.resume(self.collector_id)
        self._sequence, self._stored = resume.sequence, {}
        if resume.checkpoint is not None:
            try:
                self._stored = follow_state.decode(resume.checkpoint)
            except ValueError as error:
                log.warning("following anew", server=self._server, reason=str(error))
            else:
                self._has_looked = True
        self._files = self._stored

    def _forget(self) -> None:
        """Go back to what is stored."""
        self._stored = None
        self._readers.clear()


class SharedError(RuntimeError):
    """Two processes follow one log under one name."""


def _counts(reader: LiveReader) -> tuple[int, int, Counter[str]]:
    summary = reader.summary
    return summary.lines, summary.decode_lines + summary.prefill_lines, Counter(summary.refused)


def _launches(state: FileState, portions: Sequence[Portion]) -> dict[str, Launch]:
    known = [state.memory.launch] if state.memory and state.memory.launch else []
    begun = [record for portion in portions for record in portion.observations if isinstance(record, Launch)]
    return {launch.key: launch for launch in (*known, *begun)}


def _with_levels(health: SourceHealth) -> tuple[Observation, ...]:
    return (health, *scrape_levels(health))
