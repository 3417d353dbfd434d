"""The marks of one cycle → how long each phase took. Pure arithmetic.

A mark is the entering or leaving of a seam. Spans that stand for themselves (draft, draft-extend) are leave −
enter. Inside verify, what comes before the target's forward is preparation and what comes after it is
sampling (kernels, transfers and grammar included). What belongs to no phase is ``other``, and shown as that.
"""

from __future__ import annotations

from collections.abc import Sequence

CYCLE_IN, CYCLE_OUT = 0, 1
DRAFT_IN, DRAFT_OUT = 2, 3
VERIFY_IN, VERIFY_OUT = 4, 5
FORWARD_IN, FORWARD_OUT = 6, 7
EXTEND_IN, EXTEND_OUT = 8, 9
PREFILL_EXTEND_IN, PREFILL_EXTEND_OUT = 10, 11
"""Marks: even on entering, odd on leaving. Plain integers: an enumeration costs a microsecond per cycle."""

SPECULATIVE, PREFILL, PLAIN, GAP = "speculative", "prefill", "plain", "gap"
"""Kinds of what is timed: cycles by what the target did in them, and the time between two of them."""

_KINDS = {
    "TARGET_VERIFY": SPECULATIVE,
    "EXTEND": PREFILL,
    "MIXED": PREFILL,
    "SPLIT_PREFILL": PREFILL,
    "DECODE": PLAIN,
}


def kind_of(forward_mode: str) -> str | None:
    """Return the kind of a cycle by the name of the target's forward mode; None: nothing was computed."""
    return _KINDS.get(forward_mode)


PHASES: dict[str, tuple[str, ...]] = {
    SPECULATIVE: ("draft", "verify_prepare", "verify", "sampling", "draft_extend", "other"),
    PREFILL: ("prefill", "prefill_draft_extend", "prefill_other"),
    PLAIN: ("decode", "decode_other"),
    GAP: ("gap",),
}
"""Kind → its phases; the last one is what no other phase explains."""


Timing = tuple[float, list[float]]
"""A cycle, and its phases in the order of `PHASES` of its kind, whose sum it is; in the unit of the times."""


class ImpossibleError(ValueError):
    """The phases of a cycle do not fit into it."""


def timing_of(kind: str, marks: Sequence[int], times: Sequence[float], tolerance: float = 0.0) -> Timing:
    """Return the phases of one cycle. ``times`` has one reading per mark, in any unit, of one clock.

    Raises ImpossibleError when the phases together take longer than the cycle, or one of them less than
    nothing (events of streams that do not wait for each other), by more than ``tolerance`` (rounding of the
    clock), ValueError when marks are not what one cycle leaves.
    """
    spans, prepare, sampling = _spans(marks, times)
    cycle = spans[0]
    if kind == SPECULATIVE:
        parts = [spans[1], prepare, spans[3], sampling, spans[4]]
    elif kind == PREFILL:
        parts = [spans[3], spans[5]]
    else:
        parts = [spans[3]]
    rest = cycle - sum(parts)
    if rest < -tolerance or min(parts) < -tolerance:
        told = ", ".join(f"{part:g}" for part in parts)
        raise ImpossibleError(f"phases take {told}, their cycle {cycle:g}")
    parts.append(max(rest, 0.0))
    return cycle, parts


def _spans(marks: Sequence[int], times: Sequence[float]) -> tuple[list[float], float, float]:
    """Return (time within each seam, preparation of the verify forward, sampling after it)."""
    if not marks or marks[0] != CYCLE_IN or marks[-1] != CYCLE_OUT or len(marks) != len(times):
        raise ValueError("the marks of a cycle begin with entering and end with leaving it")
    spans, entered = [0.0] * 6, [0.0] * 6
    prepare = sampling = 0.0
    ready: float | None = None  # when preparing the target's forward began
    forwarded: float | None = None  # when it was over
    for mark, at in zip(marks, times, strict=True):
        seam = mark >> 1
        if not mark & 1:
            entered[seam] = at
            if mark == VERIFY_IN:
                ready = at
            elif mark == FORWARD_IN and ready is not None:
                prepare += at - ready
                ready = None
            continue
        spans[seam] += at - entered[seam]
        if mark == FORWARD_OUT:
            forwarded = at
        elif mark == DRAFT_OUT:
            ready = at
        elif mark == VERIFY_OUT and forwarded is not None:
            sampling += at - forwarded
            ready = None
    return spans, prepare, sampling
