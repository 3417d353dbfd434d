"""A job that follows files: it looks again and again, at once while there is more."""

from __future__ import annotations

from concurrent.futures import Executor
from typing import Protocol

from specscope_collectors.threads import in_thread


class Follower(Protocol):
    """What follows files and stores what they say."""

    def step(self) -> bool:
        """Read what has come and store it; return whether there is more to read now."""
        ...

    def close(self) -> None:
        """Close the files."""
        ...


class FollowJob:
    """Runs a follower in worker threads."""

    def __init__(self, name: str, follower: Follower, interval_seconds: float, pool: Executor) -> None:
        self.name = name
        self._follower = follower
        self._interval_seconds = interval_seconds
        self._pool = pool

    async def step(self) -> float:
        """Read what has come and store it."""
        has_more = await in_thread(self._follower.step, self._pool)
        return 0.0 if has_more else self._interval_seconds

    async def close(self) -> None:
        """Close the files."""
        self._follower.close()
