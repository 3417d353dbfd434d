"""Whether a last state was taken before or after the model's final norm.

RMSNorm gives h = w·x/rms(x), so that mean((h/w)²) = 1 for every token if, and only if, it has been applied.
Some families (Gemma, Qwen3.5) store w and multiply by 1 + w; both are tried.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from specscope_collectors.references.dtypes import as_float32
from specscope_collectors.references.errors import DumpError
from specscope_collectors.references.opening import open_dump
from specscope_collectors.references.shapes import MAX_HIDDEN
from specscope_collectors.references.tensors import Tensor
from specscope_collectors.references.walking import check_exists
from specscope_collectors.references.writers import POST_NORM, PRE_NORM, UNKNOWN

NEAR = 0.1
"""bfloat16 errs by less than 1 %; the residual stream is far from 1 in all but a freak model."""
MOST = 0.9
TINY = 1e-6
BY_WEIGHT = "mean((h/w)²) = 1 for every token if the final norm was applied"

Floats = NDArray[np.float32]


def read_norm_weight(path: Path) -> Floats:
    """Return the weight of the final norm, shape (H,), of a file of safetensors or torch. Raises DumpError.

    The file is a checkpoint, or one of its parts, with ``model.norm.weight``; or it has one vector only.
    """
    check_exists(path)
    opened = open_dump(path)
    vectors = [tensor for tensor in opened.tensors if tensor.dtype.is_state and len(tensor.shape) == 1]
    named = [
        tensor for tensor in vectors if tensor.key.endswith(("model.norm.weight", "final_layernorm.weight"))
    ]
    named = named or [tensor for tensor in vectors if tensor.key in ("norm.weight", "weight")]
    found: list[Tensor] = named or vectors
    if len(found) != 1:
        raise DumpError(
            f"{path} holds {len(found)} vectors that may be the weight of the final norm; name "
            "the part of the "
            "checkpoint with model.norm.weight (model.safetensors.index.json says which)"
        )
    if found[0].raw.size > MAX_HIDDEN:
        raise DumpError(f"{path}: {found[0].key[:80]} has {found[0].raw.size} values, over {MAX_HIDDEN}")
    weight = as_float32(np.array(found[0].raw), found[0].dtype)
    if not np.isfinite(weight).all() or not np.abs(weight).max() > TINY:
        raise DumpError(f"{path}: the weight of the final norm has values that cannot be")
    return weight


def squares(states: Floats, weight: Floats) -> Floats:
    """Return mean((h/w)²) and mean((h/(1 + w))²) of rows, shape (rows, 2)."""
    return np.stack([_square(states, weight), _square(states, 1 + weight)], axis=-1)


def _square(states: Floats, weight: Floats) -> Floats:
    used = np.abs(weight) > TINY
    if not used.any():
        return np.full(len(states), np.nan, np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        ratio = states[:, used] / weight[used]
        result: Floats = (ratio * ratio).mean(axis=1)
    return result


@dataclass(frozen=True, slots=True)
class Judged:
    """What the rows of a last state say."""

    norm: str
    rule: str
    median: float | None = None
    """Of mean((h/w)²), or with 1 + w where that is nearer to 1."""


def judge(found: Floats) -> Judged:
    """Say whether rows, as `squares` gives them, are post-norm."""
    finite = found[np.isfinite(found).all(axis=1)]
    if not len(finite):
        return Judged(UNKNOWN, "no row has a norm")
    medians = np.median(finite, axis=0)
    for column, words in ((0, BY_WEIGHT), (1, f"{BY_WEIGHT}; here with 1 + w")):
        if (np.abs(finite[:, column] - 1) < NEAR).mean() >= MOST:
            return Judged(POST_NORM, words, float(medians[column]))
    return Judged(PRE_NORM, BY_WEIGHT, float(medians[0]))
