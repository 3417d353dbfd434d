"""What a collector must remember to go on after it was killed: counters and launch, kept with each batch."""

from __future__ import annotations

import msgspec
import zstandard

from specscope_collectors.increments import CheckpointError, CounterMemory
from specscope_collectors.launches import Known

FORMAT = 1
_MAX_KNOWN_BYTES = 64 * 1024 * 1024


class _Checkpoint(msgspec.Struct, array_like=True):
    format: int
    memory: bytes
    known: bytes
    """Compressed; empty when no launch is known."""


class KnownCodec:
    """Packs the launch once, not with every batch: its configuration is large and rarely changes."""

    def __init__(self) -> None:
        self._packed: tuple[Known, bytes] | None = None

    def pack(self, known: Known | None) -> bytes:
        """Return compressed MessagePack; b"" for None."""
        if known is None:
            return b""
        if self._packed is None or self._packed[0] is not known:
            data = zstandard.ZstdCompressor(level=6).compress(msgspec.msgpack.encode(known))
            self._packed = (known, data)
        return self._packed[1]


def encode(memory: CounterMemory, known: Known | None, codec: KnownCodec) -> bytes:
    """Return a checkpoint."""
    return msgspec.msgpack.encode(_Checkpoint(FORMAT, memory.encode(), codec.pack(known)))


def decode(data: bytes) -> tuple[CounterMemory, Known | None]:
    """Return what `encode` was given. Raises `CheckpointError`."""
    try:
        checkpoint = msgspec.msgpack.decode(data, type=_Checkpoint)
        if checkpoint.format != FORMAT:
            raise CheckpointError(f"checkpoint has format {checkpoint.format}, this version reads {FORMAT}")
        known = _unpack(checkpoint.known) if checkpoint.known else None
    except (msgspec.MsgspecError, zstandard.ZstdError, UnicodeDecodeError) as error:
        raise CheckpointError(f"checkpoint of {len(data)} bytes cannot be read: {error}") from error
    return CounterMemory.decode(checkpoint.memory), known


def _unpack(data: bytes) -> Known:
    size = zstandard.frame_content_size(data)
    if not 0 <= size <= _MAX_KNOWN_BYTES:
        raise CheckpointError(f"checkpoint claims a launch of {size} bytes")
    return msgspec.msgpack.decode(zstandard.ZstdDecompressor().decompress(data), type=Known)
