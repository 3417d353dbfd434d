"""Read the counts of one finished request under every spelling of SGLang 0.4.6 to 0.5.23, and check them.

Missing stays missing: older versions say only how often they verified, and an engine without speculation
says nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from specscope_collectors.sources.requests.errors import CountsError

VERIFY_CALLS = ("spec_verify_ct",)
ACCEPTED = ("spec_num_correct_drafts", "spec_accepted_drafts", "spec_accept_token_num")
PROPOSED = ("spec_num_proposed_drafts", "spec_proposed_drafts", "spec_draft_token_num")
HISTOGRAM = ("spec_correct_drafts_histogram", "spec_accept_histogram")
"""Newest spelling first: 0.5.15 writes the new name and an alias, 0.5.23 only the new one."""

MAX_COUNT = 2**31 - 1
MAX_DEPTH = 512


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts of one request; None = the engine did not say."""

    verify_calls: int | None
    accepted_drafts: int | None
    proposed_drafts: int | None
    histogram: tuple[int, ...] | None


def read_counts(meta: Mapping[str, Any]) -> Counts:
    """Return the counts; raise `CountsError` where they contradict each other."""
    calls, accepted, proposed = (first_count(meta, names) for names in (VERIFY_CALLS, ACCEPTED, PROPOSED))
    histogram = _histogram(meta)
    if histogram is not None:
        calls, accepted = _agreed(histogram, calls, accepted)
    if accepted is not None and proposed is not None and accepted > proposed:
        raise CountsError(
            f"{accepted} accepted drafts are more than the {proposed} proposed; send counts of one request"
        )
    return Counts(calls, accepted, proposed, _padded(histogram, calls, proposed))


def first_count(meta: Mapping[str, Any], names: Sequence[str]) -> int | None:
    """Return the count under the first of these names that is there; raise `CountsError` for no count."""
    for name in names:
        if meta.get(name) is not None:
            return _count(meta[name], name)
    return None


def first_number(meta: Mapping[str, Any], name: str) -> float | None:
    """Return a finite number that is not negative, else None."""
    value = meta.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if value >= 0 and math.isfinite(value) and value <= MAX_COUNT else None


def _count(value: Any, name: str) -> int:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= MAX_COUNT or value != int(value):
        raise CountsError(f"{name}={str(value)[:40]} is not a count; send it as the engine gave it")
    return int(value)


def _histogram(meta: Mapping[str, Any]) -> tuple[int, ...] | None:
    """Return h; an empty one is as good as none."""
    name = next((name for name in HISTOGRAM if meta.get(name)), None)
    if name is None:
        return None
    value = meta[name]
    if not isinstance(value, list | tuple) or len(value) > MAX_DEPTH:
        raise CountsError(f"{name} is not a list of at most {MAX_DEPTH} counts; send it as the engine did")
    return tuple(_count(steps, name) for steps in value)


def _agreed(histogram: Sequence[int], calls: int | None, accepted: int | None) -> tuple[int, int]:
    """Return Σh and Σj·h, which are the verify calls and the accepted drafts by definition."""
    total = sum(histogram)
    drafts = sum(accepted_drafts * steps for accepted_drafts, steps in enumerate(histogram))
    if calls not in (None, total):
        raise CountsError(f"the histogram has {total} steps but the engine verified {calls} times")
    if accepted not in (None, drafts):
        raise CountsError(f"the histogram holds {drafts} accepted drafts but the engine says {accepted}")
    return total, drafts


def _padded(
    histogram: tuple[int, ...] | None, calls: int | None, proposed: int | None
) -> tuple[int, ...] | None:
    """Return h up to the drafts that each step proposed: the engine ends it at the longest run it saw.

    Under adaptive speculation steps propose differently many; then nothing is added.
    """
    if histogram is None or not calls or proposed is None or proposed % calls:
        return histogram
    missing = min(proposed // calls, MAX_DEPTH) + 1 - len(histogram)
    return histogram + (0,) * max(missing, 0)
