"""What cannot be in healthy states, from counts: no reference is needed, and there are no false alarms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from specscope_collectors.states.post_norm import is_post_norm
from specscope_collectors.states.rules import LEAST_ROWS, Fault
from specscope_collectors.states.sums import counted
from specscope_server.drift.schemas import Invariant

ENOUGH_PAIRS = 8
"""Pairs of rows with one token id from which on a slot may be called the embedding."""
MANY_DUPLICATES = 8
REJECTED = "verify_rejected"

EMBEDDING, POST_NORM = "embedding", "post_norm"
NOT_FINITE, ZERO, DUPLICATES = "nonfinite_rows", "zero_rows", "duplicate_rows"
FAULTS = {
    NOT_FINITE: Fault.NOT_FINITE, ZERO: Fault.ZERO_ROWS, DUPLICATES: Fault.DUPLICATES,
    EMBEDDING: Fault.EMBEDDING, POST_NORM: Fault.POST_NORM,
}  # fmt: skip


def invariants_of(
    counts: Iterable[Mapping[str, int]], rows: int, trained: int | None, phase: str
) -> list[Invariant]:
    """Return what the counts of some windows say about one slot and phase."""
    total = counted(counts)
    return [
        _rows(total, NOT_FINITE, "Rows that are not finite", rows, phase),
        _rows(total, ZERO, "Rows of zeros", rows, phase),
        _duplicates(total, rows),
        _embedding(total, trained),
    ]


def post_norm_of(square: float | None, rows: int) -> Invariant:
    """Say whether the newest window stands behind the final norm."""
    title = "Is behind the final norm"
    if square is None:
        return _unknown(POST_NORM, title, "the reference was built without --norm-weight")
    if rows < LEAST_ROWS:
        return _unknown(POST_NORM, title, f"{rows} of {LEAST_ROWS} rows")
    message = f"mean((h/w)²) is {square:.3g}; 1 = the norm was applied"
    return Invariant(
        kind=POST_NORM, title=title, passed=not is_post_norm(square), count=None, looked_at=rows,
        message=message,
    )  # fmt: skip


def fault_of(invariants: Iterable[Invariant]) -> Fault:
    """Return the first fault that invariants tell; NONE: they hold."""
    failed = [each for each in invariants if each.passed is False]
    return FAULTS[failed[0].kind] if failed else Fault.NONE


def _rows(total: Mapping[str, int], kind: str, title: str, rows: int, phase: str) -> Invariant:
    count = total.get(kind)
    if count is None or not rows:
        return _unknown(kind, title, "the profiles do not count them")
    passed: bool | None = count == 0
    message = f"{count} of {rows} rows" if count else "none"
    if count and phase == REJECTED:
        passed, message = None, f"{message}; behind a rejected draft rows may be padding"
    return Invariant(kind=kind, title=title, passed=passed, count=count, looked_at=rows, message=message)


def _duplicates(total: Mapping[str, int], rows: int) -> Invariant:
    title = "Equal rows of different tokens"
    count = total.get(DUPLICATES)
    if count is None or not rows:
        return _unknown(DUPLICATES, title, "the profiles do not count them")
    few = 0 < count < MANY_DUPLICATES
    message = "none" if not count else f"{count} of {rows} rows: states are stale, or padding is read"
    return Invariant(
        kind=DUPLICATES, title=title, passed=None if few else count == 0, count=count, looked_at=rows,
        message=f"{message}; from {MANY_DUPLICATES} on it is a fault" if few else message,
    )  # fmt: skip


def _embedding(total: Mapping[str, int], trained: int | None) -> Invariant:
    """Rows of one token id at different positions are identical only in boundary 0.

    Pairs at equal positions are never counted: a shared prefix makes them equal in every layer.
    """
    title = "Is the embedding"
    pairs, identical = total.get("equal_id_pairs", 0), total.get("equal_id_pairs_identical", 0)
    if pairs < ENOUGH_PAIRS:
        return Invariant(
            kind=EMBEDDING, title=title, passed=None, count=identical, looked_at=pairs,
            message=f"{pairs} of {ENOUGH_PAIRS} pairs of rows with one token id at different positions",
        )  # fmt: skip
    is_embedding = 2 * identical > pairs
    words = f"{identical} of {pairs} pairs of rows with one token id are identical"
    if is_embedding and trained == 0:
        words += ", as trained"
    return Invariant(
        kind=EMBEDDING, title=title, passed=not is_embedding or trained == 0, count=identical,
        looked_at=pairs, message=words,
    )  # fmt: skip


def _unknown(kind: str, title: str, why: str) -> Invariant:
    return Invariant(kind=kind, title=title, passed=None, count=None, looked_at=None, message=why)
