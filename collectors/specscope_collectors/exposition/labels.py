"""Which labels stay on a canonical series, which are dropped, and which are summed away."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from specscope_collectors.exposition.table import RANK_LABELS
from specscope_collectors.increments import LabelPairs

_DROPPED = frozenset({"pid", "le", "priority"})
"""``pid`` names a process, not a rank; ``le`` is the bucket; ``priority`` is handled in `parts`."""

AGGREGATE_PRIORITIES = (None, "")
"""A series without priority, or with an empty one, is the total of the per-priority series."""


@dataclass(frozen=True, slots=True)
class Labels:
    """The labels of one raw series, sorted out."""

    kept: LabelPairs
    """Labels of the canonical series: ranks, model, engine type, category, and the operator's own."""
    priority: str | None
    bound: str | None
    """Value of ``le``, as written."""
    split: LabelPairs
    """All labels but ``le``: what tells the parts of one canonical series apart."""


@lru_cache(maxsize=16_384)
def sort_out(labels: LabelPairs, sums_away: frozenset[str]) -> Labels:
    """Return ``labels`` sorted out; labels in ``sums_away`` are not kept."""
    gone = _DROPPED | sums_away
    priority = bound = None
    for name, value in labels:
        if name == "priority":
            priority = value
        elif name == "le":
            bound = value
    return Labels(
        tuple(pair for pair in labels if pair[0] not in gone),
        priority,
        bound,
        tuple(pair for pair in labels if pair[0] != "le"),
    )


def with_labels(labels: LabelPairs, added: LabelPairs) -> LabelPairs:
    """Return ``labels`` with ``added`` put in, sorted; what the engine says itself wins."""
    return tuple(sorted({**dict(added), **dict(labels)}.items())) if added else labels


@lru_cache(maxsize=16_384)
def rank_of(labels: LabelPairs) -> tuple[str | None, LabelPairs]:
    """Return (model name, rank labels) of a raw series."""
    model = next((value for name, value in labels if name == "model_name"), None)
    return model, tuple(pair for pair in labels if pair[0] in RANK_LABELS)
