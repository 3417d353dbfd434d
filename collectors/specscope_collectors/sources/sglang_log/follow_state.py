"""What the following of a log must remember: kept as the checkpoint of each batch."""

from __future__ import annotations

import msgspec
import zstandard

from specscope_collectors.sources.sglang_log.live import Memory
from specscope_collectors.sources.sglang_log.witness import Bond
from specscope_collectors.tailing import Position

FORMAT = 1
_MAX_BYTES = 64 * 1024 * 1024


class FileState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One followed file."""

    position: Position | None = None
    memory: Memory | None = None
    stored_of: tuple[int, int] | None = None
    """Of the piece behind the position: its bytes, and how many of its portions are stored."""
    bond: Bond = Bond()


class Stored(msgspec.Struct, frozen=True, kw_only=True):
    """All files of one job."""

    format: int = FORMAT
    files: dict[str, FileState] = {}
    """Path → its state."""


def encode(files: dict[str, FileState]) -> bytes:
    """Return a checkpoint."""
    return zstandard.ZstdCompressor(level=3).compress(msgspec.msgpack.encode(Stored(files=files)))


def decode(data: bytes) -> dict[str, FileState]:
    """Return what `encode` was given. Raises ValueError."""
    try:
        size = zstandard.frame_content_size(data)
        if not 0 <= size <= _MAX_BYTES:
            raise ValueError(f"checkpoint claims {size} bytes")
        stored = msgspec.msgpack.decode(zstandard.ZstdDecompressor().decompress(data), type=Stored)
    except (msgspec.MsgspecError, zstandard.ZstdError) as error:
        raise ValueError(f"checkpoint of {len(data)} bytes cannot be read: {error}") from error
    if stored.format != FORMAT:
        raise ValueError(f"checkpoint has format {stored.format}, this version reads {FORMAT}")
    return stored.files
