"""Which files make up one capture, from files, folders and tar archives."""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import IO

from specscope_collectors.traces.bounds import TraceError
from specscope_collectors.traces.names import ENDINGS, rank_of_file, stage_of_file

MAX_FILES = 2_048
_MERGED = re.compile(r"^merged-(.+)$")
_RANKS = re.compile(r"(?:^|-)(?:TP|DP|PP|EP)-\d+.*$")
TAR_OFFSET, TAR_MAGIC = 257, b"ustar"


@dataclass(frozen=True, slots=True)
class CaptureFiles:
    """The files of one capture."""

    name: str
    paths: tuple[Path, ...]


def captures(paths: Sequence[Path]) -> list[CaptureFiles]:
    """Return the captures that the files belong to; folders stand for the traces in them.

    SGLang begins the names of one capture alike; by stage, prefill and decode are captures of their own. A
    merged file is left out when the files that it was merged from are there. Raises `TraceError`, OSError.
    """
    groups: dict[tuple[str, str], list[Path]] = {}
    for path in _files(paths):
        groups.setdefault(_capture_of(path.name), []).append(path)
    parts = {key[0] for key in groups}
    for key in list(groups):
        merged = _MERGED.match(key[0])
        if merged and merged.group(1) in parts:
            del groups[key]
    return [
        CaptureFiles(" ".join(part for part in key if part) or found[0].name, tuple(found))
        for key, found in sorted(groups.items())
    ]


def _files(paths: Sequence[Path]) -> list[Path]:
    found: list[Path] = []
    for path in paths:
        if not path.is_dir():
            found.append(path)
            continue
        inside = sorted(each for each in path.iterdir() if each.name.endswith(ENDINGS) and each.is_file())
        if not inside:
            raise TraceError(
                f"{path}: the folder holds no *.json or *.json.gz; name the folder of the traces"
            )
        found += inside
    if len(found) > MAX_FILES:
        raise TraceError(f"these are {len(found)} files; name at most {MAX_FILES}")
    return list(dict.fromkeys(found))


def _capture_of(name: str) -> tuple[str, str]:
    """Return (what the names of a capture have in common, stage)."""
    if not rank_of_file(name):
        stem = name.removesuffix(".gz").removesuffix(".json").removesuffix(".trace")
        return (stem, "") if _MERGED.match(stem) else ("", "")
    return _RANKS.sub("", PurePath(name).name), stage_of_file(name)


def is_tar(beginning: bytes) -> bool:
    """Whether a file that begins so is a tar archive."""
    return beginning[TAR_OFFSET : TAR_OFFSET + len(TAR_MAGIC)] == TAR_MAGIC


def members(archive: IO[bytes]) -> Iterator[tuple[str, IO[bytes]]]:
    """Yield (name without its folders, open file) of the traces in a tar archive, without unpacking it.

    Raises `TraceError`.
    """
    count = 0
    try:
        with tarfile.open(fileobj=archive, mode="r:") as tar:
            for member in tar:
                name = PurePath(member.name).name
                if not member.isfile() or not name.endswith(ENDINGS):
                    continue
                count += 1
                if count > MAX_FILES:
                    raise TraceError(f"the archive holds more than {MAX_FILES} traces; send one capture")
                stream = tar.extractfile(member)
                if stream is not None:
                    yield name, stream
    except (tarfile.TarError, EOFError) as error:
        raise TraceError(f"the tar archive is damaged ({error}); make it anew") from None
