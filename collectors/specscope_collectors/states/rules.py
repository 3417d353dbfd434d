"""What may be said of one window, and of the last three. Ranks boundaries; does not threshold distances.

Under a change of text the distance to the right boundary is larger than an off-by-one, so which place is
nearest decides, by two statistics that must agree; two gross limits stand beside it, for what has no place.

The second statistic is a likelihood with the variances of the reference. Text that varies otherwise misleads
it by a layer; so between the trained boundary and its neighbours it is asked again, with the window's own
variances. But then both rest on mean directions and err alike, so what vcos names must be beyond chance.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from specscope_collectors.states import distances
from specscope_collectors.states.bank import Bank, Scores
from specscope_collectors.states.sums import Floats, Sums

LEAST_ROWS, LEAST_REQUESTS, LEAST_COMMON_ROWS = 64, 8, 8
FULL_ROWS, FULL_REQUESTS = 256, 32
GROSS_NORM = 0.20
"""Nats of W₁ of ln‖h‖."""
GROSS_DIRECTION = 0.35
"""1 − cos of mean unit vectors."""
CLEAR = 2.0
"""Standard errors over token ids: 95 % of what is equal stays below, on either side."""
VOTES, VOTES_NEEDED = 3, 2


class Fault(StrEnum):
    """What is wrong with a slot."""

    NONE = "none"
    WRONG_BOUNDARY = "wrong_boundary"
    """Both direction statistics name the same other boundary."""
    OTHER_SLOT = "other_slot"
    """The same, where only the slots of training are known."""
    EMBEDDING = "embedding"
    """Equal token ids have equal rows: this is boundary 0."""
    POST_NORM = "post_norm"
    """Rows are those behind a norm."""
    GROSS_NORM = "gross_norm"
    """Norms are of another size: a missing residual, a post-norm state, another layer."""
    GROSS_DIRECTION = "gross_direction"
    """Directions are others though norms fit: rotated, permuted, another model."""
    NOT_FINITE = "not_finite"
    ZERO_ROWS = "zero_rows"
    DUPLICATES = "duplicates"
    """Rows of different token ids are equal to the bit: stale or padded."""
    RANKS_DISAGREE = "ranks_disagree"
    """Ranks of a group hold different states: partial sums."""
    PHASES_DISAGREE = "phases_disagree"
    """Prefill and verification captured different layers."""
    CLAIMS_DISAGREE = "claims_disagree"
    """The engine says that it captures another boundary than the draft was trained on."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """Distances of a window to all places by one statistic; places are indices of the bank."""

    distances: Floats
    best: int | None
    """None: nothing to compare."""
    runner_up: int | None

    def distance(self, place: int | None) -> float | None:
        """Return the distance to a place; None where it is not known."""
        if place is None or np.isnan(self.distances[place]):
            return None
        return float(self.distances[place])


def ranked(found: Floats) -> Ranking:
    """Return which place is nearest and which is next."""
    known = np.flatnonzero(~np.isnan(found))
    order = known[np.argsort(found[known], kind="stable")]
    return Ranking(found, int(order[0]) if len(order) else None, int(order[1]) if len(order) > 1 else None)


@dataclass(frozen=True, slots=True)
class Judged:
    """What one window says by itself."""

    fault: Fault
    place: int | None
    """That both statistics name, where the window fits it; None = they disagree, or it fits nowhere."""
    vcos: Ranking
    dnll: Ranking
    common_rows: int
    common_ids: int
    gross_norm: float | None
    gross_direction: float | None
    missing: tuple[str, ...]
    """What it lacks in order to speak of boundaries; () = nothing."""
    agree: int | None = None
    """Place that both statistics name, whether the window fits it or not."""
    own_dnll: Ranking | None = None
    """The likelihood with the window's own variances, where it was asked and decided."""

    @property
    def likelihood(self) -> Ranking:
        """The likelihood that counts."""
        return self.own_dnll or self.dnll

    @property
    def key(self) -> tuple[Fault, int | None]:
        """What must be the same in two windows that confirm each other."""
        return self.fault, self.place if self.fault in (Fault.WRONG_BOUNDARY, Fault.OTHER_SLOT) else None


def judge(
    window: Sums, bank: Bank | None, claimed: int | None, profile: Sums | None,
    scores: tuple[Scores, Scores] | None = None,
) -> Judged:  # fmt: skip
    """Say what is wrong with one window.

    ``claimed`` is the place that the draft was trained on, ``profile`` what gross limits compare with (that
    place's profile, or the slot's own of training). ``scores`` are those of vcos and dnll, if they were
    computed for many windows at once.
    """
    if scores is None:
        scores = (bank.vcos(window), bank.dnll(window)) if bank else (NO_SCORES, NO_SCORES)
    vcos, dnll = scores
    by_vcos, by_dnll = ranked(vcos.distances), ranked(dnll.distances)
    norm, direction = _gross(window, profile)
    missing = tuple(_missing(window, bank, claimed, vcos, dnll))
    agree = by_vcos.best if by_vcos.best is not None and by_vcos.best == by_dnll.best else None
    own = None
    if bank and agree is None and claimed is not None and by_vcos.best is not None:
        own = _by_own_variances(window, bank, claimed, by_vcos.best)
        agree = own.best if own else None
    place = agree if agree is not None and bank and not missing and fits(window, bank.sums[agree]) else None
    fault = _fault(bank, claimed, place, norm, direction, window)
    return Judged(fault, place, by_vcos, by_dnll, vcos.rows, vcos.ids, norm, direction, missing, agree, own)


