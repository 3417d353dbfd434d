"""Served rows beside rows of training, slot by slot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from specscope_collectors.references.row_classes import HEAD_POSITIONS
from specscope_collectors.references.training_rows import TrainingRows
from specscope_collectors.replays.comparing import Floats, Integers
from specscope_collectors.replays.errors import ReplayError
from specscope_collectors.replays.samples import Sample, Training
from specscope_collectors.replays.verdicts import Paired, Place, SlotVerdict, judge_slot


@dataclass(frozen=True, slots=True)
class Served:
    """What the engine had of one sample."""

    positions: Integers
    """Ascending; rows of a cached prefix are not there."""
    states: Floats
    """Shape (rows, width)."""


@dataclass(frozen=True, slots=True)
class Compared:
    """A whole replay."""

    places: tuple[Place, ...]
    slots: tuple[SlotVerdict, ...]
    is_fine: bool
    """The places are all boundaries."""


def compare(
    training: Training, served: Mapping[int, Served], rows: Sequence[TrainingRows] | None, missing: str = ""
) -> Compared:
    """Compare. ``served`` is by the index of the sample; ``rows`` are those at all boundaries, if there are
    such; ``missing`` says why there is nothing of the engine. Raises ReplayError for states of another model.
    """
    by_ids = {each.token_ids.tobytes(): each for each in rows or ()}
    prefixes = [(sample, _of(sample, by_ids)) for sample in training.samples]
    is_fine = any(found is not None for _, found in prefixes)
    slots = served_slots(training, served)
    places = _boundary_places(rows) if is_fine and rows else slot_places(training)
    pairs = [_pair(slot, prefixes, training, served, is_fine, missing) for slot in range(slots)]
    claimed = [_claimed(slot, prefixes, training, places, is_fine) for slot in range(slots)]
    return Compared(
        places,
        tuple(judge_slot(pair, places, place, is_fine) for pair, place in zip(pairs, claimed, strict=True)),
        is_fine,
    )


def served_slots(training: Training, served: Mapping[int, Served]) -> int:
    """Return how many states stand side by side in serving; without any, as many as in training.

    Raises ReplayError where the states are of another hidden size, or not of one width.
    """
    widths = sorted({each.states.shape[1] for each in served.values()})
    for width in widths:
        if not width or width % training.hidden_size:
            raise ReplayError(
                f"the engine's states are {width} wide, which is no multiple of the dump's hidden size "
                f"{training.hidden_size}: they are of another model; give --server and --dump of one target"
            )
    if len(widths) > 1:
        raise ReplayError(
            f"the engine's states are {' and '.join(map(str, widths))} wide within one replay: not trusted; "
            "replay again while nobody restarts it"
        )
    slots = widths[0] // training.hidden_size if widths else training.slots
    if slots > training.slots and slots % training.slots == 0:
        times = slots // training.slots
        raise ReplayError(
            f"the engine's states are {widths[0]} wide: {slots} of the dump's hidden size "
            f"{training.hidden_size} where training had {training.slots}, or as many of {times} times that "
            "size, of another model; give --server and --dump of one target"
        )
    return slots


def slot_places(training: Training) -> tuple[Place, ...]:
    """Return the places of training: its slots, and the last state where that is a boundary."""
    found = [
        Place(
            f"training slot {slot}" + (f" (boundary {boundary})" if boundary is not None else ""),
            boundary,
            slot,
        )
        for slot, boundary in enumerate(training.boundaries)
    ]
    if training.has_last and training.is_last_pre_norm:
        found.append(Place("the last state of training", training.last_boundary))
    return tuple(found)


def _boundary_places(rows: Sequence[TrainingRows]) -> tuple[Place, ...]:
    count = len(rows[0].states)
    return tuple(Place(f"boundary {b}" if b else "boundary 0 (the embedding)", b) for b in range(count))


def _of(sample: Sample, by_ids: Mapping[bytes, TrainingRows]) -> TrainingRows | None:
    """Return the rows of the request that a sample is the beginning of."""
    found = by_ids.get(sample.token_ids.tobytes())
    if found is not None:
        return found
    count = len(sample.token_ids)
    return next(
        (each for each in by_ids.values() if np.array_equal(each.token_ids[:count], sample.token_ids)), None
    )


Prefixes = Sequence[tuple[Sample, TrainingRows | None]]


def _pair(
    slot: int,
    samples: Prefixes,
    training: Training,
    served: Mapping[int, Served],
    is_fine: bool,
    missing: str,
) -> Paired:
    """Put rows of one slot side by side; first positions are left out, as their norms are of another kind."""
    size = training.hidden_size
    here, there, requests = [], [], 0
    for index, (sample, rows) in enumerate(samples):
        found = served.get(index)
        positions, states = _training_rows(sample, rows, training, is_fine)
        if found is None or states is None:
            continue
        _, mine, theirs = np.intersect1d(found.positions, positions, assume_unique=True, return_indices=True)
        body = found.positions[mine] >= HEAD_POSITIONS
        if body.any():
            here.append(found.states[mine[body], slot * size : (slot + 1) * size])
            there.append(states[:, theirs[body]])
            requests += 1
    if not here:
        empty = np.zeros((0, size), np.float32)
        return Paired(slot, empty, empty[None], 0, missing or "the engine gave no rows of the samples")
    return Paired(slot, np.concatenate(here), np.concatenate(there, axis=1), requests)


def _training_rows(
    sample: Sample, rows: TrainingRows | None, training: Training, is_fine: bool
) -> tuple[Integers, Floats | None]:
    if is_fine:
        if rows is None:
            return np.zeros(0, np.int64), None
        kept = rows.positions < len(sample.token_ids)
        return rows.positions[kept], rows.states[:, kept]
    places = training.slots + (training.has_last and training.is_last_pre_norm)
    return np.arange(len(sample.token_ids)), sample.states[:places]


def _claimed(
    slot: int, samples: Prefixes, training: Training, places: Sequence[Place], is_fine: bool
) -> int | None:
    """Return the place that a slot was trained on: measured where all boundaries are known."""
    if slot >= training.slots:
        return None
    if not is_fine:
        return slot
    totals = np.zeros(len(places))
    for sample, rows in samples:
        if rows is not None:
            kept = rows.positions < len(sample.token_ids)
            mine = sample.states[slot][rows.positions[kept]].astype(np.float64)
            theirs = rows.states[:, kept].astype(np.float64)
            lengths = np.maximum(np.linalg.norm(mine, axis=1), 1e-30)
            totals += (np.linalg.norm(theirs - mine, axis=2) / lengths).mean(axis=1)
    return int(np.argmin(totals))
