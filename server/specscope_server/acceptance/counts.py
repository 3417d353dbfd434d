"""Cycles, accepted and proposed drafts of a launch, from the best counters that it has (pure).

* Counted: the engine (or the probe in it) counts cycles and drafts as they happen. Nothing is derived.
* Derived: cycles and tokens of finished requests are counted, so that accepted = tokens − requests − cycles
  and proposed = cycles × (D − 1).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from specscope_server.acceptance.gather import CYCLES, DERIVING, DRAFTS, LaunchData
from specscope_server.acceptance.statistics import Floats, derived_accepted


@dataclass(frozen=True, slots=True)
class LaunchTotals:
    """Over the whole window; None = not counted."""

    cycles: float
    accepted: float | None
    proposed: float | None
    tokens: float | None
    requests: float | None


@dataclass(frozen=True, slots=True)
class LaunchArrays:
    """Per bucket, shape (buckets,); NaN = not observed, or not known."""

    cycles: Floats
    accepted: Floats
    proposed: Floats


def constant_draft_tokens(data: LaunchData) -> float | None:
    """Return D of a launch if it was one value for the whole window, else None.

    An adaptive launch switches between samples, unseen: None even if every sample shows the same D.
    """
    if data.launch.adaptive:
        return None
    seen = data.extremes("spec.num_draft_tokens")
    if seen is None:
        return None if data.launch.num_draft_tokens is None else float(data.launch.num_draft_tokens)
    return seen[0] if seen[0] == seen[1] else None


def counts_drafts(data: LaunchData) -> bool:
    """Tell whether cycles and accepted drafts themselves were counted."""
    return bool(data.grown("spec.cycles")) and "spec.drafts_accepted" in data.counters


def has_counts(data: LaunchData) -> bool:
    """Tell whether every counter is there that accepted drafts need."""
    return counts_drafts(data) or all(metric in data.counters for metric in DERIVING)


def made_cycles(data: LaunchData) -> bool:
    """Tell whether cycles were counted in the window."""
    return any(data.grown(metric) for metric in CYCLES)


def totals(data: LaunchData) -> LaunchTotals:
    """Return the sums of a launch that made cycles."""
    if counts_drafts(data):
        return LaunchTotals(
            data.counters["spec.cycles"].total,
            data.grown("spec.drafts_accepted"),
            data.grown("spec.drafts_proposed"),
            data.grown("tokens.emitted"),
            data.grown("requests.finished"),
        )
    tokens, requests, calls = (data.grown(metric) for metric in DERIVING)
    if calls is None:  # cycles alone, without the drafts
        return LaunchTotals(data.grown("spec.cycles") or 0.0, None, None, None, None)
    draft_tokens = constant_draft_tokens(data)
    proposed = None if draft_tokens is None else calls * (draft_tokens - 1)
    if tokens is None or requests is None:
        return LaunchTotals(calls, None, proposed, None, None)
    return LaunchTotals(calls, derived_accepted(tokens, requests, calls), proposed, tokens, requests)


def arrays(data: LaunchData) -> LaunchArrays | None:
    """Return the counts per bucket; None for a launch without."""
    if not has_counts(data):
        return None
    if counts_drafts(data):
        cycles, proposed, accepted = (
            data.counters[metric].value if metric in data.counters else None for metric in DRAFTS
        )
        assert cycles is not None
        assert accepted is not None
        unknown = np.full(len(cycles), np.nan)
        counted = np.where(np.isnan(cycles), np.nan, np.nan_to_num(accepted))
        return LaunchArrays(cycles, counted, unknown if proposed is None else proposed)
    tokens, requests, calls = (data.counters[metric].value for metric in DERIVING)
    draft_tokens = constant_draft_tokens(data)
    derived = np.nan_to_num(tokens) - np.nan_to_num(requests) - calls
    return LaunchArrays(
        calls,
        derived,
        np.full(len(calls), np.nan) if draft_tokens is None else calls * (draft_tokens - 1),
    )
