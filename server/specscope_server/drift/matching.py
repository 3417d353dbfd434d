"""Say which slots of training the slots of serving are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from sqlalchemy.orm import Session

from specscope_collectors.states.assignment import SURE, Matched, match
from specscope_collectors.states.bank import Bank, Place
from specscope_collectors.states.rules import LEAST_ROWS
from specscope_collectors.states.sums import sums_of
from specscope_server.drift.invariants import REJECTED
from specscope_server.drift.kept import KeptByStore
from specscope_server.drift.reading import OTHER, SERVING_PHASES, Entry, bodies
from specscope_server.drift.schemas import Assignment, Pairing
from specscope_server.drift.threads import one_thread
from specscope_server.drift.words import listed
from specscope_server.drift.yardsticks import Yardstick

MOST_PARTS = 12
"""Profiles of each slot that the bootstrap draws from."""


def assignment_of(session: Session, entries: Sequence[Entry], yard: Yardstick) -> Assignment | None:
    """Return the assignment of the phase that can say most; None: none can be made.

    ``entries`` are those of one launch, newest first.
    """
    bank = yard.bank
    if bank is None or not len(bank.token_ids):
        return None
    newest = _newest(entries)
    slots = sorted({slot for _, slot in newest})
    for phase in _best_first(newest, len(slots)):
        chosen = [newest.get((phase, slot), []) for slot in slots]
        if any(not each or each[0].hidden_size != bank.hidden_size for each in chosen):
            continue
        key = (tuple(entry.id for each in chosen for entry in each), yard.key)
        [matched] = _matched.of(session).made(key, partial(_match, session, chosen, bank))
        if matched is not None:
            return _told(matched, slots, phase, yard)
    return None


_Key = tuple[tuple[int, ...], tuple[str, str]]
_matched: KeptByStore[_Key, tuple[Matched | None]] = KeptByStore(256)


def _match(session: Session, chosen: Sequence[Sequence[Entry]], bank: Bank) -> tuple[Matched | None]:
    read = bodies(session, (entry.id for each in chosen for entry in each))
    parts = [[read.records[entry.id] for entry in each if entry.id in read.records] for each in chosen]
    with one_thread():
        return (match([[sums_of(record) for record in each] for each in parts], bank),)


def _newest(entries: Sequence[Entry]) -> dict[tuple[str, int], list[Entry]]:
    """Return the newest profiles of each phase and slot, oldest first, all of one hidden size."""
    found: dict[tuple[str, int], list[Entry]] = {}
    for entry in entries:
        own = found.setdefault((entry.phase, entry.slot), [])
        is_alike = not own or own[0].hidden_size == entry.hidden_size
        if entry.row_class == OTHER and is_alike and len(own) < MOST_PARTS:
            own.append(entry)
    return {place: own[::-1] for place, own in found.items()}


def _best_first(newest: Mapping[tuple[str, int], Sequence[Entry]], slots: int) -> list[str]:
    """Return phases in the order in which they are asked: those that have enough rows, then by rows.

    Rejected rows come last of them: the worse the draft, the more there are, and the odder their text.
    """
    rows = dict.fromkeys(SERVING_PHASES, 0)
    for (phase, _), each in newest.items():
        rows[phase] += sum(entry.rows for entry in each)
    return sorted(rows, key=lambda phase: (rows[phase] < LEAST_ROWS * slots, phase == REJECTED, -rows[phase]))


def _told(matched: Matched, slots: Sequence[int], phase: str, yard: Yardstick) -> Assignment:
    pairs = [
        _pair(slot, place, votes, matched.margin, yard)
        for slot, place, votes in zip(slots, matched.places, matched.votes, strict=True)
    ]
    return Assignment(
        speaks=matched.speaks, votes=matched.joint, words=_words(pairs, matched, yard), pairs=pairs,
        resampled=matched.drawn, phase=phase, rounds=matched.rounds,
    )  # fmt: skip


def _pair(slot: int, index: int | None, votes: float, margin: float | None, yard: Yardstick) -> Pairing:
    bank = yard.bank
    assert bank is not None
    place = bank.places[index] if index is not None else None
    return Pairing(
        slot=slot, training_slot=_training_slot(place, yard), boundary=place.boundary if place else None,
        place=place.name if place else "none of these", votes=votes, margin=margin,
    )  # fmt: skip


def _training_slot(place: Place | None, yard: Yardstick) -> int | None:
    if place is None or yard.training is None:
        return None
    if place.slot is not None:
        return place.slot
    slots = [slot for slot in yard.training.slots if yard.trained(slot) == place.boundary]
    return slots[0] if slots and place.boundary is not None else None


def _words(pairs: Sequence[Pairing], matched: Matched, yard: Yardstick) -> str:
    if not matched.speaks:
        least = min(pairs, key=lambda pair: pair.votes)
        return (
            f"The assignment is not sure: {matched.joint:.0%} of {matched.rounds} rounds over {matched.drawn}"
            f" give it (slot {least.slot} is {least.place} in {least.votes:.0%}); it speaks above {SURE:.0%}"
        )
    parts = [_pair_words(pair) for pair in pairs]
    order = "" if matched.is_ordered else "; they are not in the order of depth"
    return f"{', '.join(parts)}{order}{_capture(pairs, yard)}"


def _pair_words(pair: Pairing) -> str:
    if pair.training_slot is not None:
        return f"serving slot {pair.slot} ↔ training slot {pair.training_slot}"
    if pair.boundary == 0:
        return f"serving slot {pair.slot} is the embedding"
    return f"serving slot {pair.slot} is {pair.place}"


def _capture(pairs: Sequence[Pairing], yard: Yardstick) -> str:
    """Return what is captured and what was trained, as boundaries and as ids of layers that put them out."""
    if yard.training is None:
        return ""
    trained = [yard.trained(slot) for slot in sorted(yard.training.slots)]
    served = [pair.boundary for pair in pairs]
    if None in served or None in trained:
        return ""
    known = [[number for number in each if number is not None] for each in (served, trained)]
    layers = [f"[{', '.join(str(number - 1) for number in each)}]" for each in known]
    return (
        f": capture is boundaries {listed(known[0])}, trained {listed(known[1])} (as ids of layers whose "
        f"output is taken: capture {layers[0]}, trained {layers[1]})"
    )
