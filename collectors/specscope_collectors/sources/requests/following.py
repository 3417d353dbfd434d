"""Follows the hourly files of a directory: requests go to the sink, resumable after every batch."""

from __future__ import annotations

import threading
from collections import Counter, deque
from datetime import tzinfo
from pathlib import Path

import msgspec
import structlog

from specscope_collectors.health import MAX_DETAIL, scrape_levels
from specscope_collectors.job import JobContext
from specscope_collectors.observations import Batch, HealthState, Observation, SourceHealth, Target
from specscope_collectors.sources.requests.export import Exported, hour_of, read_lines, within_hour
from specscope_collectors.tailing import Position, Reading, Tail, TailState

SOURCE = "requests"
FOLLOWED = "exported requests"
"""Address of a server that is known from its exported requests alone."""
MAX_LINE_BYTES = 4 * 1024 * 1024
"""A line holds the request's parameters, among them its prompt; a longer one is refused."""
PIECES_AT_ONCE = 4
OPEN_FILES = 3
"""Newest files that are still looked at: the hour may have changed while a request was being written."""
REPORT_SECONDS, RECENT_MS = 5.0, 600_000
TOO_LONG = f"the line is over {MAX_LINE_BYTES} bytes"

log = structlog.get_logger("specscope.collector")


class FileState(msgspec.Struct, frozen=True, array_like=True):
    """One hourly file."""

    position: Position | None = None
    is_inside: bool = False
    """Of a line that is too long."""


class Stored(msgspec.Struct, frozen=True, kw_only=True):
    """The checkpoint."""

    format: int = 1
    files: dict[str, FileState] = {}
    oldest: str = ""
    """Files with a smaller name are finished, or were there before the following began."""


