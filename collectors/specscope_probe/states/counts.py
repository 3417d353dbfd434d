"""What the part counts of itself and of what it saw, for the metrics."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

INVARIANTS = (
    "nonfinite_rows", "zero_rows", "duplicate_rows", "equal_id_pairs", "equal_id_pairs_identical",
    "bad_width", "width_changed", "embedding", "capture_differs",
)  # fmt: skip
"""The last two count windows, all others rows, pairs or forwards."""
DROPS = ("no_buffer", "no_limit", "no_rows", "not_all_rows", "not_captured", "not_judged")
OUTCOMES = ("written", "dropped")
PUSHES = ("stored", "failed", "refused")


@dataclass(slots=True)
class StateCounts:
    """Each number is written by one thread only."""

    samples: Counter[str] = field(default_factory=Counter)
    """Forwards that were sampled, by ``prefill``, ``verify`` or ``calibration``."""
    rows: Counter[str] = field(default_factory=Counter)
    """Rows that went into profiles, by phase."""
    dropped: Counter[str] = field(default_factory=Counter)
    """Forwards that were to be sampled and did not become part of a profile, by one of `DROPS`."""
    files: Counter[str] = field(default_factory=Counter)
    """Windows by what became of them, `OUTCOMES`."""
    pushes: Counter[str] = field(default_factory=Counter)
    """Attempts to push, by `PUSHES`."""
    push_waiting: int | None = None
    """Files that wait to be pushed; None: nothing is pushed."""
    invariants: Counter[str] = field(default_factory=Counter)
    device_seconds: float | None = None
    """Time of reducing sampled rows on the device; None: nothing was read, or there is no device."""
    check_sample: int | None = None
    check_ln_norms: tuple[float, ...] = ()
    """Mean ln‖h‖ by slot of a sample that all ranks of a group take."""
