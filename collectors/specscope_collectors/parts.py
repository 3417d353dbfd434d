"""Lists of several parts (files, names): a part that cannot be read now keeps its last good list."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

from specscope_collectors.clock import Monotonic
from specscope_collectors.discoveries import Answer, DiscoveryError, Listed


@dataclass(frozen=True, slots=True)
class _Good:
    listed: tuple[Listed, ...]
    refused: tuple[str, ...]
    time: float


class Parts:
    """What each part listed last, and which parts fail now."""

    def __init__(self, keep_seconds: float | None = None, monotonic: Monotonic = time.monotonic) -> None:
        self._keep_seconds = keep_seconds
        self._monotonic = monotonic
        self._good: dict[str, _Good] = {}
        self._bad: dict[str, DiscoveryError] = {}

    def good(self, part: str, listed: Iterable[Listed], refused: Iterable[str] = ()) -> None:
        """Take a part that was read."""
        self._bad.pop(part, None)
        self._good[part] = _Good(tuple(listed), tuple(refused), self._monotonic())

    def bad(self, part: str, error: DiscoveryError) -> None:
        """Note that a part cannot be read; its last good list is kept for a while."""
        self._bad[part] = error
        kept = self._good.get(part)
        is_old = kept is not None and self._keep_seconds is not None
        if is_old and kept is not None and self._monotonic() - kept.time >= (self._keep_seconds or 0):
            del self._good[part]

    def retain(self, parts: Iterable[str]) -> None:
        """Forget parts that are no more."""
        present = set(parts)
        self._good = {part: each for part, each in self._good.items() if part in present}
        self._bad = {part: each for part, each in self._bad.items() if part in present}

    def answer(self, next_seconds: float | None = None) -> Answer:
        """Return all parts together. Raises `DiscoveryError` when none of them can be read."""
        errors = list(self._bad.values())
        if errors and self._bad.keys() >= self._good.keys():
            words = "; ".join(str(error) for error in errors)
            raise DiscoveryError(words, state=errors[0].state, remedy=errors[0].remedy)
        keeps = "; ".join(
            f"{error}{' (its last good list is used)' if part in self._good else ''}"
            for part, error in self._bad.items()
        )
        good = self._good.values()
        return Answer(
            tuple(listed for each in good for listed in each.listed),
            tuple(words for each in good for words in each.refused),
            next_seconds,
            keeps,
        )
