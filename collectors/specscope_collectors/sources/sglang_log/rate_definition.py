"""Which definition the printed rate has, decided from the numbers that were printed beside it.

τ and the rate come from one window, both rounded to two decimals. Under one of the two definitions, and for
one whole D, the true τ that hides behind the printed one must give the printed rate:

    τ/D             bonus token in the numerator; its floor is 1/D
    (τ − 1)/(D − 1) strict
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

WITH_BONUS, STRICT, UNDETERMINED, NONE = "τ/D", "(τ−1)/(D−1)", "undetermined", "none printed"
SMALLEST_D, LARGEST_D = 2, 64
MIN_SHARE = 0.98
"""Share of the pairs that must fit: a window read across an adaptive switch fits nothing."""
MAX_DISTINCT = 20_000
_HALF = 0.005 + 1e-9


@dataclass(frozen=True, slots=True)
class Decision:
    """What the numbers say."""

    definition: str
    draft_tokens: int | None
    """D, when only one fits."""
    pairs: int
    reason: str


@dataclass(slots=True)
class RatePairs:
    """Pairs (τ, rate) as printed, with how often; bounded."""

    pairs: Counter[tuple[float, float]] = field(default_factory=Counter)
    beyond: int = 0

    def add(self, length: float, rate: float) -> None:
        """Note one pair."""
        if len(self.pairs) < MAX_DISTINCT or (length, rate) in self.pairs:
            self.pairs[length, rate] += 1
        else:
            self.beyond += 1

    def add_all(self, lengths: NDArray[np.float64], rates: NDArray[np.float64]) -> None:
        """Note many pairs, in their order."""
        pairs = zip(lengths.tolist(), rates.tolist(), strict=True)
        if len(self.pairs) + len(lengths) <= MAX_DISTINCT:
            self.pairs.update(pairs)
        else:
            for length, rate in pairs:
                self.add(length, rate)

    def decide(self, draft_tokens: int | None = None) -> Decision:
        """Return the definition that the numbers allow; ``draft_tokens``: D if the launch told it."""
        total = self.pairs.total()
        if not total:
            return Decision(NONE, None, 0, "no rate was printed")
        told = draft_tokens is not None and draft_tokens >= SMALLEST_D
        depths = [draft_tokens] if told and draft_tokens else list(range(SMALLEST_D, LARGEST_D + 1))
        fits = [(name, depth) for depth in depths for name in (WITH_BONUS, STRICT) if self._fit(name, depth)]
        return _decision(fits, total, f"D = {draft_tokens}" if told else "any whole D from 2 to 64")

    def _fit(self, name: str, depth: int) -> bool:
        """Whether enough of the pairs fit; most hypotheses are out after a few."""
        may_miss = (1 - MIN_SHARE) * self.pairs.total()
        missed = 0
        for (length, rate), count in self.pairs.items():
            if not _fits(name, depth, length, rate):
                missed += count
                if missed > may_miss:
                    return False
        return True


def _fits(name: str, depth: int, length: float, rate: float) -> bool:
    """Whether some τ that rounds to ``length`` gives a rate that rounds to ``rate``; τ is at most D + 1."""
    if length - _HALF > depth + 1:
        return False
    if name == WITH_BONUS:
        low, high = (length - _HALF) / depth, (length + _HALF) / depth
    else:
        low, high = (length - _HALF - 1) / (depth - 1), (length + _HALF - 1) / (depth - 1)
    return low - _HALF <= rate <= high + _HALF


def _decision(fits: list[tuple[str, int]], total: int, searched: str) -> Decision:
    names = {name for name, _ in fits}
    seen = f"{total} printed pairs of accept length and rate"
    if len(names) == 1:
        name, depths = names.pop(), [depth for _, depth in fits]
        shown = f"D = {depths[0]}" if len(depths) == 1 else f"D from {depths[0]} to {depths[-1]}"
        return Decision(
            name, depths[0] if len(depths) == 1 else None, total, f"{seen} fit {name} with {shown} only"
        )
    if names:
        return Decision(UNDETERMINED, None, total, f"{seen} fit both definitions (tried {searched})")
    return Decision(UNDETERMINED, None, total, f"{seen} fit neither definition (tried {searched})")
