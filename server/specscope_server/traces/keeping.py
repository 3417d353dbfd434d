"""Keep the original files of captures in a bounded folder, one folder for each capture."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import structlog

log = structlog.get_logger(__name__)
_KEY = re.compile(r"^[0-9a-f]{16,64}$")
_PLAIN = re.compile(r"[^A-Za-z0-9._+=-]")
MAX_NAME = 150


def safe_name(name: str) -> str:
    """Return a file's name without anything that could lead elsewhere."""
    return _PLAIN.sub("_", name)[-MAX_NAME:].lstrip(".") or "trace.json.gz"


def path_of(folder: Path | None, key: str, name: str) -> Path | None:
    """Return where a file of a capture is kept; None when it is not."""
    if folder is None or not _KEY.match(key):
        return None
    path = folder / key / safe_name(name)
    return path if path.is_file() and not path.is_symlink() else None


def keep(
    folder: Path | None, max_bytes: int, key: str, files: Sequence[tuple[str, IO[bytes] | Path]]
) -> bool:
    """Copy the files of a capture; False when they are not kept (no folder, no room, no right to write)."""
    if folder is None or not _KEY.match(key):
        return False
    target = folder / key
    try:
        target.mkdir(parents=True, exist_ok=True)
        for name, source in files:
            _copy(source, target / safe_name(name))
        _make_room(folder, max_bytes, target)
    except OSError as error:
        log.warning("a trace is not kept", folder=str(folder), reason=str(error))
        shutil.rmtree(target, ignore_errors=True)
        return False
    return target.exists()


def _copy(source: IO[bytes] | Path, target: Path) -> None:
    partial = target.with_name(f"{target.name}.partial")
    with partial.open("wb") as out:
        if isinstance(source, Path):
            with source.open("rb") as stream:
                shutil.copyfileobj(stream, out, 1_048_576)
        else:
            shutil.copyfileobj(source, out, 1_048_576)
    partial.replace(target)


def _make_room(folder: Path, max_bytes: int, newest: Path) -> None:
    """Remove the oldest captures beyond the bound; the newest goes too when it alone is over it."""
    kept = [each for each in folder.iterdir() if each.is_dir() and _KEY.match(each.name)]
    kept.sort(key=lambda each: (each != newest, -each.stat().st_mtime))
    total = 0
    for each in kept:
        total += sum(file.stat().st_size for file in each.iterdir() if file.is_file())
        if total > max_bytes:
            shutil.rmtree(each, ignore_errors=True)
