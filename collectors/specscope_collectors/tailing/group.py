"""All files that one path or pattern means, each followed by its own `Tail`."""

from __future__ import annotations

import glob
from collections.abc import Callable, Collection
from pathlib import Path

from specscope_collectors.tailing.rotation import tag_of
from specscope_collectors.tailing.tail import Tail

MAX_FILES = 256

MakeTail = Callable[[Path, bool], Tail]
"""(path, from its beginning) → what follows it."""


class Group:
    """Files that appear later are read from their beginning."""

    def __init__(self, pattern: str, make: MakeTail, *, from_beginning: bool = False) -> None:
        self.pattern = str(Path(pattern).expanduser().absolute())
        self._make = make
        self._from_beginning = from_beginning
        self._tails: dict[str, Tail] = {}

    def tails(self, known: Collection[str] | None) -> dict[str, Tail]:
        """Return path → tail, by name; raise ValueError for more than `MAX_FILES`.

        ``known``: paths with a stored position; None when nothing was ever stored. Files that vanished are
        still returned while they are known: what was rotated may wait to be read.
        """
        paths = sorted({*self._matches(), *(known or ())})
        if len(paths) > MAX_FILES:
            raise ValueError(f"{self.pattern} means {len(paths)} files, more than {MAX_FILES}; narrow it")
        for path in paths:
            if path not in self._tails:
                is_new = known is not None and path not in known
                self._tails[path] = self._make(Path(path), self._from_beginning or is_new)
        for path in self._tails.keys() - set(paths):
            self._tails.pop(path).close()
        return {path: self._tails[path] for path in paths}

    def close(self) -> None:
        """Close all files."""
        for tail in self._tails.values():
            tail.close()
        self._tails.clear()

    def _matches(self) -> list[str]:
        if not glob.has_magic(self.pattern):
            return [self.pattern]
        root = Path(self.pattern).anchor
        found = [str(path) for path in Path(root).glob(self.pattern[len(root) :]) if path.is_file()]
        names = {(str(Path(path).parent), Path(path).name) for path in found}
        return [path for path in found if not _is_rotated(Path(path), names)]


def _is_rotated(path: Path, names: set[tuple[str, str]]) -> bool:
    """Whether a pattern like ``*.log*`` also found what was rotated from one of the others."""
    return any(parent == str(path.parent) and tag_of(name, path.name) is not None for parent, name in names)
