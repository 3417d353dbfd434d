"""The files that a followed path has become: which they are, and in which order they were written."""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass
from pathlib import Path

from specscope_collectors.tailing.contents import OpenFile

MAX_FILES = 200
_EMPTY_GZIP_BYTES = 300
"""More than gzip makes of nothing, the longest file name included."""
_UNREADABLE = (".bz2", ".xz", ".zst", ".lz4", ".Z", ".zip")
_DIGITS_OF_A_DAY = 6
"""Fewer between the name and its suffix are a rank's number, not a day."""
_MOMENT = re.compile(r"[0-9][0-9T:._\-]*")


@dataclass(frozen=True, slots=True)
class Found:
    """One file of a rotation."""

    path: Path
    identity: tuple[int, int]
    modified_ns: int
    size: int


def listed(path: Path) -> list[Found]:
    """Return the rotated files of ``path``, oldest first, and ``path`` itself (if it is there) at the end.

    Rotated files without a byte in them are left out: nothing tells them apart.

    Raises OSError when the directory cannot be listed.
    """
    siblings: dict[str, Found] = {}
    for sibling in path.parent.iterdir():
        tag = tag_of(path.name, sibling.name)
        found = _found(sibling) if tag is not None else None
        if tag is not None and found is not None and not _is_empty(found):
            siblings[tag] = found
    plain = [(tag, found) for tag, found in siblings.items() if not _is_twin(tag, siblings)]
    newest = _ordered(plain)[-MAX_FILES:]
    own = _found(path)
    return newest if own is None else [*newest, own]


def unreadable(path: Path) -> list[str]:
    """Return names of rotated files that are compressed in a way that is not read."""
    try:
        names = [sibling.name for sibling in path.parent.iterdir()]
    except OSError:
        return []
    return sorted(name for name in names if name.startswith(path.name) and name.endswith(_UNREADABLE))


def tag_of(name: str, other: str) -> str | None:
    """Return what a rotation added to ``name`` to make ``other`` (``1``, ``20261129.gz``); None = no such."""
    if other == name or other.endswith(_UNREADABLE):
        return None
    if other.startswith((f"{name}.", f"{name}-", f"{name}_")):
        return other[len(name) + 1 :]
    stem, dot, suffix = name.rpartition(".")
    end = f"{dot}{suffix}"
    bare = other.removesuffix(".gz")
    if stem and bare.startswith((f"{stem}.", f"{stem}-", f"{stem}_")) and bare.endswith(end):
        tag = bare[len(stem) + 1 : -len(end)]
        if _MOMENT.fullmatch(tag) and sum(map(str.isdecimal, tag)) >= _DIGITS_OF_A_DAY:
            return tag + other[len(bare) :]
    return None


def _found(path: Path) -> Found | None:
    try:
        status = path.stat()
    except OSError:  # renamed since it was listed
        return None
    return Found(path, (status.st_dev, status.st_ino), status.st_mtime_ns, status.st_size)


def _is_empty(found: Found) -> bool:
    if found.size > _EMPTY_GZIP_BYTES or not found.path.name.endswith(".gz"):
        return not found.size
    try:
        with contextlib.closing(OpenFile(found.path)) as opened:
            return not opened.read_at(0, 1)
    except OSError:
        return False


def _is_twin(tag: str, tags: dict[str, Found]) -> bool:
    """Whether this is the compressed file in the making of one that is still there."""
    return tag.endswith(".gz") and tag.removesuffix(".gz") in tags


def _ordered(siblings: list[tuple[str, Found]]) -> list[Found]:
    """Sort by number (highest is oldest) or by moment; by the time of writing where names do not tell."""
    bare = [tag.removesuffix(".gz") for tag, _ in siblings]
    if all(tag.isdecimal() and len(tag) <= 5 for tag in bare):
        pairs = sorted(siblings, key=lambda pair: -int(pair[0].removesuffix(".gz")))
    elif all(_MOMENT.fullmatch(tag) and len(tag) > 5 for tag in bare):
        pairs = sorted(siblings, key=lambda pair: pair[0].removesuffix(".gz"))
    else:
        pairs = sorted(siblings, key=lambda pair: (pair[1].modified_ns, pair[0]))
    return [found for _, found in pairs]
