"""A log of any size as blocks of whole lines: bounded memory, whatever stands in it."""

from __future__ import annotations

import codecs
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

BLOCK_BYTES = 1024 * 1024
MAX_LINE_BYTES = 1024 * 1024
"""A longer line is read in pieces of this size, each as if it were a line that was cut off."""
_GZIP = b"\x1f\x8b"
_UTF_16 = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
"""Byte order mark (Windows PowerShell's ``>`` writes one) → encoding."""


class Readable(Protocol):
    """What is read: a file, a pipe, standard input."""

    def read(self, size: int, /) -> bytes:
        """Return at most ``size`` bytes, none at the end."""
        ...


@dataclass(frozen=True, slots=True)
class Block:
    """Whole lines, without the last line's end."""

    data: bytes
    start: int
    """Offset of its first byte in the (decompressed) log."""
    end: int
    lines: int
    """Ends of lines."""
    pieces: int = 0
    """1 when the block begins the pieces of a line that is too long."""
    is_cut: bool = False
    """Its last line has no end: the log stops there, or the line was too long."""


class Unpacked:
    """The bytes of a log: decompressed when they are gzip, in UTF-8 when they are UTF-16.

    Both are told by their first bytes, not by a name.
    """

    def __init__(self, stream: Readable) -> None:
        self._stream = stream
        self._head = stream.read(2)
        self._gzip = zlib.decompressobj(31) if self._head == _GZIP else None
        self._text: codecs.IncrementalDecoder | None = None
        self._ready = b""
        if encoding := _UTF_16.get(self._head):
            self._head += stream.read(2)
            if b"\0" in self._head[2:]:  # a log begins with ASCII; other bytes are rubbish
                self._text = codecs.getincrementaldecoder(encoding)("replace")
                self._ready = self._text.decode(self._head[2:]).encode(errors="replace")
        self.damage = ""
        """Why the compressed log could not be read to its end; empty when it was."""

    def read(self, size: int, /) -> bytes:
        """Return ``size`` bytes, less only at the end."""
        while len(self._ready) < size:
            more = self._more(size - len(self._ready))
            if not more:
                break
            self._ready += more
        given, self._ready = self._ready[:size], self._ready[size:]
        return given

    def peek(self, size: int) -> bytes:
        """Return the first ``size`` of the bytes to come; they stay to be read."""
        self._ready = self.read(size) + self._ready
        return self._ready[:size]

    def _more(self, size: int) -> bytes:
        if self._gzip is not None:
            return self._inflate(self._gzip, size)
        if self._text is not None:
            return self._in_utf_8(self._text, size)
        head, self._head = self._head, b""
        return head or self._stream.read(size)

    def _in_utf_8(self, text: codecs.IncrementalDecoder, size: int) -> bytes:
        while data := self._stream.read(size):
            if found := text.decode(data):
                return found.encode(errors="replace")
        return b""

    def _inflate(self, gzip: zlib._Decompress, size: int) -> bytes:
        while not self.damage:
            if gzip.eof:  # one gzip file may hold several members, one after the other
                gzip_rest = gzip.unused_data or self._stream.read(BLOCK_BYTES)
                if not gzip_rest.startswith(_GZIP[:1]):
                    return b""
                gzip = self._gzip = zlib.decompressobj(31)
            else:
                gzip_rest = gzip.unconsumed_tail or self._head or self._stream.read(BLOCK_BYTES)
                self._head = b""
                if not gzip_rest:
                    self.damage = "the compressed file ends too early"
                    return gzip.flush()
            try:
                out = gzip.decompress(gzip_rest, size)
            except zlib.error as error:
                self.damage = f"the compressed file is damaged ({error})"
                return b""
            if out:
                return out
        return b""


def read_blocks(stream: Readable, cut_at: int = 0) -> Iterator[Block]:
    """Yield the log in blocks; a block ends at ``cut_at`` (where a former reading ended) if lines do."""
    start, rest, in_long_line = 0, b"", False
    while fresh := stream.read(_wanted(start, len(rest), cut_at)):
        data = rest + fresh
        at = data.rfind(b"\n") + 1
        is_long = at == 0 and len(data) >= MAX_LINE_BYTES
        if at == 0 and not is_long:
            rest = data
            continue
        whole, rest = (data, b"") if is_long else (data[:at], data[at:])
        yield _block(whole, start, pieces=int(is_long and not in_long_line), is_cut=is_long)
        in_long_line = is_long
        start += len(whole)
    if rest:
        yield _block(rest, start, pieces=0, is_cut=True)


def _wanted(start: int, held: int, cut_at: int) -> int:
    """How much to read, so that a block can end where the former reading ended."""
    missing = cut_at - start - held
    return min(BLOCK_BYTES, missing) if missing > 0 else BLOCK_BYTES


def _block(data: bytes, start: int, pieces: int, *, is_cut: bool) -> Block:
    end = start + len(data)
    lines = data.count(b"\n")
    if b"\r" in data:  # progress bars write over themselves; what follows is a line of its own
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return Block(data, start, end, lines, pieces, is_cut)
