"""What vLLM's counters of drafts may say together, and the draft depth that they give away.

In every scrape, whatever the engine was doing: accepted drafts ≤ proposed ones, position k + 1 accepted at
most as often as position k, the first at most once a cycle. vLLM adds to its counters in the order cycles,
proposed, accepted, by position, so a scrape in between keeps all of these. What breaks them is refused.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from itertools import pairwise

from specscope_collectors.exposition.mapped import Mapped
from specscope_collectors.exposition.mapping import Refuse
from specscope_collectors.increments import LabelPairs, SeriesKey

CYCLES, PROPOSED, ACCEPTED = "spec.cycles", "spec.drafts_proposed", "spec.drafts_accepted"
ROUNDING = 1e-9


def settle(mapped: Mapped, refuse: Refuse) -> None:
    """Take out contradictory counts, calling ``refuse``; add K and D of each rank that tells positions."""
    accepted, proposed = by_position(mapped, ACCEPTED), by_position(mapped, PROPOSED)
    for labels, counts in accepted.items():
        cycles = mapped.counters.get((CYCLES, labels))
        reason = _contradiction(counts, proposed.get(labels, {}), cycles)
        if reason:
            refuse((ACCEPTED, labels), reason)
            _remove(mapped, labels)
        elif 0 not in counts:
            depth = float(max(counts))
            mapped.levels["spec.num_steps", labels] = depth
            mapped.levels["spec.num_draft_tokens", labels] = depth + 1


def by_position(mapped: Mapped, metric: str) -> dict[LabelPairs, dict[int, float]]:
    """Return labels without the position → position → count; position 0 = not by position."""
    found: dict[LabelPairs, dict[int, float]] = defaultdict(dict)
    for (name, labels), value in mapped.counters.items():
        if name == metric:
            position, rest = split(labels)
            found[rest][position] = value
    return found


def split(labels: LabelPairs) -> tuple[int, LabelPairs]:
    """Return (draft position, 0 = none; the other labels)."""
    position = next((value for name, value in labels if name == "position"), "0")
    return int(position), tuple(pair for pair in labels if pair[0] != "position")


def _contradiction(accepted: Mapping[int, float], proposed: Mapping[int, float], cycles: float | None) -> str:
    """Return why these counts of one rank cannot be; empty = they can."""
    total = math.fsum(accepted.values())
    if proposed and total > math.fsum(proposed.values()) * (1 + ROUNDING):
        return f"{total:g} drafts accepted of {math.fsum(proposed.values()):g} proposed"
    row = [accepted[position] for position in sorted(accepted) if position > 0]
    if row and max(accepted) != len(row):
        return f"drafts are accepted at position {max(accepted)}, but only {len(row)} positions are told"
    if cycles is not None and row:
        row.insert(0, cycles)
    for earlier, later in pairwise(row):
        if later > earlier * (1 + ROUNDING):
            return f"a draft accepted {later:g} times after {earlier:g} times for what comes before it"
    return ""


def _remove(mapped: Mapped, labels: LabelPairs) -> None:
    """Take out every count of drafts of a rank: one without the other would be a wrong ratio."""
    gone: list[SeriesKey] = [
        (metric, own)
        for metric, own in mapped.counters
        if metric in (CYCLES, PROPOSED, ACCEPTED) and split(own)[1] == labels
    ]
    for key in gone:
        del mapped.counters[key]
