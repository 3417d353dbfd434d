"""What a paired replay says of each slot: the same, the same but quantised, another boundary, rotated, …"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from specscope_collectors.replays.comparing import (
    Floats,
    Nearness,
    gram_difference,
    nearest_rows,
    nearness,
    norm_residual,
)

LEAST_ROWS = 4
SAME = 0.03
"""Median relative L2 up to which numbers are the same: bfloat16 and int8 were measured at up to .027."""
QUANTISED = 0.15
"""Up to which no off-by-one reaches where only the slots of training are known (smallest seen: .171)."""
NEAR = 0.75
"""Beyond it a state is near to no place: four bits were measured at up to .50."""
ROTATED = 0.35
"""`gram_difference` up to which states are a rotation of others."""
NORMED = 0.35
"""`norm_residual` up to which states that are near to no place are those behind a norm."""
EXPLAINED = 1 / 3
"""And those that are near to one, where a norm explains all but this share of what they are away."""


class Verdict(StrEnum):
    """Of one slot."""

    SAME = "same"
    QUANTISED = "quantised"
    """The right boundary, with the errors of other numbers: quantised weights, another kernel."""
    WRONG_BOUNDARY = "wrong_boundary"
    ROTATED = "rotated"
    POST_NORM = "post_norm"
    UNLIKE = "unlike"
    """Near to no place: a part is missing (the residual), or another model."""
    UNSURE = "unsure"
    """The right slot is nearest, but not near: only rows at all boundaries could tell."""
    NO_DATA = "no_data"


@dataclass(frozen=True, slots=True)
class Place:
    """Where training rows stand."""

    name: str
    boundary: int | None = None
    slot: int | None = None


@dataclass(frozen=True, slots=True)
class SlotVerdict:
    """One slot of serving. Numbers are medians over rows."""

    slot: int
    verdict: Verdict
    words: str
    rows: int
    requests: int
    claimed: str | None = None
    nearest: str | None = None
    nearest_boundary: int | None = None
    at_claimed: Nearness | None = None
    at_nearest: Nearness | None = None
    runner_up: str | None = None
    runner_up_ratio: float | None = None
    """Relative L2 of the next place over that of the nearest."""
    votes: float | None = None
    """Share of single rows whose nearest place is the same."""
    distances: tuple[float, ...] = ()
    """Median relative L2 to each place."""


@dataclass(frozen=True, slots=True)
class Paired:
    """Rows of one slot beside those of training."""

    slot: int
    served: Floats
    """Shape (rows, H)."""
    trained: Floats
    """Shape (places, rows, H)."""
    requests: int
    missing: str = ""
    """Why there are no rows."""


def judge_slot(pair: Paired, places: Sequence[Place], claimed: int | None, is_fine: bool) -> SlotVerdict:
    """Say what a slot is. ``claimed``: the place that it was trained on. ``is_fine``: the places are all
    boundaries, so that an off-by-one has a place to be near to.
    """
    rows = len(pair.served)
    name = places[claimed].name if claimed is not None else None
    if rows < LEAST_ROWS or claimed is None:
        reason = pair.missing or (
            f"{rows} of {LEAST_ROWS} rows" if claimed is not None else "nothing to compare this slot with"
        )
        return SlotVerdict(pair.slot, Verdict.NO_DATA, reason, rows, pair.requests, claimed=name)
    near = [nearness(pair.served, trained) for trained in pair.trained]
    distances = np.array([each.relative_l2 for each in near])
    if np.isnan(distances).all():
        words = "no row of it has a norm"
        return SlotVerdict(pair.slot, Verdict.NO_DATA, words, rows, pair.requests, claimed=name)
    order = np.argsort(np.nan_to_num(distances, nan=np.inf), kind="stable")
    best, second = int(order[0]), int(order[1]) if len(order) > 1 else None
    verdict, words, place = _decide(pair, places, near, best, claimed, is_fine)
    return SlotVerdict(
        pair.slot, verdict, words, rows, pair.requests, claimed=name, nearest=places[place].name,
        nearest_boundary=places[place].boundary, at_claimed=near[claimed], at_nearest=near[place],
        runner_up=places[second].name if second is not None else None,
        runner_up_ratio=_ratio(distances, best, second),
        votes=float((nearest_rows(pair.served, pair.trained) == best).mean()),
        distances=tuple(float(each) for each in distances),
    )  # fmt: skip


def _decide(
    pair: Paired, places: Sequence[Place], near: Sequence[Nearness], best: int, claimed: int, is_fine: bool
) -> tuple[Verdict, str, int]:
    """Return the verdict, its words, and the place that it names."""
    distance = near[best].relative_l2
    if not distance <= QUANTISED:
        found = _changed(pair, places, near, NORMED if distance > NEAR else distance * EXPLAINED)
        if found is not None:
            return found
    if not distance <= NEAR:
        return _unlike(places, near, best)
    if best != claimed:
        words = f"these are the states of {places[best].name}; trained on {places[claimed].name}"
        return Verdict.WRONG_BOUNDARY, words, best
    if distance <= SAME:
        return Verdict.SAME, f"as in training, to {distance:.2%}", best
    if is_fine or distance <= QUANTISED:
        words = f"the right boundary, numbers differ by {distance:.1%}: quantised, or another kernel"
        return Verdict.QUANTISED, words, best
    words = (
        f"nearest to {places[best].name}, but {distance:.0%} away: quantised to few bits, or one layer off; "
        "rows at all boundaries (--rows) tell which"
    )
    return Verdict.UNSURE, words, best


def _changed(
    pair: Paired, places: Sequence[Place], near: Sequence[Nearness], normed_limit: float
) -> tuple[Verdict, str, int] | None:
    """Say of which place states are a change of a known kind; None: of none."""
    normed = np.array([norm_residual(pair.served, trained) for trained in pair.trained])
    turned = np.array([gram_difference(pair.served, trained) for trained in pair.trained])
    is_far = min(each.relative_l2 for each in near) > NEAR
    for found, limit, verdict, words in (
        (normed, normed_limit, Verdict.POST_NORM, "states behind a norm"),
        (turned, ROTATED if is_far else -1.0, Verdict.ROTATED, "rotated or permuted"),
    ):
        if not np.isnan(found).all() and np.nanmin(found) <= limit:
            place = int(np.nanargmin(found))
            scale = float(np.exp(near[place].ln_norm_ratio))
            more = f"norms × {scale:.3g}, cosine {near[place].cosine:.2f}"
            return verdict, f"{words}: {places[place].name} ({found[place]:.1%} left over; {more})", place
    return None


def _unlike(places: Sequence[Place], near: Sequence[Nearness], best: int) -> tuple[Verdict, str, int]:
    ratio = float(np.exp(near[best].ln_norm_ratio))
    hint = "a part is missing, such as the residual" if ratio < 1 else "another model, or something added"
    words = (
        f"near to no boundary (nearest {places[best].name}, {near[best].relative_l2:.0%} away, norms × "
        f"{ratio:.2g}): {hint}"
    )
    return Verdict.UNLIKE, words, best


def _ratio(
    distances: np.ndarray[tuple[int, ...], np.dtype[np.float64]], best: int, second: int | None
) -> float | None:
    if second is None or not distances[best] > 0 or np.isnan(distances[second]):
        return None
    return float(distances[second] / distances[best])
