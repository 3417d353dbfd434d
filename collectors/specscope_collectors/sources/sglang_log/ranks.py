"""Which rank wrote a line, and which ranks only mirror another one."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache

from specscope_collectors.logs.stamps import BRACKET

_TAG = re.compile(r"(?<![A-Z_])(DP|PP|TP|EP)(\d{1,6})\b")


@dataclass(frozen=True, slots=True)
class Rank:
    """Numbers in the stamp's brackets; None = no tag, which the engine leaves out for a size of 1."""

    dp: int | None = None
    pp: int = 0
    tp: int = 0
    ep: int | None = None

    @property
    def place(self) -> tuple[int, int]:
        """The lowest place of a data-parallel group is its leader."""
        return self.pp, self.tp

    def labels(self) -> dict[str, str]:
        """Return the labels that ``/metrics`` has for this rank."""
        numbers = {"tp_rank": self.tp, "pp_rank": self.pp, "dp_rank": self.dp, "moe_ep_rank": self.ep}
        return {name: str(number) for name, number in numbers.items() if number is not None}

    def __str__(self) -> str:
        named = {"DP": self.dp, "PP": self.pp or None, "TP": self.tp}
        return " ".join(f"{name}{number}" for name, number in named.items() if number is not None)


def rank_of(prefix: str) -> Rank:
    """Return the rank that the last stamp in ``prefix`` names."""
    match = _tagged(prefix)
    return _parsed(match[4]) if match and match[4] else _parsed("")


def find_tags(prefix: str) -> dict[str, tuple[int, int]]:
    """Return tag → where its number stands in ``prefix``, of the rank that `rank_of` returns."""
    match = _tagged(prefix)
    if not match or not match[4]:
        return {}
    at = match.start(4)
    return {tag[1]: (at + tag.start(2), at + tag.end(2)) for tag in _TAG.finditer(match[4])}


def rank_from(numbers: dict[str, int]) -> Rank:
    """Return the rank of tag → number."""
    return Rank(numbers.get("DP"), numbers.get("PP", 0), numbers.get("TP", 0), numbers.get("EP"))


def _tagged(prefix: str) -> re.Match[str] | None:
    at = prefix.rfind("[")
    return BRACKET.match(prefix, at) if at >= 0 else None


@lru_cache(maxsize=4096)
def _parsed(tags: str) -> Rank:
    return rank_from({name: int(number) for name, number in _TAG.findall(tags)})


@dataclass(slots=True)
class Leaders:
    """The lowest place seen of each data-parallel group of each launch."""

    best: dict[tuple[str, int | None], tuple[int, int]] = field(default_factory=dict)

    def note(self, launch_key: str, rank: Rank) -> None:
        """Note that this rank reports."""
        key = (launch_key, rank.dp)
        known = self.best.get(key)
        if known is None or rank.place < known:
            self.best[key] = rank.place

    def leads(self, launch_key: str, rank: Rank) -> bool:
        """Whether no lower rank of its group has reported so far; the others print the same numbers."""
        return self.best.get((launch_key, rank.dp)) == rank.place