class Following:
    """The work of the job; safe to close while a step is being done."""

    def __init__(
        self, *, directory: Path, server: str, zone: tzinfo, from_beginning: bool, context: JobContext,
        collector_id: str,
    ) -> None:  # fmt: skip
        self.collector_id = collector_id
        self._directory = directory
        self._server = server
        self._zone = zone
        self._from_beginning = from_beginning
        self._context = context
        self._turn = threading.Lock()
        self._sequence = 0
        self._state: Stored | None = None
        """As of the last stored batch; None until the store was asked."""
        self._is_new = False
        self._tails: dict[str, Tail] = {}
        self._requests = self._body_bytes = self._refused = 0
        self._recent: deque[tuple[int, Counter[str]]] = deque()
        self._last_ms: int | None = None
        self._trouble = ""
        self._reported: float | None = None

    def step(self) -> bool:
        """Read and store what has come; return whether there is more at once. Raises what the sink raises."""
        with self._turn:
            try:
                state = self._resumed()
                has_more = self._look(state)
                self._report_if_due()
            except Exception:
                self._state = None
                raise
            return has_more

    def close(self) -> None:
        """Close all files."""
        with self._turn:
            for tail in self._tails.values():
                tail.close()
            self._tails.clear()

    # What is read

    def _look(self, state: Stored) -> bool:
        try:
            names = sorted(
                path.name for path in self._directory.iterdir()
                if hour_of(path.name, self._zone) is not None and path.suffix != ".gz"
            )  # fmt: skip
        except OSError as error:
            self._trouble = f"{self._directory}: {error.strerror or error}"
            return False
        self._trouble = "" if names or state.files else "no file of an hour is there yet"
        if self._is_new and not self._from_beginning and names:
            state = self._state = msgspec.structs.replace(state, oldest=names[-1])
        unfinished = [name for name in names if name >= state.oldest and self._file(name)]
        self._is_new = False
        self._forget_finished(names, unfinished)
        return bool(unfinished)

    def _file(self, name: str) -> bool:
        for _ in range(PIECES_AT_ONCE):
            assert self._state is not None
            file = self._state.files.get(name, FileState())
            reading = self._tail(name).read(file.position)
            if reading.state is not TailState.OK:
                self._trouble = reading.detail
            if reading.position is None or (not reading.data and reading.position == file.position):
                return False
            self._store(name, file, reading)
        return True

    def _tail(self, name: str) -> Tail:
        if name not in self._tails:
            self._tails[name] = Tail(
                self._directory / name,
                from_beginning=not self._is_new or self._from_beginning,
                piece_bytes=MAX_LINE_BYTES,
                monotonic=self._context.monotonic,
            )
        return self._tails[name]

    def _store(self, name: str, file: FileState, reading: Reading) -> None:
        found, is_inside = self._exported(name, file, reading)
        self._send({name: FileState(reading.position, is_inside)}, tuple(found.records))
        self._requests += len(found.records)
        self._body_bytes += len(reading.data)
        if found.records:
            self._last_ms = self._context.clock()
        if found.refused:
            self._refused += found.refused.total()
            self._recent.append((self._context.clock(), found.refused))

    def _exported(self, name: str, file: FileState, reading: Reading) -> tuple[Exported, bool]:
        """Return what the lines say, and whether the next piece begins inside a line that is too long."""
        lines = reading.data.splitlines(keepends=True)
        if file.is_inside:
            lines = lines[1:]
        is_too_long = reading.is_cut and len(reading.data) >= MAX_LINE_BYTES
        if is_too_long:
            lines = []
        received_ms = within_hour(self._context.clock(), hour_of(name, self._zone))
        found = read_lines(lines, received_ms)
        if is_too_long and not file.is_inside:
            found.refused[TOO_LONG] += 1
        if reading.lost:
            found.refused["lines that were lost"] += 1
            log.warning("exported requests are lost", server=self._server, reason=reading.lost)
        return found, is_too_long

    def _forget_finished(self, names: list[str], unfinished: list[str]) -> None:
        """Leave the files of former hours alone."""
        assert self._state is not None
        if len(names) <= OPEN_FILES:
            return
        oldest = max(self._state.oldest, min([names[-OPEN_FILES], *unfinished]))
        files = {name: file for name, file in self._state.files.items() if name >= oldest}
        for name in [name for name in self._tails if name < oldest]:
            self._tails.pop(name).close()
        self._state = msgspec.structs.replace(self._state, oldest=oldest, files=files)

    # What is stored

    def _report_if_due(self) -> None:
        now = self._context.monotonic()
        if self._reported is not None and now - self._reported < REPORT_SECONDS:
            return
        span_seconds = REPORT_SECONDS if self._reported is None else now - self._reported
        health = self._health(span_seconds)
        self._send({}, (health, *scrape_levels(health)))
        self._requests = self._body_bytes = self._refused = 0
        self._reported = now

    def _health(self, span_seconds: float) -> SourceHealth:
        now_ms = self._context.clock()
        while self._recent and self._recent[0][0] < now_ms - RECENT_MS:
            self._recent.popleft()
        state, detail, remedy = self._words(now_ms, span_seconds)
        return SourceHealth(
            source=SOURCE,
            time_ms=now_ms,
            state=state,
            url=str(self._directory),
            duration_seconds=0.0,
            body_bytes=self._body_bytes,
            refused=self._refused,
            detail=detail[:MAX_DETAIL],
            remedy=remedy,
        )

    def _words(self, now_ms: int, span_seconds: float) -> tuple[HealthState, str, str]:
        if self._trouble:
            remedy = (
                "start SGLang with --export-metrics-to-file --export-metrics-to-file-dir DIR, directory = DIR"
            )
            return HealthState.UNREACHABLE, self._trouble, remedy
        age = "none yet" if self._last_ms is None else f"the last {(now_ms - self._last_ms) / 1000:.0f} s ago"
        words = f"{self._requests / span_seconds:.1f} requests/s, {age}"
        if not self._recent:
            return HealthState.OK, words, ""
        total: Counter[str] = sum((reasons for _, reasons in self._recent), Counter())
        named = ", ".join(f"{count} × {reason}" for reason, count in total.most_common(3))
        return HealthState.PARTIAL, f"{words}; left out in the last 10 minutes: {named}", ""

    def _send(self, files: dict[str, FileState], observations: tuple[Observation, ...]) -> None:
        assert self._state is not None
        state = msgspec.structs.replace(self._state, files={**self._state.files, **files})
        watched = self._context.board.look(self._server)
        batch = Batch(
            collector_id=self.collector_id,
            sequence=self._sequence + 1,
            target=watched.target if watched else Target(name=self._server, base_url=FOLLOWED),
            observations=observations,
            checkpoint=msgspec.msgpack.encode(state),
        )
        if not self._context.sink.apply(batch):
            raise SharedError(f"another process follows {self._directory} under the same name; stop one")
        self._sequence, self._state = batch.sequence, state

    def _resumed(self) -> Stored:
        if self._state is not None:
            return self._state
        resume = self._context.sink.resume(self.collector_id)
        self._sequence, self._state, self._is_new = resume.sequence, Stored(), resume.checkpoint is None
        if resume.checkpoint is not None:
            try:
                self._state = msgspec.msgpack.decode(resume.checkpoint, type=Stored)
            except msgspec.MsgspecError as error:
                log.warning("following anew", server=self._server, reason=str(error))
                self._is_new = True
        return self._state


class SharedError(RuntimeError):
    """Two processes follow one directory under one name."""
