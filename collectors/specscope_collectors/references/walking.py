"""The files of a dump: found recursively, in the order of the numbers in their names.

Names of folders are decoration: ``rows_8000-9137`` is as good as ``rows_8000-10000``, gaps are gaps, and a
dump without folders is one, too. A file is known by its path below the dump.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from specscope_collectors.references.errors import DumpError
from specscope_collectors.references.texts import plain

SUFFIXES = tuple(
    f".{kind}{packed}" for kind in ("pt", "ckpt", "pth", "safetensors") for packed in ("", ".gz", ".zst")
)
NO_SAMPLES = re.compile(
    r"vocab_mapping|token_freq|optimizer|scheduler|training_state|rng_state", re.IGNORECASE
)
MAX_FILES = 5_000_000
LISTED = 8
_NUMBERS = re.compile(r"([0-9]+)")


def in_order(names: Iterable[str]) -> list[str]:
    """Return names with their numbers ordered by size: ``data_9`` before ``data_10``.

    Of millions of names the keys take more memory than the names, so that each is one text.
    """
    found = sorted(names)
    found.sort(key=_sort_key)
    return found


def _sort_key(text: str) -> str:
    """Return text in which a longer number stands behind a shorter one; before any other text, as its end."""
    return _NUMBERS.sub(lambda match: f"\0{len(match[0].lstrip('0')):04d}{match[0].lstrip('0')}\0", text)


def is_sample_name(name: str) -> bool:
    """Say whether a file of this name may be a sample of hidden states."""
    return name.endswith(SUFFIXES) and not NO_SAMPLES.search(name) and not name.startswith(".")


def files_of(root: Path) -> list[str]:
    """Return the files that may be samples, as paths below the root (of one file: its name), in order.

    Raises DumpError when there is no such path, which then says what there is instead.
    """
    check_exists(root)
    if root.is_file():
        return [root.name]
    found = in_order(_walk(root, ""))
    if not found:
        raise DumpError(
            f"{root} holds no file of a dump (*{', *'.join(SUFFIXES[::3])}, also .gz and .zst); it "
            f"has {listing(root)}"
        )
    return found


def path_of(root: Path, name: str) -> Path:
    """Return where a file of `files_of` is."""
    return root if root.is_file() else root / name


def _walk(root: Path, below: str) -> Iterator[str]:
    """Yield files; links to folders are not followed, folders that cannot be read end the walk in words."""
    pending, count = [below], 0
    while pending:
        folder = pending.pop()
        try:
            with os.scandir(root / folder) as entries:
                for entry in entries:
                    name = f"{folder}/{entry.name}" if folder else entry.name
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(name)
                    elif is_sample_name(entry.name) and _may_be_file(entry):
                        count += 1
                        if count > MAX_FILES:
                            raise DumpError(f"{root} holds over {MAX_FILES} files; name a part of it")
                        yield name
        except OSError as error:
            raise DumpError(f"{root / folder} cannot be read: {error.strerror or error}") from None


def _may_be_file(entry: os.DirEntry[str]) -> bool:
    """Say whether to open it: what cannot be looked at, as a link to itself, is refused when it is opened."""
    try:
        return entry.is_file()
    except OSError:
        return True


def beginning_of(path: Path, limit: int) -> bytes:
    """Return up to this many bytes of a regular file: a pipe or a device might be waited for without end.
    Raises OSError, DumpError.
    """
    check_regular(path)
    with path.open("rb") as file:
        return file.read(limit)


def check_regular(path: Path) -> None:
    """Raise DumpError for what is no regular file, and OSError."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise DumpError(f"{path} is no regular file (a folder, a pipe or a device); name a file")


def check_exists(path: Path) -> None:
    """Raise DumpError for a path that is not there; it says what is there instead."""
    try:
        if path.exists():
            return
        if path.is_symlink():
            raise DumpError(f"{path} is a link that leads to no file; name the file itself")
        parent = path.parent
        while not parent.is_dir() and parent != parent.parent:
            parent = parent.parent
    except OSError as error:
        raise DumpError(f"{path} cannot be read: {error.strerror or error}") from None
    raise DumpError(f"{path} is not there; in {parent} there is {listing(parent)}")


def listing(folder: Path) -> str:
    """Return what a folder holds, in words: the first names, and how many more."""
    try:
        with os.scandir(folder) as entries:
            names = in_order(f"{entry.name}/" if _is_folder(entry) else entry.name for entry in entries)
    except OSError as error:
        return f"nothing that can be read ({error.strerror or error})"
    if not names:
        return "nothing"
    shown = ", ".join(plain(name[:80]) for name in names[:LISTED])
    return f"{shown} and {len(names) - LISTED} more" if len(names) > LISTED else shown


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to itself
        return False
