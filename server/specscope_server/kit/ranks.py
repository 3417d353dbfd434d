"""Which label sets are mirrors of each other (pure).

Facts: every tensor-parallel rank of one data-parallel group runs the same requests, so its series mirror
those of the group's first rank; adding them up would count each token tp_size times. Each data-parallel group
has its own requests: those add up. ``dp_rank`` is absent without data parallelism.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)

MIRROR_LABELS = frozenset({"tp_rank", "pp_rank", "moe_ep_rank", "attn_tp_rank", "attn_cp_rank", "pid"})
RANK_LABELS = MIRROR_LABELS | {"dp_rank"}


def rank_number(labels: Mapping[str, str], name: str) -> int:
    """Return the number of a rank label; an absent one (or text that is no number) counts as 0."""
    text = labels.get(name, "0")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


def mirror_group(labels: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the labels that tell apart what is not a mirror: all but those of ranks inside a group."""
    return tuple(sorted((name, value) for name, value in labels.items() if name not in MIRROR_LABELS))


def leaders(series: Iterable[tuple[Key, Mapping[str, str]]]) -> list[Key]:
    """Return, of each group of mirrors, the one with the lowest (pp_rank, tp_rank); in the order given.

    ``series``: (key, labels) of one metric of one launch.
    """
    best: dict[Hashable, tuple[tuple[int, int], Key]] = {}
    for key, labels in series:
        place = (rank_number(labels, "pp_rank"), rank_number(labels, "tp_rank"))
        group = mirror_group(labels)
        if group not in best or place < best[group][0]:
            best[group] = (place, key)
    return [key for _, key in best.values()]


def homes(
    groups: Iterable[tuple[tuple[str, str], ...]],
) -> dict[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]:
    """Return, for each group's labels, those of the scheduler that it speaks of.

    Sources of the same scheduler name more or fewer labels: a set that is part of exactly one fuller set
    means the same scheduler.
    """
    distinct = {group: frozenset(group) for group in groups}
    found = {}
    for group, labels in distinct.items():
        fuller = [other for other, more in distinct.items() if labels < more]
        widest = [other for other in fuller if not any(distinct[other] < distinct[one] for one in fuller)]
        found[group] = widest[0] if len(widest) == 1 else group
    return found
