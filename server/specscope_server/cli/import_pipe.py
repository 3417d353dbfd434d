"""A log that comes through a pipe while it is written: what has come is stored, not what will have come."""

from __future__ import annotations

import os
import select
import stat
from collections.abc import Callable, Iterator
from typing import Protocol

from specscope_collectors.logs.options import LAUNCH_BYTES
from specscope_collectors.sources.sglang_log import LogOptions, Portion, Summary
from specscope_collectors.sources.sglang_log.live import LiveReader
from specscope_collectors.sources.sglang_log.services import OPTION, check_one, only, printing_services
from specscope_server.kit.clock import Clock

READ_BYTES = 1024 * 1024
FIRST_SECONDS, TICK_SECONDS = 2.0, 1.0
"""How long the beginning of the log may take to come, and between two looks at what time has made due."""
GZIP = b"\x1f\x8b"


class Readable(Protocol):
    """An open file, or what is like one."""

    def read(self, size: int, /) -> bytes:
        """Return at most ``size`` bytes, none at the end."""
        ...

    def fileno(self) -> int:
        """Return its descriptor; raise OSError or ValueError if it has none."""
        ...

    def close(self) -> None:
        """Close it."""
        ...


def is_pipe(stream: Readable) -> bool:
    """Whether this is a pipe, a socket or a terminal, whose end may never come."""
    try:
        return not stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except (OSError, ValueError):  # no file of the system
        return False


class PipedLog:
    """Lines as they come."""

    def __init__(
        self, stream: Readable, service: str | None, moved: Callable[[int], None] = lambda count: None
    ) -> None:
        """``moved`` is told how many bytes came."""
        self._moved = moved
        self._descriptor = stream.fileno()
        self._service = service
        self._seen: set[str] = set()
        self._rest = b""
        self._is_over = False

    def beginning(self) -> bytes:
        """Return the first bytes, which name the log; they stay to be read."""
        while len(self._rest) < LAUNCH_BYTES and self._wait(FIRST_SECONDS):
            pass
        return self._rest[:LAUNCH_BYTES]

    def pieces(self) -> Iterator[tuple[bytes, bool]]:
        """Yield (whole lines, whether the last has no end); nothing now and then while nothing comes."""
        while not self._is_over:
            whole, end, rest = self._rest.rpartition(b"\n")
            if end or len(rest) >= READ_BYTES:
                data, self._rest = (whole + end, rest) if end else (rest, b"")
                yield self._chosen(data), not end
            else:
                yield b"", False
            self._wait(TICK_SECONDS)
        if self._rest:
            whole, end, rest = self._rest.rpartition(b"\n")
            yield self._chosen(whole + end), False
            yield self._chosen(rest), True

    def whole(self, stream: Readable) -> Readable:
        """Return a stream of everything, what was read already included."""
        return _Rejoined(self._rest, stream)

    def _wait(self, seconds: float) -> bool:
        """Take what comes within so long; return whether something came."""
        ready, _, _ = select.select([self._descriptor], [], [], seconds)
        if not ready:
            return False
        data = os.read(self._descriptor, READ_BYTES)
        self._is_over = not data
        self._rest += data
        self._moved(len(data))
        return bool(data)

    def _chosen(self, data: bytes) -> bytes:
        if self._service is not None:
            return only(data, self._service)
        self._seen |= printing_services(data)
        check_one(self._seen, OPTION)
        return data


class _Rejoined:
    def __init__(self, beginning: bytes, stream: Readable) -> None:
        self._beginning = beginning
        self._stream = stream

    def read(self, size: int, /) -> bytes:
        if not self._beginning:
            return self._stream.read(size)
        given, self._beginning = self._beginning[:size], self._beginning[size:]
        return given

    def close(self) -> None:
        self._stream.close()

    def fileno(self) -> int:
        return self._stream.fileno()


def piped_portions(log: PipedLog, options: LogOptions, clock: Clock) -> tuple[Summary, Iterator[Portion]]:
    """Return the summary (it fills while the portions are read) and the portions, as they come."""
    reader = LiveReader(options)

    def portions() -> Iterator[Portion]:
        for data, is_cut in log.pieces():
            yield from reader.feed(data, clock(), is_cut=is_cut)
        yield from reader.end()

    return reader.summary, portions()
