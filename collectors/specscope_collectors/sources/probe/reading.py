"""One file of state profiles: bounded, checked, and refused with a reason when it is anything else."""

from __future__ import annotations

import math
import os
import stat
import sys
import zlib
from array import array
from pathlib import Path
from typing import Annotated

import msgspec

from specscope_collectors.observations import StateProfile

FORMAT = 1
MAX_FILE_BYTES = 64 << 20
MAX_BYTES = 256 << 20
"""Of a file when it is unpacked."""
_STEP_BYTES = 1 << 20
_GZIP_WINDOW = 16 + zlib.MAX_WBITS

Text = Annotated[str, msgspec.Meta(max_length=200)]
Integers = Annotated[tuple[int, ...], msgspec.Meta(max_length=1_024)]


class RefusedFileError(ValueError):
    """The file is no file of state profiles; the message says why."""


class CaptureRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What the engine captured."""

    layers: Integers | None = None
    boundaries: Integers | None = None
    rule: Text
    hidden_size: int
    width: int
    draft_layers: Integers | None = None
    is_calibration: bool = False


class RawRow(msgspec.Struct, frozen=True, kw_only=True):
    """One sampled row as it was."""

    phase: Text
    slot: int
    position: int
    norm: float | None
    first_values: Annotated[tuple[float | None, ...], msgspec.Meta(max_length=16)]


class StateFile(msgspec.Struct, frozen=True, kw_only=True):
    """One window of one rank."""

    format: int
    created_ms: int
    rank: Annotated[dict[Text, Text], msgspec.Meta(max_length=16)]
    engine_version: Text
    model_class: Text
    probe_version: Text = ""
    started_ms: int = 0
    random_seed: int | None = None
    capture: CaptureRecord
    sink_limits: Annotated[tuple[float | None, ...], msgspec.Meta(max_length=1_024)] = ()
    profiles: Annotated[tuple[StateProfile, ...], msgspec.Meta(min_length=1, max_length=4_096)]
    rows: Annotated[tuple[RawRow, ...], msgspec.Meta(max_length=4_096)] = ()


_decoder = msgspec.json.Decoder(StateFile)


def read_state_file(path: Path) -> StateFile:
    """Return what a file holds. Raises RefusedFileError, and OSError when it cannot be read at all."""
    content = _unpacked(_read(path))
    try:
        found = _decoder.decode(content)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise RefusedFileError(f"it is not as the probe writes it: {error}") from None
    if found.format != FORMAT:
        raise RefusedFileError(f"it has format {found.format}, and {FORMAT} is read here; update Specscope")
    for profile in found.profiles:
        _check_arrays(profile)
    return found


def _read(path: Path) -> bytes:
    """Return the bytes of a regular file; links and devices are not followed."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise RefusedFileError("it is no regular file")
        content = file.read(MAX_FILE_BYTES + 1)
    if len(content) > MAX_FILE_BYTES:
        raise RefusedFileError(f"it is over {MAX_FILE_BYTES} bytes")
    return content


def _unpacked(packed: bytes) -> bytes:
    """Return the content; never more than a step over the limit is unpacked, however small the input."""
    content, unzip, pending = bytearray(), zlib.decompressobj(_GZIP_WINDOW), packed
    try:
        while pending and not unzip.eof and len(content) <= MAX_BYTES:
            content += unzip.decompress(pending, _STEP_BYTES)
            pending = unzip.unconsumed_tail
    except zlib.error as error:
        raise RefusedFileError(f"it is not gzip: {error}") from None
    if len(content) > MAX_BYTES:
        raise RefusedFileError(f"it is over {MAX_BYTES} bytes, unpacked")
    if not unzip.eof or unzip.unused_data:
        raise RefusedFileError("it ends too early, or too late")
    return bytes(content)


def _check_arrays(profile: StateProfile) -> None:
    names = ("token_directions", "direction_sum", "direction_sum_of_squares", "sum_of_squares")
    for name in names:
        content: bytes = getattr(profile, name)
        if len(content) % 4:
            raise RefusedFileError(f"{name} holds no float32")
        numbers = array("f", content)
        if sys.byteorder == "big":
            numbers.byteswap()
        if not all(map(math.isfinite, numbers)):
            raise RefusedFileError(f"{name} has values that are no numbers")
