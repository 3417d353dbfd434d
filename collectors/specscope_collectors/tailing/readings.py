"""What one look at a followed path gave."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from specscope_collectors.tailing.contents import NotAFileError
from specscope_collectors.tailing.marks import Position


class TailState(StrEnum):
    """How the following goes."""

    OK = "ok"
    MISSING = "missing"
    """The file is not there (yet)."""
    DENIED = "denied"
    """Permission is missing, for the file or its directory."""
    UNSUITABLE = "unsuitable"
    """A directory, pipe or device."""
    FAILED = "failed"
    """Any other error of the system."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What one look gave. Store ``position`` together with what was made of ``data``."""

    position: Position | None
    """After ``data``; None when the file was not found and never was."""
    data: bytes = b""
    """Whole lines with their ends; the last may lack it if ``is_cut``."""
    is_cut: bool = False
    """The last line has no end: its file ended in mid-line for good, or it is too long for one piece."""
    begins_file: bool = False
    """Another file begins with ``data``."""
    has_more: bool = False
    """There is more to read at once."""
    lost: str = ""
    """What was written and can no longer be read, in words."""
    state: TailState = TailState.OK
    detail: str = ""
    path: Path | None = None
    """The file that was read."""
    behind_bytes: int = 0
    """Unread bytes of the file that was read, a line that has no end yet among them."""


def failed(error: OSError, position: Position | None, path: Path) -> Reading:
    """Return the reading of a look that an error of the system has ended."""
    detail = f"{path}: {error.strerror or error}"
    state = TailState.FAILED
    if isinstance(error, FileNotFoundError):
        state = TailState.MISSING
    elif isinstance(error, PermissionError):
        state = TailState.DENIED
    elif isinstance(error, NotAFileError | IsADirectoryError | NotADirectoryError):
        state, detail = TailState.UNSUITABLE, f"{path} is a directory, pipe or device"
    return Reading(position=position, state=state, detail=detail)
