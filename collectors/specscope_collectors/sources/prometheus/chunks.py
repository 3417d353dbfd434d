"""How much history is asked for at once: as much as the API and our memory bear, found by trying."""

from __future__ import annotations

from dataclasses import dataclass

TARGET_SAMPLES = 150_000
"""Samples wished for in one answer: some 4 MB of JSON."""
FIRST_MS = 300_000
LEAST_MS = 30_000
EMPTY_MOST_MS = 3_600_000
"""Longest chunk after an empty one: a server may begin in it, and with how much is not known."""
MOST_MS = 86_400_000
_GROWTH = 4.0


@dataclass(slots=True)
class ChunkSize:
    """Length of the next chunk of raw samples, or of a grid."""

    length_ms: int = FIRST_MS
    least_ms: int = LEAST_MS
    most_ms: int = MOST_MS
    empty_most_ms: int = EMPTY_MOST_MS

    def got(self, samples: int, asked_ms: int) -> None:
        """Learn from an answer: aim at `TARGET_SAMPLES`, growing by steps."""
        wished = min(_GROWTH, TARGET_SAMPLES / max(samples, 1))
        if asked_ms < self.length_ms and wished > 1:
            return  # a short rest says nothing about a whole chunk
        most_ms = self.most_ms if samples else self.empty_most_ms
        self.length_ms = int(min(max(asked_ms * wished, self.least_ms), most_ms))

    def halve(self, asked_ms: int) -> bool:
        """Ask for half as much; False when less cannot be asked for."""
        if asked_ms <= self.least_ms:
            return False
        self.length_ms = max(min(asked_ms, self.length_ms) // 2, self.least_ms)
        return True
