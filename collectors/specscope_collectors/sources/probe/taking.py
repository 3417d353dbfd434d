"""Takes files from the probe's spool: stored first, deleted then; a kill in between repeats nothing."""

from __future__ import annotations

import threading
from collections import Counter, deque
from pathlib import Path

import msgspec
import structlog

from specscope_collectors.board import Watched
from specscope_collectors.health import MAX_DETAIL, scrape_levels
from specscope_collectors.job import JobContext
from specscope_collectors.observations import Batch, HealthState, Observation, SourceHealth, Target
from specscope_collectors.sources.probe import SOURCE
from specscope_collectors.sources.probe.belonging import Belonging, belonging
from specscope_collectors.sources.probe.folder import Folder
from specscope_collectors.sources.probe.reading import RefusedFileError, StateFile, read_state_file
from specscope_collectors.sources.probe.records import capture_key, last_part, profile_parts, rank_key

FILES_AT_ONCE = 8
REPORT_SECONDS, RECENT_MS = 30.0, 600_000
MOST_STUCK = 1_000
"""Stored or refused files that cannot be removed; with more of them nothing further is read."""
MOST_RANKS = 256
REMEMBERED = 64
"""Files that are remembered when they are gone: a power cut may bring them back."""
UNKNOWN_URL = "state profiles"
"""Address of a server that is known from its state profiles alone."""

log = structlog.get_logger("specscope.collector")


class Stored(msgspec.Struct, frozen=True, kw_only=True):
    """The checkpoint."""

    format: int = 1
    file: str = ""
    """Being stored."""
    parts: int = 0
    """How many parts of it are."""
    done: tuple[str, ...] = ()
    """Files that are stored, or refused: all that still lie there, and the last that do not."""
    captures: dict[str, str] = {}
    """Rank → what it captured last."""


class SharedError(RuntimeError):
    """Two processes take files from one folder under one name."""


