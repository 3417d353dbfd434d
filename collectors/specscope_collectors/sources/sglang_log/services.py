"""Several services in one log, as ``docker compose logs`` writes them: which there are, and one of them.

A line of such a log is ``sglang-1  | [2026-11-29 20:50:45 TP0] Decode batch…``.
"""

from __future__ import annotations

import re

MAX_SERVICES = 50
_COLOUR = rb"(?:\x1b\[[0-9;]*m)*"
_NAME = rb"[A-Za-z0-9][A-Za-z0-9_.\-]{0,127}?"
_PRINTS = re.compile(
    rb"^" + _COLOUR + rb"(" + _NAME + rb") *" + _COLOUR + rb"\| " + _COLOUR + rb".*(?:Decode|Prefill) batch",
    re.MULTILINE,
)
_LINE = re.compile(rb"^" + _COLOUR + rb"(" + _NAME + rb") *" + _COLOUR + rb"\| ")


class SeveralServicesError(ValueError):
    """The log mixes servers; the message names them and the remedy."""


def printing_services(data: bytes) -> set[str]:
    """Return the services that print status lines; empty for a log that is of no Compose project."""
    if b"| " not in data:
        return set()
    return {match[1].decode(errors="replace") for match in _PRINTS.finditer(data)}


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


def _service_of(line: bytes) -> bytes | None:
    match = _LINE.match(line)
    return match[1] if match else None
