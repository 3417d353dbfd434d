"""Unpack a file in pieces: gzip is recognised, damage ends the data with a reason, bombs are refused."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator
from typing import Protocol

from specscope_collectors.traces.bounds import Bounds, TraceError

GZIP = b"\x1f\x8b"
GZIP_WINDOW = 16 + zlib.MAX_WBITS
RAW_BYTES = 262_144
SLICE_BYTES = 16_384
"""Packed bytes that are unpacked at once: where they are damaged, zlib gives nothing of them."""


class Readable(Protocol):
    """What can be read from, once."""

    def read(self, size: int, /) -> bytes:
        """Return at most ``size`` bytes; none at the end."""
        ...


class _Unzip(Protocol):
    def decompress(self, data: bytes, /) -> bytes: ...


class Inflated:
    """Iterates over the unpacked pieces of a stream. ``trouble`` says why it ended early; "" = it did not."""

    def __init__(self, stream: Readable, bounds: Bounds) -> None:
        self.trouble = ""
        self.packed_bytes = 0
        self.unpacked_bytes = 0
        self._stream = stream
        self._bounds = bounds
        self._digest = hashlib.sha256()

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of what was read so far, as it lies in the file."""
        return self._digest.hexdigest()

    def drain(self) -> None:
        """Read what is left without unpacking it, so that ``digest`` is that of the whole file."""
        while self._read():
            pass

    def __iter__(self) -> Iterator[bytes]:
        """Yield pieces of at most ``chunk_bytes``. Raises `TraceError` beyond the bounds."""
        first = self._read()
        pieces = self._unzipped(first) if first.startswith(GZIP) else self._plain(first)
        for piece in pieces:
            self.unpacked_bytes += len(piece)
            self._check()
            if piece:
                yield piece

    def _read(self) -> bytes:
        raw = self._stream.read(RAW_BYTES)
        self.packed_bytes += len(raw)
        self._digest.update(raw)
        return raw

    def _plain(self, raw: bytes) -> Iterator[bytes]:
        while raw:
            yield raw
            raw = self._read()

    def _unzipped(self, raw: bytes) -> Iterator[bytes]:
        unzip = before = zlib.decompressobj(GZIP_WINDOW)
        piece = b""
        try:
            while raw:
                piece, rest = raw[:SLICE_BYTES], raw[SLICE_BYTES:]
                before = unzip.copy()
                yield unzip.decompress(piece, self._bounds.chunk_bytes)
                raw = (unzip.unused_data if unzip.eof else unzip.unconsumed_tail) + rest or self._read()
                if unzip.eof and raw:
                    if not raw.startswith(GZIP[: len(raw)]):
                        self.trouble = "something that is not gzip follows the gzip data; it is left out"
                        return
                    unzip = zlib.decompressobj(GZIP_WINDOW)
            if not unzip.eof:
                yield unzip.flush()
                self.trouble = f"the gzip data is cut off after {self.packed_bytes:,} bytes"
        except zlib.error as error:
            yield from _salvaged(before, piece)
            self.trouble = f"the gzip data is damaged after {self.unpacked_bytes:,} unpacked bytes ({error})"

    def _check(self) -> None:
        bounds = self._bounds
        if self.unpacked_bytes > bounds.max_bytes:
            raise TraceError(
                f"it unpacks to more than {bounds.max_bytes:,} bytes; capture fewer steps (10 to 50 will do)"
            )
        if self.unpacked_bytes > max(bounds.ratio_from_bytes, bounds.max_ratio * self.packed_bytes):
            raise TraceError(
                f"it unpacks to more than {bounds.max_ratio:g} times its size, which no trace does: it "
                "looks like a zip bomb; if you trust it, unpack it yourself and import the .json"
            )


def _salvaged(unzip: _Unzip, piece: bytes) -> Iterator[bytes]:
    """Yield what can be unpacked of a damaged piece, in small steps up to the damage."""
    for start in range(0, len(piece), 64):
        try:
            yield unzip.decompress(piece[start : start + 64])
        except zlib.error:
            return