def _by_own_variances(window: Sums, bank: Bank, claimed: int, named: int) -> Ranking | None:
    """Return the likelihood with the window's own variances, if it names what vcos names beyond chance.

    That is the claimed place or a neighbour of it: farther ones differ so much that the variances of the
    reference do not hide them, and where these deny them, own variances were wrong. Beyond chance is nearer
    than the claimed place, or, if it is that one, than every other.
    """
    one, other = bank.places[named].boundary, bank.places[claimed].boundary
    is_near = named == claimed or (one is not None and other is not None and abs(one - other) == 1)
    own = ranked(bank.own_dnll(window).distances) if is_near else None
    if own is None or own.best != named:
        return None
    leads = bank.leads(window, named)
    return own if bool(np.all((leads if claimed == named else leads[claimed]) >= CLEAR)) else None


NO_SCORES = Scores(np.zeros(0), 0)


def _fault(
    bank: Bank | None, claimed: int | None, place: int | None, norm: float | None,
    direction: float | None, window: Sums,
) -> Fault:  # fmt: skip
    if not is_enough(window.norms.rows, window.requests):
        return Fault.NONE
    if bank and place is not None and claimed is not None and place != claimed:
        one, other = bank.places[place], bank.places[claimed]
        is_slot = one.slot is not None and other.slot is not None
        return Fault.OTHER_SLOT if is_slot else Fault.WRONG_BOUNDARY
    if norm is not None and norm > GROSS_NORM:
        return Fault.GROSS_NORM
    if direction is not None and direction > GROSS_DIRECTION:
        return Fault.GROSS_DIRECTION
    return Fault.NONE


def is_enough(rows: int, requests: int) -> bool:
    """Say whether a window may speak at all."""
    return rows >= LEAST_ROWS and requests >= LEAST_REQUESTS


def is_full(rows: int, requests: int) -> bool:
    """Say whether a window is as large as the measured rates are for."""
    return rows >= FULL_ROWS and requests >= FULL_REQUESTS


def _gross(window: Sums, profile: Sums | None) -> tuple[float | None, float | None]:
    if profile is None or not is_enough(window.norms.rows, window.requests):
        return None, None
    norm = distances.w1(window.norms, profile.norms)
    direction = distances.direction(window, profile)
    return None if np.isnan(norm) else norm, None if np.isnan(direction) else direction


def fits(window: Sums, profile: Sums) -> bool:
    """Say whether a window can be of a place at all: what has lost its residual is near to none."""
    norm, direction = distances.w1(window.norms, profile.norms), distances.direction(window, profile)
    return not norm > GROSS_NORM and not direction > GROSS_DIRECTION


def _missing(window: Sums, bank: Bank | None, claimed: int | None, vcos: Scores, dnll: Scores) -> list[str]:
    found = []
    if window.norms.rows < LEAST_ROWS:
        found.append(f"{window.norms.rows} of {LEAST_ROWS} rows")
    if window.requests < LEAST_REQUESTS:
        found.append(f"rows of {window.requests} of {LEAST_REQUESTS} requests")
    if bank is None:
        return [*found, "a reference to compare with"]
    if claimed is None:
        found.append("the boundary that this slot was trained on")
    if window.projection and bank.projection and window.projection != bank.projection:
        found.append(f"directions in the projection {bank.projection}; serving has {window.projection[:40]}")
    elif not bank.projection:
        found.append("directions of token ids in the reference")
    elif vcos.rows < LEAST_COMMON_ROWS:
        found.append(f"{vcos.rows} of {LEAST_COMMON_ROWS} rows on the reference's token ids")
    if not dnll.rows or np.isnan(dnll.distances).all():
        found.append("means and variances of directions, on both sides")
    return found


@dataclass(frozen=True, slots=True)
class Vote:
    """What the last windows of a slot and phase say together."""

    fault: Fault
    place: int | None
    votes_for: int
    votes: int
    """Windows that could speak."""

    @property
    def is_confirmed(self) -> bool:
        """Whether enough of them name the same fault."""
        return self.fault != Fault.NONE and self.votes_for >= VOTES_NEEDED


def vote(windows: Sequence[Judged]) -> Vote:
    """Count the last three windows, newest last. The fault that most name is told; ties go to the newest."""
    last = windows[-VOTES:]
    if not last:
        return Vote(Fault.NONE, None, 0, 0)
    counts = Counter(window.key for window in last if window.fault != Fault.NONE)
    if not counts:
        return Vote(Fault.NONE, last[-1].place, len(last), len(last))
    keys = [window.key for window in reversed(last) if window.fault != Fault.NONE]
    fault, place = max(keys, key=lambda key: (counts[key], -keys.index(key)))
    return Vote(fault, place, counts[fault, place], len(last))
