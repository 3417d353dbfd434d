"""Take captures in: reduce the files, store what they say, and keep the files where that is set."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from sqlalchemy import Engine, select
from sqlalchemy.orm import Session

from specscope_collectors.observations import Target, TraceSummary
from specscope_collectors.traces.bounds import Bounds, TraceError
from specscope_collectors.traces.opening import CaptureFiles, is_tar, members
from specscope_collectors.traces.reading import ReadFile, read_file
from specscope_collectors.traces.summary import summarise
from specscope_server.kit.errors import InvalidInput
from specscope_server.models import Server
from specscope_server.settings import Settings
from specscope_server.store.limits import BEGINNING_MS
from specscope_server.store.trace_writer import store_trace, trace_reason
from specscope_server.traces.keeping import keep

IMPORTED = "imported trace"
"""Base URL of a server that is known from its traces alone."""
MAX_TEXT = 500
UPLOAD_BOUNDS = Bounds(max_bytes=4 * 1024**3)
Open = Callable[[Path], IO[bytes]]


@dataclass(frozen=True, slots=True)
class Told:
    """What the user says about a capture."""

    server: str
    name: str | None = None
    note: str = ""

    def __post_init__(self) -> None:
        """Raise `InvalidInput` for what is no name or no text."""
        for field, text in (("server", self.server), ("name", self.name or "-"), ("note", self.note or "-")):
            if not text.strip() or len(text) > MAX_TEXT or not text.isprintable():
                raise InvalidInput(f"{field}={text[:60]!r}: use 1 to {MAX_TEXT} printable characters")


def reduce_files(files: CaptureFiles, told: Told, now_ms: int, open_: Open, bounds: Bounds) -> TraceSummary:
    """Return what the files of a capture say. Raises `TraceError`, OSError."""
    time_ms = min(round(path.stat().st_mtime * 1000) for path in files.paths)
    name = told.name or files.name
    return summarise(_read(files.paths, open_, bounds), name, now_ms, told.note, time_ms)


def _read(paths: Sequence[Path], open_: Open, bounds: Bounds) -> Iterator[ReadFile]:
    for path in paths:
        with open_(path) as stream:
            yield read_file(stream, path.name, bounds)


def reduce_upload(file: IO[bytes], file_name: str, told: Told, now_ms: int) -> TraceSummary:
    """Return what an uploaded trace, or a tar archive of the traces of one capture, says.

    Raises `InvalidInput`.
    """
    beginning = file.read(512)
    file.seek(0)
    try:
        return summarise(_read_upload(file, file_name, beginning), told.name or file_name, now_ms, told.note)
    except TraceError as error:
        raise InvalidInput(str(error)) from None


def _read_upload(file: IO[bytes], file_name: str, beginning: bytes) -> Iterator[ReadFile]:
    if not is_tar(beginning):
        yield read_file(file, file_name, UPLOAD_BOUNDS)
        return
    for name, stream in members(file):
        yield read_file(stream, name, UPLOAD_BOUNDS)


def store(engine: Engine, told: Told, record: TraceSummary, now_ms: int) -> tuple[int, bool]:
    """Store a capture; return its id and whether it is new. Raises `InvalidInput` for one that cannot be."""
    reason = trace_reason(record, BEGINNING_MS, now_ms)
    if reason is not None:
        raise InvalidInput(
            f"{record.name[:80]}: the store refuses it ({reason}); check the clocks and the files"
        )
    return store_trace(
        engine, Target(name=told.server, base_url=_base_url(engine, told.server)), record, now_ms
    )


def _base_url(engine: Engine, server: str) -> str:
    """Return the server's address if it is known already: an import must not change it."""
    with Session(engine) as session:
        return session.scalar(select(Server.base_url).where(Server.name == server)) or IMPORTED


def keep_upload(settings: Settings, record: TraceSummary, file: IO[bytes]) -> bool:
    """Keep an uploaded file, or each of an archive."""
    file.seek(0)
    beginning = file.read(512)
    file.seek(0)
    files: Sequence[tuple[str, IO[bytes]]]
    files = list(members(file)) if is_tar(beginning) else [(record.files[0].name, file)]
    return keep(settings.trace_folder, settings.trace_folder_max_bytes, record.key, files)


def keep_files(settings: Settings, record: TraceSummary, files: CaptureFiles) -> bool:
    """Keep the files of a capture on this host."""
    named = [(path.name, path) for path in files.paths]
    return keep(settings.trace_folder, settings.trace_folder_max_bytes, record.key, named)
