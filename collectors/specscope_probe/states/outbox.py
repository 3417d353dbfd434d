"""The files of one rank that wait to be pushed, and what their names say of how far that is.

A file that is being sent is renamed: it bears the sequence under which it is sent, so that whoever goes on,
after a time-out or a kill, can ask the server whether it got there. A ``[[probe]]`` job leaves such files
alone.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from specscope_probe.states.spool import PREFIX, SENDING, SUFFIX, Spool

ASIDE = "refused"
MOST_ASIDE = 32
_NAME = re.compile(
    rf"(?:{PREFIX}|{SENDING}(?P<sequence>\d{{1,15}})-)(?P<rest>(?P<created>\d{{13}})-(?P<pid>\d+)-\d+-(?P<rank>.*))"
    + re.escape(SUFFIX)
)


@dataclass(frozen=True, slots=True)
class Waiting:
    """One file."""

    path: Path
    order: tuple[int, str]
    sequence: int | None
    """Under which it may have been sent; None: it was not."""


class Outbox:
    """What of a spool is this rank's to push: its own files, and those of processes that are gone."""

    def __init__(self, spool: Spool) -> None:
        self.folder = spool.folder
        self._rank = spool.rank

    def waiting(self) -> list[Waiting]:
        """Return the files, oldest first; none of a folder that cannot be read."""
        found = []
        with suppress(OSError):
            for path in self.folder.glob(f"specscope-*{SUFFIX}"):
                match = _NAME.fullmatch(path.name)
                if match and match["rank"] == self._rank and _is_ours(int(match["pid"])):
                    sequence = match["sequence"]
                    order = (int(match["created"]), match["rest"])
                    found.append(Waiting(path, order, None if sequence is None else int(sequence)))
        # what may have been sent goes first: its sequence is lower than any that is given out now
        return sorted(found, key=lambda each: (each.sequence is None, each.sequence or 0, each.order))

    def claim(self, file: Waiting, sequence: int) -> Waiting:
        """Note under which sequence a file is sent. Raises OSError."""
        return self._renamed(file, f"{SENDING}{sequence}-", sequence)

    def release(self, file: Waiting) -> Waiting:
        """Note that a file was surely not sent. Raises OSError."""
        return self._renamed(file, PREFIX, None)

    def _renamed(self, file: Waiting, prefix: str, sequence: int | None) -> Waiting:
        path = self.folder / f"{prefix}{file.order[1]}{SUFFIX}"
        file.path.rename(path)
        return Waiting(path, file.order, sequence)

    def put_aside(self, file: Waiting) -> None:
        """Move a file that cannot be pushed out of the way, where the last few are kept. Raises OSError."""
        aside = self.folder / ASIDE
        aside.mkdir(exist_ok=True)
        file.path.rename(aside / f"{PREFIX}{file.order[1]}{SUFFIX}")
        for old in sorted(aside.glob(f"{PREFIX}*{SUFFIX}"))[:-MOST_ASIDE]:
            old.unlink(missing_ok=True)


def _is_ours(pid: int) -> bool:
    """Say whether no other living process writes under this id."""
    if pid == os.getpid():
        return True
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return True
    except OSError:
        return False
    return False
