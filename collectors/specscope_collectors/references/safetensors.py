"""Files of safetensors: eight bytes say how long the JSON header is; the tensors follow it."""

from __future__ import annotations

import math

import msgspec

from specscope_collectors.references.dtypes import SAFETENSORS
from specscope_collectors.references.errors import DumpError
from specscope_collectors.references.tensors import MAX_NUMBER, Tensor, contiguous_strides, make_tensor

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


def read_safetensors(content: memoryview) -> list[Tensor]:
    """Return the tensors of a file, unread; types that no dump has are left out. Raises DumpError."""
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
            name: msgspec.json.decode(raw, type=_Entry) for name, raw in parts.items() if name != METADATA
        }
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise DumpError("its header is no JSON of safetensors") from None
    data = content[LENGTH_BYTES + length :]
    return [_tensor(name, entry, data) for name, entry in entries.items() if entry.dtype in SAFETENSORS]


def _tensor(name: str, entry: _Entry, data: memoryview) -> Tensor:
    dtype = SAFETENSORS[entry.dtype]
    begin, end = entry.data_offsets
    if not 0 <= begin <= end <= MAX_NUMBER or any(not 0 <= size <= MAX_NUMBER for size in entry.shape):
        raise DumpError(f"{name[:80]} has a shape or a place that cannot be")
    if end > len(data):
        raise DumpError(f"it is cut off: {name[:80]} should reach to byte {end}, and there are {len(data)}")
    if math.prod(entry.shape) * dtype.bytes != end - begin:
        raise DumpError(f"{name[:80]}: its shape {entry.shape} does not fill its {end - begin} bytes")
    return make_tensor(name, dtype, data[begin:end], 0, entry.shape, contiguous_strides(entry.shape))
