"""Batches that the server will never take: kept for people to look at, so that the others go on."""

from __future__ import annotations

import contextlib
from pathlib import Path

from specscope_collectors.spool import Spool
from specscope_collectors.spool_memory import Waiting
from specscope_collectors.spool_notices import Notice
from specscope_collectors.spool_sink import COLLECTOR_ID as NOTICES

FOLDER = "set-aside"
MOST_FILES = 200
MOST_BYTES = 64 * 1024 * 1024


def set_aside(spool: Spool, waiting: Waiting, reason: str) -> None:
    """Write the batch to a file of its own (zstd, MessagePack), say so, and go on without it."""
    entry = waiting.entry
    path = spool.folder / FOLDER / f"{waiting.number:020d}.msgpack.zst"
    where = f"kept as {path}"
    try:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(entry.body)
        _keep_small(path.parent)
    except OSError as error:
        where = f"not kept ({error.strerror})"
    message = f"a batch of this server was set aside, since the server cannot apply it: {reason}"[:1_000]
    detail = {"collector": entry.collector_id, "sequence": entry.sequence, "spooled_ms": waiting.time_ms}
    spool.counts.set_aside += 1
    if entry.collector_id != NOTICES:  # one about a notice would be set aside like it, and so on for ever
        spool.note(Notice("batch_set_aside", f"{message} ({where})", entry.target, detail))
    spool.acknowledge(waiting.number)


def _keep_small(folder: Path) -> None:
    """Remove the oldest files beyond what is kept."""
    files = sorted(folder.glob("*.msgpack.zst"), reverse=True)
    total = 0
    for at, path in enumerate(files):
        total += path.stat().st_size
        if at >= MOST_FILES or (at and total > MOST_BYTES):
            with contextlib.suppress(OSError):
                path.unlink()
