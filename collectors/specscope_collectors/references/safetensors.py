"""Files of safetensors: eight bytes say how long the JSON header is; the tensors follow it."""

from __future__ import annotations

import math

import msgspec

from specscope_collectors.references.dtypes import SAFETENSORS
from specscope_collectors.references.errors import DumpError
from specscope_collectors.references.tensors import (
    MAX_DIMENSIONS,
    MAX_NUMBER,
    Tensor,
    Unread,
    contiguous_strides,
    make_tensor,
)
from specscope_collectors.references.texts import whole

LENGTH_BYTES = 8
MAX_HEADER_BYTES = 16 << 20
METADATA = "__metadata__"


class _Entry(msgspec.Struct):
    dtype: str
    shape: list[int]
    data_offsets: tuple[int, int]


def is_safetensors(beginning: bytes, size: int) -> bool:
    """Say whether a file begins as one of safetensors does."""
    length = int.from_bytes(beginning[:LENGTH_BYTES], "little")
    return (
        beginning[LENGTH_BYTES : LENGTH_BYTES + 1] == b"{" and 2 <= length < 1 << 32 and size > LENGTH_BYTES
    )


def read_safetensors(content: memoryview) -> tuple[list[Tensor], list[Unread]]:
    """Return the tensors of a file as views, and those of types that are not read. Raises DumpError."""
    length = int.from_bytes(content[:LENGTH_BYTES], "little")
    if length > MAX_HEADER_BYTES:
        raise DumpError(f"its header would have {length} bytes, over {MAX_HEADER_BYTES}")
    if LENGTH_BYTES + length > len(content):
        raise DumpError(
            "it is cut off within its header: its writer was stopped, or it is still being written"
        )
    try:
        parts = msgspec.json.decode(
            bytes(content[LENGTH_BYTES : LENGTH_BYTES + length]), type=dict[str, msgspec.Raw]
        )
        entries = {
            whole(name): msgspec.json.decode(raw, type=_Entry)
            for name, raw in parts.items()
            if name != METADATA
        }
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise DumpError("its header is no JSON of safetensors") from None
    data = content[LENGTH_BYTES + length :]
    for name, entry in entries.items():
        _check_place(name, entry, data)
    return (
        [_tensor(name, entry, data) for name, entry in entries.items() if entry.dtype in SAFETENSORS],
        [
            Unread(name, whole(entry.dtype[:20]), tuple(entry.shape), _size(entry))
            for name, entry in entries.items()
            if entry.dtype not in SAFETENSORS
        ],
    )


def _size(entry: _Entry) -> int:
    return entry.data_offsets[1] - entry.data_offsets[0]


def _check_place(name: str, entry: _Entry, data: memoryview) -> None:
    """Raise DumpError for what does not lie within the file."""
    begin, end = entry.data_offsets
    if len(entry.shape) > MAX_DIMENSIONS:
        raise DumpError(f"{name[:80]} has {len(entry.shape)} dimensions: no tensor of a dump has")
    if not 0 <= begin <= end <= MAX_NUMBER or any(not 0 <= size <= MAX_NUMBER for size in entry.shape):
        raise DumpError(f"{name[:80]} has a shape or a place that cannot be")
    if end > len(data):
        raise DumpError(f"it is cut off: {name[:80]} should reach to byte {end}, and there are {len(data)}")


def _tensor(name: str, entry: _Entry, data: memoryview) -> Tensor:
    """Return a view. Raises DumpError."""
    dtype = SAFETENSORS[entry.dtype]
    begin, end = entry.data_offsets
    if math.prod(entry.shape) * dtype.bytes != end - begin:
        raise DumpError(f"{name[:80]}: its shape {entry.shape} does not fill its {end - begin} bytes")
    return make_tensor(name, dtype, data[begin:end], 0, entry.shape, contiguous_strides(entry.shape))
