"""What each tensor of a file is: told by its shape and its values, never by its key.

One key means different things: ``hidden_state`` is the last state of SpecForge and EAGLE and the auxiliary
states of speculators' first form; ``hidden_states`` is a list, a [T, L, H], or either of the two. What is
common to all is that token ids have T elements, and states T rows of H, or of a multiple of H.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specscope_collectors.references.dtypes import Dtype
from specscope_collectors.references.errors import NO_MEMORY, AmbiguousWidthError, DumpError
from specscope_collectors.references.opening import DumpFile
from specscope_collectors.references.tensors import Tensor

MAX_SLOTS, MAX_HIDDEN = 256, 65_536
MAX_WIDTH = MAX_SLOTS * MAX_HIDDEN
MAX_TOKENS = 1 << 22
"""Of one sample; all its vectors together have at most four times as many elements."""
IN_BFLOAT16 = "write the dump as bfloat16, by tensor.to(torch.bfloat16)"
EAGLE3_STATES = 4
"""Three auxiliary states and the last one."""
LAST_BY_WIDTH, LAST_BY_COUNT, LAST_TOLD, NO_LAST = "width", "four states", "told", "none"


@dataclass(frozen=True, slots=True)
class State:
    """One state of every token, shape [T, H]; ``raw`` is a view."""

    key: str
    dtype: Dtype
    raw: NDArray[Any]


@dataclass(frozen=True, slots=True)
class Sample:
    """One request of a dump."""

    token_ids: NDArray[np.int64]
    loss_mask: NDArray[np.bool_] | None
    hidden_size: int
    slots: tuple[State, ...]
    last: State | None
    last_rule: str
    """How the last state was told: by its ``width``, as the fourth of ``four states``, or it was ``told``."""
    form: str
    """``list``, ``layers`` ([T, L, H]), ``concatenated`` ([T, k·H]) or ``single`` ([T, H])."""


@dataclass(frozen=True, slots=True)
class Told:
    """What the user or a manifest says, where shapes alone do not tell."""

    hidden_size: int | None = None
    slots: int | None = None
    """Number of auxiliary states; if there is one more, it is the last state."""


def classify(opened: DumpFile, told: Told = Told()) -> Sample:
    """Return the sample that a file holds. Raises DumpError, whose text begins with the path."""
    try:
        ids, mask = _whole_numbers(opened.tensors)
        states = [tensor for tensor in opened.tensors if tensor.dtype.is_state and _is_big(tensor)]
        if not states:
            raise DumpError(_without_states(opened))
        return _sample(ids, mask, states, told)
    except DumpError as error:
        raise type(error)(f"{opened.path}: {error}") from None
    except MemoryError:
        raise DumpError(f"{opened.path}: {NO_MEMORY}") from None


def _without_states(opened: DumpFile) -> str:
    """Say what a file has instead of hidden states."""
    words = "it holds no hidden states (no tensor of bfloat16, float16 or float32 with two dimensions)"
    others = [(tensor.key, tensor.shape, tensor.dtype.name) for tensor in opened.tensors if _is_big(tensor)]
    others += [(tensor.key, tensor.shape, tensor.dtype) for tensor in opened.unread]
    if not others:
        return words
    key, shape, dtype = max(others, key=lambda other: math.prod(other[1]))
    return f"{words}; {key[:80]} {list(shape)} is {dtype[:20]}, in which no state is read: {IN_BFLOAT16}"


def _is_big(tensor: Tensor) -> bool:
    return sum(size > 1 for size in tensor.shape) >= 2 or len(tensor.shape) >= 2


def _whole_numbers(tensors: Sequence[Tensor]) -> tuple[NDArray[np.int64], NDArray[np.bool_] | None]:
    """Return (token ids, loss mask): of vectors of whole numbers, a mask is one of 0 and 1 alone."""
    found = [
        tensor
        for tensor in tensors
        if tensor.dtype.is_whole and tensor.raw.size and max(tensor.shape, default=0) == tensor.raw.size
    ]
    for tensor in found:
        if tensor.raw.size > MAX_TOKENS:
            raise DumpError(f"{tensor.key[:80]} has {tensor.raw.size} elements: no sample has so many tokens")
    if sum(tensor.raw.size for tensor in found) > 4 * MAX_TOKENS:
        raise DumpError(f"it holds {len(found)} long vectors of whole numbers: more than a sample does")
    vectors: list[tuple[str, NDArray[np.int64]]] = [
        (tensor.key, tensor.raw.reshape(-1).astype(np.int64)) for tensor in found
    ]
    masks = [(key, vector) for key, vector in vectors if ((vector == 0) | (vector == 1)).all()]
    ids = [(key, vector) for key, vector in vectors if not any(vector is other for _, other in masks)]
    counted = [(key, vector) for key, vector in ids if (vector == np.arange(len(vector))).all()]
    if len(ids) > 1:
        ids = [pair for pair in ids if not any(pair[1] is other for _, other in counted)] or ids
    if not ids and len(masks) == 1:
        ids, masks = masks, []
    if not ids and masks:  # a text of the tokens 0 and 1 alone: nothing but the key tells
        ids = [pair for pair in masks if "ids" in pair[0]]
        masks = [pair for pair in masks if "ids" not in pair[0]]
    if len(ids) > 1:
        ids = [pair for pair in ids if "ids" in pair[0]] or ids
    if not ids:
        raise DumpError("it holds no token ids (a vector of whole numbers), so its rows belong to no tokens")
    if any(not np.array_equal(ids[0][1], other) for _, other in ids[1:]):
        raise DumpError(f"it holds {len(ids)} vectors that may be token ids ({_keys(ids)}); keep one")
    tokens = ids[0][1]
    fitting = [pair for pair in masks if len(pair[1]) == len(tokens)]
    if len(fitting) > 1:
        fitting = [pair for pair in fitting if "loss" in pair[0]][:1]
    return tokens, fitting[0][1].astype(np.bool_) if fitting else None


def _keys(pairs: Sequence[tuple[str, Any]]) -> str:
    return ", ".join(key[:40] for key, _ in pairs)


def _sample(
    ids: NDArray[np.int64], mask: NDArray[np.bool_] | None, tensors: Sequence[Tensor], told: Told
) -> Sample:
    rows = len(ids)
    layered: list[State] = []
    flat: list[State] = []
    for tensor in tensors:
        raw = _by_token(tensor, rows)
        if raw.ndim == 3 and raw.shape[1] > MAX_SLOTS:
            raise DumpError(f"it holds over {MAX_SLOTS} states of every token")
        if raw.ndim == 3:
            layered += [
                State(f"{tensor.key}[:, {layer}]", tensor.dtype, raw[:, layer])
                for layer in range(raw.shape[1])
            ]
        else:
            flat.append(State(tensor.key, tensor.dtype, raw))
    if len(layered) > MAX_SLOTS or len(flat) > MAX_SLOTS:
        raise DumpError(f"it holds over {MAX_SLOTS} states of every token")
    if layered and flat:
        raise DumpError("it holds both [T, L, H] and [T, W] states: no writer that is known does")
    slots, last, rule, form = _split(layered, flat, told)
    size = slots[0].raw.shape[1] if slots else last.raw.shape[1] if last is not None else 0
    if size > MAX_HIDDEN:
        raise DumpError(f"its states would have {size} values for each token, over {MAX_HIDDEN}")
    return Sample(ids, mask, size, tuple(slots), last, rule, form)


def _by_token(tensor: Tensor, rows: int) -> NDArray[Any]:
    """Return a tensor as [T, W] or [T, L, H]; a leading 1 goes."""
    raw = tensor.raw
    while raw.ndim > 2 and raw.shape[0] == 1 and not (raw.ndim == 3 and rows == 1):
        raw = raw[0]
    if raw.ndim == 3 and raw.shape[0] == rows == 1 and raw.shape[1] == 1:
        raw = raw[0]
    if raw.ndim == 3 and raw.shape[0] != rows and raw.shape[1] == rows:
        raw = raw.transpose(1, 0, 2)
    if raw.ndim not in (2, 3):
        raise DumpError(f"{tensor.key[:80]} has the shape {list(tensor.shape)}: neither [T, W] nor [T, L, H]")
    if raw.shape[0] != rows:
        raise DumpError(
            f"{tensor.key[:80]} has {raw.shape[0]} rows for {rows} token ids: rows are missing (a "
            "prefix that came "
            "from a cache has none) or cut; write the dump with the prefix cache off"
        )
    if 0 in raw.shape:
        raise DumpError(f"{tensor.key[:80]} is empty: its shape is {list(tensor.shape)}")
    if raw.shape[-1] > MAX_WIDTH:
        raise DumpError(f"{tensor.key[:80]} is {raw.shape[-1]} wide: no {MAX_SLOTS} states are")
    if raw.size * tensor.dtype.bytes > tensor.storage_bytes:
        raise DumpError(
            f"{tensor.key[:80]}, shape {list(tensor.shape)}, repeats the same {tensor.storage_bytes} bytes "
            "(an expanded tensor): no states of a model do; write what was computed"
        )
    return raw


Split = tuple[list[State], State | None, str, str]


def _split(layered: list[State], flat: list[State], told: Told) -> Split:
    """Return (slots, last state, how it was told, form)."""
    if layered:
        return (*_of_layers(layered, told), "layers")
    widths = {state.raw.shape[1] for state in flat}
    if len(widths) == 1 and len(flat) > 2:
        return (*_of_layers(flat, told), "list")
    if len(flat) == 2 and len(widths) == 1 and flat[0].key.endswith("[0]"):
        return (*_of_layers(flat, told), "list")
    size = hidden_size_of(sorted(widths), told.hidden_size)
    wide = [state for state in flat if state.raw.shape[1] > size]
    narrow = [state for state in flat if state.raw.shape[1] == size]
    if len(wide) > 1 or len(narrow) > 1 or len(wide) + len(narrow) != len(flat):
        shapes = ", ".join(f"{state.key[:40]} {list(state.raw.shape)}" for state in flat)
        raise DumpError(f"its states do not fit together: {shapes}; one file holds one set of states")
    if any(state.raw.shape[1] // size > MAX_SLOTS for state in wide):
        raise DumpError(f"it holds over {MAX_SLOTS} states of {size} values of every token")
    slots = [
        State(f"{state.key}[:, {place * size}:{(place + 1) * size}]", state.dtype,
              state.raw[:, place * size : (place + 1) * size])
        for state in wide for place in range(state.raw.shape[1] // size)
    ]  # fmt: skip
    last = narrow[0] if narrow else None
    return slots, last, LAST_BY_WIDTH if last else NO_LAST, "concatenated" if wide else "single"


def _of_layers(states: list[State], told: Told) -> tuple[list[State], State | None, str]:
    widths = sorted({state.raw.shape[1] for state in states})
    if len(widths) > 1 or (told.hidden_size is not None and widths[0] != told.hidden_size):
        wanted = f", and the hidden size is {told.hidden_size}" if told.hidden_size else ""
        raise DumpError(f"its states have the widths {widths}{wanted}: one dump is of one model")
    if told.slots is not None and len(states) == told.slots + 1:
        return states[:-1], states[-1], LAST_TOLD
    if len(states) == EAGLE3_STATES:
        return states[:-1], states[-1], LAST_BY_COUNT
    return states, None, NO_LAST


def hidden_size_of(widths: Sequence[int], told: int | None) -> int:
    """Return H of the widths of [T, W] states. Raises AmbiguousWidthError where they do not say."""
    if told is not None:
        if told <= 0 or any(width % told for width in widths):
            raise DumpError(
                f"its states have the widths {list(widths)}, no multiples of the hidden size {told}"
            )
        return told
    if len(widths) > 1 and all(width % widths[0] == 0 for width in widths):
        return widths[0]
    if len(widths) > 1:
        raise DumpError(f"its states have the widths {list(widths)}, which no hidden size explains")
    width = widths[0]
    choices = " or ".join(f"{k} × {width // k}" for k in (1, 3, 4, 5, 6, 2) if width % k == 0)
    raise AmbiguousWidthError(
        f"its states are {width} wide, which may be {choices}: say which with --hidden-size "
        "(config.json of the "
        "target has it)"
    )
