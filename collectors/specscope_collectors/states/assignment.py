"""Which places of training the slots of serving are, and how sure that is.

Capture is in depth order, so the assignment is: later slots are of later places. "None of these" costs
`NONE_COST`, so that an embedding or a foreign state does not get a false mate; nor does a state whose norms
do not fit the place: behind a norm, directions are still near to some boundary's. Where ignoring the order
makes it much cheaper, the slots are swapped.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from specscope_collectors.states.bank import Bank
from specscope_collectors.states.rules import GROSS_DIRECTION, fits
from specscope_collectors.states.sums import Floats, Sums, added

NONE_COST = GROSS_DIRECTION
"""Mean 1 − cos per token id from which on a slot is none of the places."""
SWAPPED = 0.7
"""Share of the cost in order below which a choice out of order is believed."""
NONE = -1
ROUNDS = 200
SURE = 0.95
ENOUGH_PARTS = 5
"""Windows from which on they are what is drawn from; else token ids are."""
MOST_UNORDERED = 5
SEED = 20_260_401

Choice = NDArray[np.int64]
"""Place of each slot, `NONE` = none of them."""


@dataclass(frozen=True, slots=True)
class Matched:
    """The best assignment, and what the bootstrap thinks of it."""

    places: tuple[int | None, ...]
    costs: tuple[float, ...]
    votes: tuple[float, ...]
    """Share of rounds that give each slot the same place."""
    joint: float
    """Share of rounds that give all slots the same places."""
    margin: float | None
    """(cost of the best other assignment − cost) / cost."""
    is_ordered: bool
    drawn: str
    rounds: int

    @property
    def speaks(self) -> bool:
        """Whether the assignment as a whole is sure: three slots of 97 % each may be wrong in 9 %."""
        return self.joint > SURE


def match(parts: Sequence[Sequence[Sums]], bank: Bank, rounds: int = ROUNDS) -> Matched | None:
    """Assign slots. ``parts[i]`` are the profiles of slot i in time order, one for each window.

    None: a slot has no rows on token ids that the bank knows.
    """
    if not parts or any(not each for each in parts):
        return None
    sums = [added(each) for each in parts]
    whole = [_cosines(each, bank) for each in sums]
    if any(not rows.sum() for _, rows in whole):
        return None
    costs = np.stack([_cost(cosines, rows) for cosines, rows in whole])
    chosen, is_ordered = _best(costs)
    drawn, many = _drawn(parts, whole, bank, rounds)
    votes, joint = votes_of(chosen, _redone(many))
    return Matched(
        tuple(_fitting(each, place, bank) for each, place in zip(sums, chosen.tolist(), strict=True)),
        tuple(_of_choice(costs, chosen).tolist()), tuple(votes.tolist()), joint,
        _margin(costs, chosen), is_ordered, drawn, rounds,
    )  # fmt: skip


def votes_of(chosen: Choice, rounds: NDArray[np.int64]) -> tuple[Floats, float]:
    """Return which share of rounds, shape (rounds, slots), agree on each slot, and on all of them."""
    agree = rounds == chosen
    return agree.mean(axis=0), float(agree.all(axis=1).mean())


def _redone(many: Floats) -> NDArray[np.int64]:
    """Return the best choice of each round, as `_best` makes it; whether the order holds is drawn anew."""
    found = _ordered(many)
    if many.shape[1] > MOST_UNORDERED:
        return found
    least = np.minimum(many.min(axis=2), NONE_COST).sum(axis=1)
    for number, (costs, ordered) in enumerate(zip(many, found, strict=True)):
        if least[number] < SWAPPED * _of_choice(costs, ordered).sum():
            found[number] = _freer(costs, ordered)
    return found


def _fitting(window: Sums, place: int, bank: Bank) -> int | None:
    return place if place != NONE and fits(window, bank.sums[place]) else None


def _cosines(window: Sums, bank: Bank) -> tuple[Floats, Floats]:
    """Return 1 − cos, shape (places, ids of the bank), and rows of each id."""
    distances, rows = bank.by_id([window])
    return distances[0], rows[0]


def _cost(distances: Floats, rows: Floats) -> Floats:
    cost: Floats = distances @ rows / max(rows.sum(), 1)
    return cost


def _drawn(
    parts: Sequence[Sequence[Sums]], whole: Sequence[tuple[Floats, Floats]], bank: Bank, rounds: int
) -> tuple[str, Floats]:
    """Return from what was drawn, and costs of shape (rounds, slots, places)."""
    draw = np.random.default_rng(SEED)
    windows = min(len(each) for each in parts)
    if windows >= ENOUGH_PARTS and all(len(each) == windows for each in parts):
        counts = draw.multinomial(windows, np.full(windows, 1 / windows), rounds).astype(np.float64)
        costs = [bank.redrawn(each, counts) for each in parts]
        return f"{windows} windows", np.stack(costs, axis=1)
    ids = len(bank.token_ids)
    counts = draw.multinomial(ids, np.full(ids, 1 / ids), rounds).astype(np.float64)
    costs = []
    for distances, rows in whole:
        weights = counts * rows
        costs.append(weights @ distances.T / np.maximum(weights.sum(axis=1, keepdims=True), 1))
    served = np.stack([rows for _, rows in whole]).any(axis=0).sum()
    return f"{served} token ids", np.stack(costs, axis=1)


def _best(costs: Floats) -> tuple[Choice, bool]:
    """Return the best choice of slots, and whether it keeps the order."""
    ordered = _ordered(costs[None])[0]
    if len(costs) > MOST_UNORDERED:
        return ordered, True
    chosen = _freer(costs, ordered)
    return chosen, chosen is ordered


def _freer(costs: Floats, ordered: Choice) -> Choice:
    """Return the best choice out of order where it is much cheaper, else the one in order."""
    free = _unordered(costs)
    is_cheaper = _of_choice(costs, free).sum() < SWAPPED * _of_choice(costs, ordered).sum()
    return free if is_cheaper else ordered


def _ordered(costs: Floats) -> Choice:
    """Dynamic programming over places: a later slot takes a later place, or none. For each round."""
    rounds, slots, places = costs.shape
    reach = np.zeros((slots + 1, places + 1, rounds))
    """reach[i, j]: least cost of the first i slots with the first j places."""
    reach[1:] = np.arange(1, slots + 1)[:, None, None] * NONE_COST
    for slot in range(slots):
        for place in range(places):
            taken = reach[slot, place] + costs[:, slot, place]
            skipped = np.minimum(reach[slot + 1, place], reach[slot, place + 1] + NONE_COST)
            reach[slot + 1, place + 1] = np.minimum(taken, skipped)
    return np.array([_back(table, slots, places) for table in reach.transpose(2, 0, 1).tolist()])


def _back(reach: list[list[float]], slots: int, places: int) -> list[int]:
    """Return which place each slot took on the way to the last cell."""
    chosen = [NONE] * slots
    slot, place = slots, places
    while slot and place:
        here = reach[slot][place]
        if here == reach[slot][place - 1]:
            place -= 1
        elif here == reach[slot - 1][place] + NONE_COST:
            slot -= 1
        else:
            slot, place = slot - 1, place - 1
            chosen[slot] = place
    return chosen


def _unordered(costs: Floats) -> Choice:
    """Try all choices among the nearest places of each slot; the best one is among them."""
    slots = len(costs)
    nearest = [[*np.argsort(row)[:slots].tolist(), NONE] for row in costs]
    best, least = np.full(slots, NONE), slots * NONE_COST
    for choice in itertools.product(*nearest):
        taken = [place for place in choice if place != NONE]
        cost = _of_choice(costs, np.array(choice)).sum()
        if len(set(taken)) == len(taken) and cost < least:
            best, least = np.array(choice), cost
    return best


def _of_choice(costs: Floats, choice: Choice) -> Floats:
    rows = np.arange(len(choice))
    found: Floats = np.where(choice == NONE, NONE_COST, costs[rows, np.maximum(choice, 0)])
    return found


def _margin(costs: Floats, choice: Choice) -> float | None:
    """Return how much dearer the best assignment is in which one slot goes elsewhere."""
    own = float(_of_choice(costs, choice).sum())
    others = []
    for slot, place in enumerate(choice.tolist()):
        changed = np.delete(costs[slot], place) if place != NONE else costs[slot]
        next_best = min([*changed.tolist(), *([NONE_COST] if place != NONE else [])])
        others.append(own - float(_of_choice(costs, choice)[slot]) + next_best)
    return (min(others) - own) / own if others and own > 0 else None
