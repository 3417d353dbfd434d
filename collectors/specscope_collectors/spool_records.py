"""How records lie in a segment of the spool: framed by length, checked by CRC, found again after damage.

A record is a header (`_HEADER`: mark, kind, length of the payload, number, time, CRC-32 of everything but the
mark) and a payload. Records are numbered through; a gap in the numbers is what was lost.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

import msgspec

from specscope_collectors.observations import Target

MARK = b"\xa5SpR"
MAX_PAYLOAD_BYTES = 256 * 1024 * 1024
_HEADER = struct.Struct("<4sBIQqI")
_CHECKED = struct.Struct("<BIQq")
HEADER_BYTES = _HEADER.size


class Kind(IntEnum):
    """What a record holds."""

    STATE = 1
    """`State` as of the end of the segment before; the first record of each segment."""
    BATCH = 2
    """`Entry`."""


class CollectorState(msgspec.Struct, frozen=True, array_like=True):
    """Where one collector goes on after a restart."""

    sequence: int
    launch_key: str | None
    checkpoint: bytes | None
    target: Target
    time_ms: int
    """When its last batch was spooled."""


class State(msgspec.Struct, frozen=True, array_like=True):
    """Where all collectors of a spool go on."""

    instance: str
    """Part of each collector's id at the server, so that a spool that is made anew is another collector."""
    collectors: dict[str, CollectorState] = {}


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """One batch in the spool."""

    collector_id: str
    """As the collector calls itself; at the server with the instance of the spool."""
    sequence: int
    launch_key: str | None
    target: Target
    checkpoint: bytes | None
    body: bytes
    """One zstd frame of one `Batch` in MessagePack, without the checkpoint: what is sent."""


@dataclass(frozen=True, slots=True)
class Stored:
    """One record that was read."""

    kind: int
    number: int
    time_ms: int
    payload: bytes
    end: int
    """Where the next record begins."""


@dataclass(frozen=True, slots=True)
class Damage:
    """A stretch that holds no record."""

    start: int
    end: int


_entry_decoder = msgspec.msgpack.Decoder(Entry)
_state_decoder = msgspec.msgpack.Decoder(State)


def frame(kind: Kind, number: int, time_ms: int, payload: bytes) -> bytes:
    """Return the record as it is written."""
    checked = _CHECKED.pack(kind, len(payload), number, time_ms)
    crc = zlib.crc32(payload, zlib.crc32(checked))
    return _HEADER.pack(MARK, kind, len(payload), number, time_ms, crc) + payload


def length_of(header: bytes) -> int | None:
    """Return the length of the payload that a header announces; None when it is no header."""
    if len(header) < HEADER_BYTES or not header.startswith(MARK):
        return None
    length: int = _HEADER.unpack_from(header)[2]
    return length if length <= MAX_PAYLOAD_BYTES else None


def record_at(data: bytes, offset: int) -> Stored | None:
    """Return the record that begins there; None when there is none, or not a whole one."""
    if offset + HEADER_BYTES > len(data):
        return None
    mark, kind, length, number, time_ms, crc = _HEADER.unpack_from(data, offset)
    start = offset + HEADER_BYTES
    if mark != MARK or length > MAX_PAYLOAD_BYTES or start + length > len(data):
        return None
    payload = data[start : start + length]
    if zlib.crc32(payload, zlib.crc32(_CHECKED.pack(kind, length, number, time_ms))) != crc:
        return None
    return Stored(kind, number, time_ms, payload, start + length)


def scan(data: bytes, offset: int = 0) -> Iterator[Stored | Damage]:
    """Yield all records from ``offset`` on, and the stretches between them in which there is none."""
    while offset < len(data):
        found = record_at(data, offset)
        if found is None:
            start, offset = offset, _next_record(data, offset + 1)
            yield Damage(start, offset)
            continue
        yield found
        offset = found.end


def _next_record(data: bytes, offset: int) -> int:
    """Return where the next whole record begins; the end of the data when there is none."""
    while (offset := data.find(MARK, offset)) >= 0:
        if record_at(data, offset) is not None:
            return offset
        offset += 1
    return len(data)


def decode_entry(payload: bytes) -> Entry | None:
    """Return the batch of a record; None for what a newer version may have written."""
    try:
        return _entry_decoder.decode(payload)
    except msgspec.MsgspecError:
        return None


def decode_state(payload: bytes) -> State | None:
    """Return the state of a record; None for what a newer version may have written."""
    try:
        return _state_decoder.decode(payload)
    except msgspec.MsgspecError:
        return None
