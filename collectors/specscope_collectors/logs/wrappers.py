"""What container runtimes put around a line, taken off: docker's JSON, CRI stamps and partial lines, colours.

Other prefixes (docker compose, journald, ray, progress bars) need no care: `segments` looks for the engine's
own stamp anywhere in the line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec

_ANSI = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)|[@-Z\\^_])")
_CRI = re.compile(rb"^(\d{4}-\d\d-\d\dT[^ ]{8,30}) (stdout|stderr) ([FP]) ")
PARTIALS = (b" stderr P ", b" stdout P ")
"""What every part of a line but the last has in it."""
_JSON_START = b'{"log":"'
MAX_JOINED_BYTES = 1024 * 1024
MAX_STREAMS = 8


class _DockerLine(msgspec.Struct):
    log: str
    stream: str = ""
    time: str = ""


_decode = msgspec.json.Decoder(_DockerLine).decode


def without_colours(data: bytes) -> bytes:
    """Return ``data`` without terminal escapes."""
    return _ANSI.sub(b"", data) if b"\x1b" in data else data


@dataclass(slots=True)
class Parts:
    """Parts of one line, the runtime's stamp in front."""

    pieces: list[bytes]
    size: int = 0

    def joined(self) -> bytes:
        """Return the line as far as it is there."""
        return b"".join(self.pieces)


@dataclass(slots=True)
class Joiner:
    """Joins the parts of lines that a container runtime has cut, over blocks, for each stream by itself."""

    parts: dict[bytes, Parts] = field(default_factory=dict)
    """Stream → parts of its unfinished line."""
    dropped: int = 0
    """Lines of which parts were lost (too long)."""

    def has_begun(self, data: bytes) -> bool:
        """Whether lines of this block must be taken one by one, whether or not there are `PARTIALS` in it."""
        return bool(self.parts) or data.startswith(_JSON_START)

    def joined(self, data: bytes) -> bytes:
        """Return the block with whole lines, each with the runtime's stamp in front."""
        return b"\n".join(self._lines(data))

    def rest(self) -> bytes:
        """Return the lines that the log left unfinished."""
        left = b"\n".join(parts.joined() for parts in self.parts.values())
        self.parts.clear()
        return left

    def _lines(self, data: bytes) -> Iterator[bytes]:
        for line in data.split(b"\n"):
            if line.startswith(_JSON_START):
                yield from self._of_docker(line)
            elif match := _CRI.match(line):
                stamp, stream, flag = match.groups()
                yield from self._add(stream, stamp, line[match.end() :], is_last=flag == b"F")
            else:
                yield line

    def _of_docker(self, line: bytes) -> Iterator[bytes]:
        try:
            record = _decode(line)
        except (msgspec.DecodeError, RecursionError):
            yield line
            return
        text = record.log.encode(errors="replace")
        yield from self._add(
            record.stream.encode(errors="replace"),
            record.time.encode(errors="replace"),
            text.rstrip(b"\r\n"),
            is_last=text.endswith(b"\n"),
        )

    def _add(self, stream: bytes, stamp: bytes, text: bytes, *, is_last: bool) -> Iterator[bytes]:
        held = self.parts.pop(stream, None) or Parts([stamp + b" "])
        held.pieces.append(text)
        held.size += len(text)
        if is_last:
            yield held.joined()
        elif held.size > MAX_JOINED_BYTES or len(self.parts) >= MAX_STREAMS:
            self.dropped += 1
        else:
            self.parts[stream] = held