class Taking:
    """The work of the job."""

    def __init__(self, *, spool: Path, server: str, context: JobContext, collector_id: str) -> None:
        self.collector_id = collector_id
        self._folder = Folder(spool)
        self._server = server
        self._context = context
        self._turn = threading.Lock()
        self._sequence = 0
        self._state: Stored | None = None
        self._trouble = ""
        self._waiting = 0
        self._stuck = 0
        self._taken = 0
        self._last_ms: int | None = None
        self._refused: deque[tuple[int, str]] = deque()
        self._unreported = 0
        self._reported: float | None = None

    def step(self) -> bool:
        """Take what waits; return whether there is more at once. Raises what the sink raises."""
        with self._turn:
            try:
                self._resumed()
                has_more = self._take_some()
                self._report_if_due()
            except Exception:
                self._state = None
                raise
            return has_more

    # Files

    def _take_some(self) -> bool:
        try:
            names = self._folder.waiting()
        except OSError as error:
            self._trouble, self._waiting = f"{self._folder.path}: {error.strerror or error}", 0
            return False
        self._trouble = ""
        names = self._without_done(names)
        self._waiting = len(names)
        watched = self._context.board.look(self._server)
        if watched is None or self._stuck >= MOST_STUCK:
            return False
        for name in names[:FILES_AT_ONCE]:
            if self._take(name, watched):
                self._waiting -= 1
        return len(names) > FILES_AT_ONCE

    def _without_done(self, names: list[str]) -> list[str]:
        """Remove what is stored already, and forget what is gone."""
        done = self._known.done
        there = set(names).intersection(done)
        stuck = {name for name in there if not self._folder.delete(name)}
        self._stuck = len(stuck)
        kept = tuple(
            name for place, name in enumerate(done, REMEMBERED - len(done)) if place >= 0 or name in stuck
        )
        if kept != done:
            self._state = msgspec.structs.replace(self._known, done=kept)
        return [name for name in names if name not in there]

    def _take(self, name: str, watched: Watched) -> bool:
        """Store one file; return whether it is dealt with."""
        try:
            file = read_state_file(self._folder.path / name)
        except RefusedFileError as error:
            return self._refuse(name, str(error))
        except FileNotFoundError:
            return True
        except OSError as error:
            return self._refuse(name, error.strerror or str(error))
        verdict = belonging(file, watched.launch, self._context.clock())
        if verdict is Belonging.REFUSE:
            return self._refuse(name, "it is of another start of the engine than the one that is watched")
        if verdict is Belonging.TAKE:
            self._store(name, file, watched)
        return verdict is Belonging.TAKE

    def _store(self, name: str, file: StateFile, watched: Watched) -> None:
        parts: list[tuple[Observation, ...]] = list(profile_parts(file))
        rank = rank_key(file)
        parts[-1] = (*parts[-1], *last_part(file, self._known.captures.get(rank)))
        first = self._known.parts if self._known.file == name else 0
        for number in range(first, len(parts)):
            is_last = number == len(parts) - 1
            if is_last:
                captures = self._known.captures if len(self._known.captures) < MOST_RANKS else {}
                captures = {**captures, rank: capture_key(file)}
                state = Stored(done=(*self._known.done, name), captures=captures)
            else:
                state = msgspec.structs.replace(self._known, file=name, parts=number + 1)
            self._send(state, parts[number], watched)
        self._taken += 1
        self._last_ms = file.created_ms
        self._folder.delete(name)

    def _refuse(self, name: str, reason: str) -> bool:
        log.warning("a file of state profiles is refused", server=self._server, file=name, reason=reason)
        self._refused.append((self._context.clock(), reason))
        self._unreported += 1
        if not self._folder.put_aside(name):
            self._state = msgspec.structs.replace(self._known, done=(*self._known.done, name))
        return True

    # Health

    def _report_if_due(self) -> None:
        now = self._context.monotonic()
        if self._reported is not None and now - self._reported < REPORT_SECONDS:
            return
        health = self._health()
        watched = self._context.board.look(self._server)
        self._send(self._known, (health, *(scrape_levels(health) if watched else ())), watched)
        self._unreported = 0
        self._reported = now

    def _health(self) -> SourceHealth:
        now_ms = self._context.clock()
        while self._refused and self._refused[0][0] < now_ms - RECENT_MS:
            self._refused.popleft()
        state, detail, remedy = self._words(now_ms)
        return SourceHealth(
            source=SOURCE,
            time_ms=now_ms,
            state=state,
            url=str(self._folder.path),
            duration_seconds=0.0,
            refused=self._unreported,
            detail=detail[:MAX_DETAIL],
            remedy=remedy,
        )

    def _words(self, now_ms: int) -> tuple[HealthState, str, str]:
        if self._trouble:
            remedy = "start SGLang with SPECSCOPE_PROBE=1 and SPECSCOPE_SPOOL=DIR, spool = DIR"
            return HealthState.UNREACHABLE, self._trouble, remedy
        if self._waiting and self._context.board.look(self._server) is None:
            detail = f"{self._waiting} windows wait: no launch of {self._server} is known"
            return HealthState.PARTIAL, detail, "let the same process scrape this server: a [[target]] of it"
        if self._stuck >= MOST_STUCK:
            detail = f"{self._stuck} files that were taken cannot be deleted"
            return (
                HealthState.PARTIAL,
                detail,
                f"allow this user to write to {self._folder.path}"[:MAX_DETAIL],
            )
        age = "none yet" if self._last_ms is None else f"the last {(now_ms - self._last_ms) / 1000:.0f} s old"
        words = f"{self._taken} windows taken, {age}; {self._waiting} wait"
        if not self._refused:
            return HealthState.OK, words, ""
        reasons = Counter(reason for _, reason in self._refused).most_common(3)
        named = ", ".join(f"{count} × {reason}" for reason, count in reasons)
        remedy = f"look at them in {self._folder.path / 'refused'}"[:MAX_DETAIL]
        return HealthState.PARTIAL, f"{words}; refused in the last 10 minutes: {named}", remedy

    # The store

    @property
    def _known(self) -> Stored:
        assert self._state is not None
        return self._state

    def _send(self, state: Stored, observations: tuple[Observation, ...], watched: Watched | None) -> None:
        batch = Batch(
            collector_id=self.collector_id,
            sequence=self._sequence + 1,
            target=watched.target if watched else Target(name=self._server, base_url=UNKNOWN_URL),
            launch_key=watched.launch.key if watched else None,
            observations=observations,
            checkpoint=msgspec.msgpack.encode(state),
        )
        if not self._context.sink.apply(batch):
            raise SharedError(f"another process takes files from {self._folder.path}; stop one")
        self._sequence, self._state = batch.sequence, state

    def _resumed(self) -> None:
        if self._state is not None:
            return
        resume = self._context.sink.resume(self.collector_id)
        self._sequence, self._state = resume.sequence, Stored()
        if resume.checkpoint is not None:
            try:
                self._state = msgspec.msgpack.decode(resume.checkpoint, type=Stored)
            except msgspec.MsgspecError as error:
                log.warning("taking anew", server=self._server, reason=str(error))
