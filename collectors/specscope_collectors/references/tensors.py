"""A tensor of a file: a strided view of mapped bytes, of which only what is asked for is read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specscope_collectors.references.dtypes import Dtype, as_float32, put_float32
from specscope_collectors.references.errors import DumpError

MAX_DIMENSIONS = 8
MAX_NUMBER = 2**48


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor."""

    key: str
    """Where it stands in the file, e.g. ``hidden_states[2]``: shown, never believed."""
    dtype: Dtype
    raw: NDArray[Any]
    """Elements as they lie in the file."""
    storage_bytes: int
    """Size of what it is a view of, which several tensors may share."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the dimensions."""
        return tuple(self.raw.shape)

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements lie one after the other."""
        return bool(self.raw.flags.c_contiguous)


@dataclass(frozen=True, slots=True)
class Unread:
    """A tensor of a type that is not read."""

    key: str
    dtype: str
    """As the file names it."""
    shape: tuple[int, ...]
    storage_bytes: int


def floats(raw: NDArray[Any], dtype: Dtype, rows: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return these rows of a view as float32, shape (rows, width); no other row is read."""
    return as_float32(raw[rows], dtype)


def widened(raw: NDArray[Any], dtype: Dtype, into: NDArray[np.float32] | None = None) -> NDArray[np.float32]:
    """Return elements as float32, in ``into`` if it is given: fresh memory costs more than the arithmetic."""
    if into is None:
        return as_float32(raw, dtype)
    found = into[: len(raw)]
    put_float32(raw, dtype, found)
    return found


def make_tensor(
    key: str, dtype: Dtype, storage: memoryview, offset: int, shape: Sequence[int], strides: Sequence[int]
) -> Tensor:
    """Return a view of a storage; ``offset`` and ``strides`` count elements.

    Raises DumpError for one that does not lie within its storage.
    """
    numbers = (offset, *shape, *strides)
    if len(shape) != len(strides) or len(shape) > MAX_DIMENSIONS:
        raise DumpError(f"{key[:80]} has {len(shape)} dimensions and {len(strides)} strides")
    if any(type(number) is not int or not 0 <= number <= MAX_NUMBER for number in numbers):
        raise DumpError(f"{key[:80]} has a shape, strides or an offset that cannot be")
    last = offset + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    if math.prod(shape) and (last + 1) * dtype.bytes > len(storage):
        raise DumpError(
            f"{key[:80]}, shape {list(shape)}, reaches beyond its {len(storage)} bytes; the "
            "file is cut off or "
            "damaged"
        )
    raw: NDArray[Any] = np.ndarray(
        tuple(shape), np.dtype(dtype.raw), storage if math.prod(shape) else b"",
        offset * dtype.bytes if math.prod(shape) else 0, [stride * dtype.bytes for stride in strides],
    )  # fmt: skip
    raw.flags.writeable = False
    return Tensor(key, dtype, raw, len(storage))


def contiguous_strides(shape: Sequence[int]) -> list[int]:
    """Return the strides, in elements, of a tensor whose last dimension runs fastest."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return strides[::-1]
