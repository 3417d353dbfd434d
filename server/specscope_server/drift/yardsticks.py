"""What serving is compared with: a reference of training, one of all boundaries, or what there is of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from specscope_collectors.observations import StateProfile
from specscope_collectors.references.document import Reference
from specscope_collectors.states.bank import Bank, Place, bank_of
from specscope_collectors.states.rules import FULL_ROWS, is_enough, judge
from specscope_collectors.states.sums import Floats, Sums, UnequalError, sums_of
from specscope_server.drift.reading import OTHER
from specscope_server.drift.schemas import Resolution

PREFILL = "prefill"
LAST = "last state"
NO_ROWS = "it has no profile of ordinary rows (class 'other'), which serving is compared with"


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a reference, as listed."""

    id: int
    key: str
    """Hash of its content."""
    name: str
    version: int
    made_ms: int


@dataclass(frozen=True, slots=True)
class Training:
    """Profiles of the slots of a training dump."""

    version: Version
    document: Reference
    slots: Mapping[int, Sums]
    answers: Mapping[int, Sums]
    """Of rows with loss_mask = 1."""
    bank: Bank
    """The slots and the last state."""
    norm_weight: Floats | None = None
    """Of the final norm, if it is known."""

    def profile(self, slot: int, phase: str) -> Sums | None:
        """Return what a slot in a phase is compared with: drafts verify answers, prefill is everything."""
        answers = self.answers.get(slot)
        if phase != PREFILL and answers is not None and answers.norms.rows >= FULL_ROWS:
            return answers
        return self.slots.get(slot)

    def told(self, slot: int) -> int | None:
        """Return the boundary that the reference says a slot is; None: it does not."""
        boundaries = self.document.boundaries
        return boundaries[slot] if slot < len(boundaries) else None


@dataclass(frozen=True, slots=True)
class Boundaries:
    """Profiles of all boundaries."""

    version: Version
    document: Reference
    bank: Bank


def training_of(version: Version, document: Reference) -> Training:
    """Return the profiles of a training reference as arrays. Raises UnequalError when none is of ordinary
    rows.
    """
    slots, answers = _slots(document.profiles), _slots(document.answer_profiles)
    places = [Place(f"training slot {slot}", _told(document, slot), slot) for slot in sorted(slots)]
    sums = [slots[slot] for slot in sorted(slots)]
    for each in document.profiles:
        if each.slot is None and each.row_class == OTHER:
            boundary = document.last.boundary if document.last else None
            places.append(Place(LAST, boundary))
            sums.append(sums_of(each))
    if not places:
        raise UnequalError(NO_ROWS)
    weight = document.last.weight if document.last is not None else b""
    norm = np.frombuffer(weight, "<f4").astype(np.float64) if weight else None
    return Training(version, document, slots, answers, bank_of(places, sums), norm)


def boundaries_of(version: Version, document: Reference) -> Boundaries:
    """Return the profiles of all boundaries as arrays. Raises UnequalError when there are none."""
    found = sorted(
        (each for each in document.profiles if each.row_class == OTHER and each.boundary is not None),
        key=lambda each: each.boundary or 0,
    )
    if not found:
        raise UnequalError(NO_ROWS)
    places = [Place(_named(each.boundary), each.boundary) for each in found]
    return Boundaries(version, document, bank_of(places, [sums_of(each) for each in found]))


def _named(boundary: int | None) -> str:
    return "boundary 0, the embedding" if boundary == 0 else f"boundary {boundary}"


def _slots(profiles: Iterable[StateProfile]) -> dict[int, Sums]:
    return {
        each.slot: sums_of(each)
        for each in profiles
        if each.slot is not None and each.row_class == OTHER
    }  # fmt: skip


def _told(document: Reference, slot: int) -> int | None:
    return document.boundaries[slot] if slot < len(document.boundaries) else None


@dataclass(frozen=True, slots=True)
class Yardstick:
    """What serving is compared with."""

    training: Training | None
    boundaries: Boundaries | None
    measured: Mapping[int, int]
    """Training slot → boundary that its own states are nearest to, where both statistics agree."""
    unusable: tuple[str, ...] = ()
    """References that might have been compared with, and why they cannot be."""

    @property
    def bank(self) -> Bank | None:
        """Places to rank: all boundaries, else the slots and the last state of training."""
        if self.boundaries is not None:
            return self.boundaries.bank
        return self.training.bank if self.training is not None else None

    @property
    def resolution(self) -> Resolution:
        """How finely a boundary can be told."""
        if self.boundaries is not None:
            return Resolution.BOUNDARIES
        return Resolution.SLOTS if self.bank is not None else Resolution.NONE

    @property
    def hidden_size(self) -> int | None:
        """Of the references."""
        return self.bank.hidden_size if self.bank else None

    @property
    def key(self) -> tuple[str, str]:
        """What differs when serving is compared with anything else."""
        return (
            self.training.version.key if self.training else "",
            self.boundaries.version.key if self.boundaries else "",
        )

    def trained(self, slot: int) -> int | None:
        """Return the boundary that a slot was trained on: as its states are, else as the reference says."""
        if slot in self.measured:
            return self.measured[slot]
        return self.training.told(slot) if self.training else None

    def claimed(self, slot: int, captured: int | None) -> int | None:
        """Return the place that a slot ought to be; without training, what the engine says it captures."""
        if self.bank is None:
            return None
        if self.boundaries is not None:
            boundary = self.trained(slot) if self.training is not None else captured
            return self.bank.by_boundary.get(boundary) if boundary is not None else None
        places = [index for index, place in enumerate(self.bank.places) if place.slot == slot]
        return places[0] if places else None

    def profile(self, slot: int, phase: str, captured: int | None) -> Sums | None:
        """Return the profile that gross limits and trends compare with."""
        if self.training is not None:
            return self.training.profile(slot, phase)
        place = self.claimed(slot, captured)
        return self.bank.sums[place] if self.bank is not None and place is not None else None


NO_YARDSTICK = Yardstick(None, None, {})


def yardstick_of(training: Training | None, boundaries: Boundaries | None) -> Yardstick:
    """Put references together. Those of another hidden size than training are left out."""
    if training is None or boundaries is None:
        return Yardstick(training, boundaries, {})
    if training.document.hidden_size != boundaries.bank.hidden_size:
        return Yardstick(training, None, {})
    measured = {}
    for slot, sums in training.slots.items():
        if not is_enough(sums.norms.rows, sums.requests):
            continue
        agree = judge(sums, boundaries.bank, None, None).agree
        boundary = boundaries.bank.places[agree].boundary if agree is not None else None
        if boundary is not None:
            measured[slot] = boundary
    return Yardstick(training, boundaries, measured)
