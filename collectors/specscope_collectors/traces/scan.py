"""Find the events of a trace in pieces of JSON, without ever holding the whole.

Most of a trace is decoded in batches. A batch ends where the text looks like the end of an event (the text
between the first two events is what to look for). Whether it is one, decoding tells: what begins with one
and is valid as a list of whole events can only end with one too. Where that fails, brackets and strings are
counted instead, one event at a time, so that damage costs the damaged event only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from specscope_collectors.traces.bounds import Bounds, TraceError
from specscope_collectors.traces.events import TraceEvent, many, one

_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]"]', re.DOTALL)
_EVENTS = re.compile(rb'"traceEvents"\s*:\s*\[')
_BETWEEN = re.compile(rb"[\s,]*")
_FIRST_KEY = re.compile(rb'\{\s*"[^"\\]{1,40}"')
_DECODE_ERRORS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
MAX_TAIL_BYTES = 1_048_576


class Scan:
    """Iterates over batches of events. ``trouble`` says why it ended early; "" = it did not."""

    def __init__(self, pieces: Iterable[bytes], bounds: Bounds) -> None:
        self.header: dict[str, Any] = {}
        """What stands beside ``traceEvents``: ``distributedInfo``, ``baseTimeNanoseconds`` …"""
        self.trouble = ""
        self.undecodable = 0
        """Events that are no JSON or of another shape, left out."""
        self._pieces = iter(pieces)
        self._bounds = bounds
        self._data = b""
        self._at_end = False
        self._separators: tuple[bytes, ...] = ()
        self._offset = 0
        self._is_array = False

    def __iter__(self) -> Iterator[list[TraceEvent]]:
        """Yield lists of events. Raises `TraceError` for what is no trace at all."""
        self._open()
        while not self.trouble:
            self._fill()
            is_last = self._at_end
            batch = self._batch() or list(self._singly())
            if batch:
                yield batch
            if self._is_closed():
                self._close()
                return
            if not batch and is_last:
                self._cut_off()
                return

    def _fill(self, at_least: int | None = None) -> None:
        """Have at least a chunk ahead, or everything up to the end."""
        wanted = at_least or self._bounds.chunk_bytes
        parts, size = [self._data], len(self._data)
        more = size < wanted
        while more and not self._at_end:
            piece = next(self._pieces, None)
            if piece is None:
                self._at_end = True
                break
            parts.append(piece)
            size += len(piece)
            more = size < wanted
        if len(parts) > 1:
            self._data = b"".join(parts)

    def _drop(self, count: int) -> None:
        self._data = self._data[count:]
        self._offset += count

    # The beginning

    def _open(self) -> None:
        size = 4096
        while True:
            self._fill(size)
            start = self._start()
            if start is not None:
                self._drop(start)
                return
            if self._at_end or len(self._data) > self._bounds.max_header_bytes:
                raise TraceError(
                    'there is no "traceEvents" list in it; name a Kineto or Chrome trace (*.trace.json, '
                    "*.trace.json.gz), as torch.profiler and SGLang's /start_profile write them"
                )
            size = 4 * len(self._data)

    def _start(self) -> int | None:
        """Return where the first event may stand."""
        text = self._data.removeprefix(b"\xef\xbb\xbf").lstrip()
        skipped = len(self._data) - len(text)
        if text.startswith(b"["):
            self._is_array = True
            return skipped + 1
        if text and not text.startswith(b"{"):
            raise TraceError("it is no JSON; name a Kineto or Chrome trace (*.trace.json, *.trace.json.gz)")
        for found in _EVENTS.finditer(text):
            before = text[: found.start()].rstrip().removesuffix(b",")
            if self._note(before + b"}"):
                return skipped + found.end()
        return None

    def _note(self, text: bytes) -> bool:
        """Remember what stands in an object; False when it is none (a key within a text, say)."""
        try:
            self.header |= msgspec.json.decode(text, type=dict[str, Any])
        except _DECODE_ERRORS:
            return False
        return True

    # Batches

    def _batch(self) -> list[TraceEvent]:
        """Return the events of the chunk that can be decoded together; none when that fails."""
        gap = _BETWEEN.match(self._data)
        start = gap.end() if gap else 0
        for separator in self._separators or self._learn(start):
            end = self._data.rfind(separator, start)
            if end < 0:
                continue
            try:
                batch = many.decode(b"[" + self._data[start : end + 1] + b"]")
            except _DECODE_ERRORS:
                continue
            self._drop(end + 1)
            return batch
        return []

    def _learn(self, start: int) -> tuple[bytes, ...]:
        """Look at how the first event ends and the second begins."""
        end = self._end(start)
        gap = _BETWEEN.match(self._data, end) if end else None
        key = _FIRST_KEY.match(self._data, gap.end()) if gap else None
        if end and gap and key:
            between = self._data[end - 1 : gap.end()]
            self._separators = (between + key.group(), between + b"{")
        return self._separators

    # One by one

    def _singly(self) -> Iterator[TraceEvent]:
        """Yield the events of the chunk that are whole."""
        position = 0
        while position < len(self._data):
            gap = _BETWEEN.match(self._data, position)
            start = gap.end() if gap else position
            if self._data[start : start + 1] != b"{":
                self._note_foreign(start)
                position = start
                break
            end = self._end(start)
            if end is None:
                position = start
                break
            event = self._decode(self._data[start:end])
            position = end
            if event is not None:
                yield event
        self._drop(position)
        if len(self._data) > self._bounds.max_event_bytes and not self._is_closed():
            self.trouble = self.trouble or self._at(
                f"an event is over {self._bounds.max_event_bytes:,} bytes"
            )
        elif not self._at_end and position == 0:
            self._fill(2 * max(len(self._data), 1))

    def _note_foreign(self, start: int) -> None:
        found = self._data[start : start + 1]
        if found and found != b"]":
            self._drop(start)
            self.trouble = self._at("the JSON is damaged")
            self._data = b""

    def _end(self, start: int) -> int | None:
        """Return the place after the bracket that closes the one at ``start``; None = not in this chunk."""
        depth = 0
        for token in _TOKEN.finditer(self._data, start):
            kind = token.group()
            if kind in (b"{", b"["):
                depth += 1
            elif kind in (b"}", b"]"):
                depth -= 1
                if depth <= 0:
                    return token.end()
            elif kind == b'"':  # a text that is not closed here
                return None
        return None

    def _decode(self, text: bytes) -> TraceEvent | None:
        try:
            return one.decode(text)
        except _DECODE_ERRORS:
            pass
        try:  # names may be no valid UTF-8
            return one.decode(text.decode("utf-8", "replace").encode())
        except _DECODE_ERRORS:
            self.undecodable += 1
            return None

    # The end

    def _is_closed(self) -> bool:
        return self._data.lstrip(b" \t\r\n,").startswith(b"]")

    def _close(self) -> None:
        """Read what stands behind the events, in so far as it is short."""
        while not self._at_end and len(self._data) < MAX_TAIL_BYTES:
            self._fill(len(self._data) + 1)
        tail = self._data.lstrip(b" \t\r\n,").removeprefix(b"]").strip()
        if self._is_array or tail == b"}":
            return
        whole = self._note(b"{" + tail.removeprefix(b",").lstrip()) if tail else False
        if not whole:
            self.trouble = self._at("all events are read, but what follows them is damaged")

    def _cut_off(self) -> None:
        left = self._data.strip(b" \t\r\n,")
        if left or not self._is_array:  # a bare array need not be closed
            self.trouble = self._at("the JSON is cut off")

    def _at(self, words: str) -> str:
        return f"{words} (byte {self._offset:,})"
