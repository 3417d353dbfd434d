"""Several services in one log: which there are, and one of them.

``docker compose logs`` writes ``sglang-1  | [2026-11-29 20:50:45 TP0] Decode batch…``,
``kubectl logs --prefix`` writes ``[pod/sglang-1/main] [2026-11-29 20:50:45 TP0] Decode batch…``.
"""

from __future__ import annotations

import re

from specscope_collectors.logs.blocks import BLOCK_BYTES, Readable, Unpacked

OPTION = "--service {}"
MAX_SERVICES = 50
PROBES = 16
MAX_HALF_BYTES = 65_536
_COLOUR = rb"(?:\x1b\[[0-9;]*m)*"
_NAME = rb"[A-Za-z0-9][A-Za-z0-9_.\-]{0,127}?"
_COMPOSE = _COLOUR + rb"(" + _NAME + rb") *" + _COLOUR + rb"\|" + _COLOUR + rb" "
_KUBECTL = rb"\[pod/(" + _NAME + rb")/[^\]\s]{1,128}\] "
_PREFIX = rb"^(?:" + _COMPOSE + rb"|" + _KUBECTL + rb")"
_PRINTS = re.compile(_PREFIX + rb".*(?:Decode|Prefill) batch", re.MULTILINE)
_LINE = re.compile(_PREFIX[1:])


class SeveralServicesError(ValueError):
    """The log mixes servers; the message names them and the remedy."""


def printing_services(data: bytes) -> set[str]:
    """Return the services that print status lines; empty for a log that is of no Compose project."""
    if not _is_composed(data):
        return set()
    return {_name(match).decode(errors="replace") for match in _PRINTS.finditer(data)}


def _is_composed(data: bytes) -> bool:
    """Whether lines of this log begin with a service: if it has any, all lines do, so some tell."""
    for probe in range(PROBES):
        start = data.rfind(b"\n", 0, len(data) * probe // PROBES + 1) + 1
        if _LINE.match(data, start):
            return True
    return False


def only(data: bytes, service: str) -> bytes:
    """Return the lines of one service."""
    name = service.encode()
    return b"".join(line for line in data.splitlines(keepends=True) if _service_of(line) == name)


def check_one(seen: set[str], option: str) -> None:
    """Raise `SeveralServicesError` for more than one; ``option`` says how one is chosen."""
    if len(seen) > 1:
        names = ", ".join(sorted(seen)[:MAX_SERVICES])
        raise SeveralServicesError(
            f"several servers write into this log: {names}; choose one, {option.format(sorted(seen)[0])}"
        )


class ServiceLog(Unpacked):
    """A log of which only the lines of one service are read; without a choice, it must be of one only.

    Offsets count the bytes of the lines that are read.
    """

    def __init__(self, stream: Readable, service: str | None) -> None:
        super().__init__(stream)
        self._service = service
        self._seen: set[str] = set()
        self._half = b""
        self._kept = b""

    def read(self, size: int, /) -> bytes:
        """See `Unpacked.read`. Raises `SeveralServicesError`."""
        if self._service is None:
            data = super().read(size)
            self._check(data)
            return data
        while len(self._kept) < size and (more := super().read(BLOCK_BYTES)):
            whole, end, self._half = (self._half + more).rpartition(b"\n")
            self._kept += only(whole + end, self._service)
        if len(self._kept) < size:
            self._kept += only(self._half, self._service)
            self._half = b""
        given, self._kept = self._kept[:size], self._kept[size:]
        return given

    def peek(self, size: int) -> bytes:
        """See `Unpacked.peek`."""
        if self._service is None:
            data = super().peek(size)
            self._half = b""  # it is read again
            return data
        self._kept = self.read(size) + self._kept
        return self._kept[:size]

    def _check(self, data: bytes) -> None:
        whole, end, half = (self._half + data if b"|" in data or b"[pod/" in data else data).rpartition(b"\n")
        self._half = half[-MAX_HALF_BYTES:] if len(half) <= MAX_HALF_BYTES else b"x"
        self._seen |= printing_services(whole + end)
        check_one(self._seen, OPTION)


def _service_of(line: bytes) -> bytes | None:
    match = _LINE.match(line)
    return _name(match) if match else None


def _name(match: re.Match[bytes]) -> bytes:
    name: bytes = match[1] or match[2]
    return name
