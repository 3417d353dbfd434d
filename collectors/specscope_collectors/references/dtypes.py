"""Types of the elements of tensors, by the names that torch and safetensors give them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Dtype:
    """How elements lie in a file."""

    name: str
    raw: str
    """numpy's type of the bytes; bfloat16 lies as whole numbers of 16 bits."""
    is_state: bool = False
    """A hidden state may have it."""
    is_whole: bool = False
    """Token ids or a mask may have it."""

    @property
    def bytes(self) -> int:
        """Size of one element."""
        return np.dtype(self.raw).itemsize


BFLOAT16 = Dtype("bfloat16", "<u2", is_state=True)
_ALL = (
    BFLOAT16,
    Dtype("float16", "<f2", is_state=True),
    Dtype("float32", "<f4", is_state=True),
    Dtype("float64", "<f8", is_state=True),
    Dtype("int64", "<i8", is_whole=True),
    Dtype("int32", "<i4", is_whole=True),
    Dtype("int16", "<i2", is_whole=True),
    Dtype("int8", "|i1", is_whole=True),
    Dtype("uint8", "|u1", is_whole=True),
    Dtype("bool", "|b1", is_whole=True),
)
_BY_NAME = {dtype.name: dtype for dtype in _ALL}
TORCH_STORAGES = {
    storage: _BY_NAME[name]
    for storage, name in {
        "BFloat16Storage": "bfloat16", "HalfStorage": "float16", "FloatStorage": "float32",
        "DoubleStorage": "float64", "LongStorage": "int64", "IntStorage": "int32", "ShortStorage": "int16",
        "CharStorage": "int8", "ByteStorage": "uint8", "BoolStorage": "bool",
    }.items()
}  # fmt: skip
SAFETENSORS = {
    code: _BY_NAME[name]
    for code, name in {
        "BF16": "bfloat16", "F16": "float16", "F32": "float32", "F64": "float64", "I64": "int64",
        "I32": "int32", "I16": "int16", "I8": "int8", "U8": "uint8", "BOOL": "bool",
    }.items()
}  # fmt: skip


def as_float32(raw: NDArray[Any], dtype: Dtype) -> NDArray[np.float32]:
    """Return raw elements as float32, in which norms are computed: bfloat16 would err by up to 0.4 %."""
    if dtype is not BFLOAT16:
        with np.errstate(over="ignore"):
            return raw.astype(np.float32)
    widened: NDArray[np.uint32] = np.left_shift(raw, 16, dtype=np.uint32, casting="unsafe")
    return widened.view(np.float32)


def put_float32(raw: NDArray[Any], dtype: Dtype, into: NDArray[np.float32]) -> None:
    """Put raw elements into an array of float32 of the same shape."""
    if dtype is BFLOAT16:
        bits = into.view(np.uint32)
        bits[...] = raw  # widened and then shifted: twice as fast as both at once
        np.left_shift(bits, 16, out=bits)
        return
    with np.errstate(over="ignore"):
        into[...] = raw


def as_bfloat16(values: NDArray[np.float32]) -> NDArray[np.uint16]:
    """Return values rounded to the nearest bfloat16, ties to even, as their bits. NaN stays NaN."""
    bits = np.ascontiguousarray(values, "<f4").view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    found: NDArray[np.uint16] = np.where(np.isnan(values), np.uint32(0x7FC0), rounded).astype(np.uint16)
    return found
