"""Keeps one task for each key that is wanted: starts, stops and replaces them without touching the others."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import structlog

S = TypeVar("S")

log = structlog.get_logger("specscope.collector")


@dataclass(frozen=True, slots=True)
class Difference:
    """What has to be done so that what is kept is what is wanted. Keys, in their order."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


def difference(kept: Mapping[str, S], wanted: Mapping[str, S]) -> Difference:
    """Compare by key and value."""
    return Difference(
        tuple(key for key in wanted if key not in kept),
        tuple(key for key, value in wanted.items() if key in kept and kept[key] != value),
        tuple(key for key in kept if key not in wanted),
    )


@dataclass(slots=True)
class _Turn:
    """Whose turn it is with one key; dropped when nobody waits any more."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0


class Keepers(Generic[S]):
    """Used on one event loop. Of one key at most one task works at a time: the next waits for its end."""

    def __init__(
        self,
        keep: Callable[[S, float], Awaitable[None]],
        farewell: Callable[[S], Awaitable[None]] | None = None,
    ) -> None:
        """``keep(value, place)`` runs until it is cancelled; ``place`` in [0, 1) spreads those begun at once.

        ``farewell(value)`` is called once when a key was removed and its task has ended.
        """
        self._keep = keep
        self._farewell = farewell
        self._kept: dict[str, S] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._turns: dict[str, _Turn] = {}

    @property
    def kept(self) -> Mapping[str, S]:
        """What is kept now."""
        return self._kept

    def reconcile(self, wanted: Mapping[str, S]) -> Difference:
        """Keep exactly ``wanted`` from now on; returns at once with what is being done about it."""
        change = difference(self._kept, wanted)
        former, self._kept = self._kept, dict(wanted)
        for key in (*change.removed, *change.changed):
            self._end(key)
        if self._farewell is not None:
            for key in change.removed:
                self._leave(self._part(key, former[key]))
        started = (*change.changed, *change.added)
        for at, key in enumerate(started):
            self._tasks[key] = asyncio.create_task(self._work(key, wanted[key], at / len(started)), name=key)
        return change

    def part(self, key: str, value: S) -> None:
        """Say farewell to something that was kept before a restart, unless it is kept now."""
        if key not in self._kept:
            self._leave(self._part(key, value))

    async def close(self, timeout_seconds: float) -> None:
        """End all tasks; wait for them, but not longer than ``timeout_seconds``."""
        for key in tuple(self._tasks):
            self._end(key)
        self._kept = {}
        if self._ending:
            _, late = await asyncio.wait(self._ending, timeout=timeout_seconds)
            if late:
                log.warning("did not end in time", what=sorted(task.get_name() for task in late)[:10])

    def _end(self, key: str) -> None:
        task = self._tasks.pop(key, None)
        if task is not None:
            task.cancel()
            self._track(task)

    def _leave(self, work: Awaitable[None]) -> None:
        self._track(asyncio.ensure_future(work))

    def _track(self, task: asyncio.Future[None]) -> None:
        assert isinstance(task, asyncio.Task)
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def _work(self, key: str, value: S, place: float) -> None:
        async with self._turn(key):
            try:
                await self._keep(value, place)
            except Exception as error:  # a bug: the others go on
                log.error("ended by an error", what=key, error=repr(error))

    async def _part(self, key: str, value: S) -> None:
        async with self._turn(key):
            if key in self._kept or self._farewell is None:
                return  # it came back meanwhile
            try:
                await self._farewell(value)
            except Exception as error:  # a sink that cannot store now
                log.warning("could not say that it is gone", what=key, error=repr(error)[:300])

    @contextlib.asynccontextmanager
    async def _turn(self, key: str) -> AsyncIterator[None]:
        turn = self._turns.setdefault(key, _Turn())
        turn.users += 1
        try:
            async with turn.lock:
                yield
        finally:
            turn.users -= 1
            if turn.users == 0:
                del self._turns[key]
