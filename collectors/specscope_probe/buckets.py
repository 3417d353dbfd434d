"""Label values with few possibilities: batch sizes in powers of two."""

from __future__ import annotations

BATCH_BUCKETS = ("1", "2", "3-4", "5-8", "9-16", "17-32", "33-64", "65-128", "129-256", "257+")
"""Requests decoded or prefilled together."""

ALL = "all"
"""Where times are not split by batch size (or by D)."""

OVERFLOW = "more"
"""Where label sets go that are beyond the bound of their number."""


def batch_bucket(requests: int) -> str:
    """Return the bucket of a batch of ``requests`` ≥ 1."""
    return BATCH_BUCKETS[min((requests - 1).bit_length(), len(BATCH_BUCKETS) - 1)]
