"""By what a log is known again: its first 16 kB, or what there was of it when it was imported."""

from __future__ import annotations

import hashlib

import msgspec
from sqlalchemy import Engine, select

from specscope_collectors.logs.options import launch_name
from specscope_server.models import Collector

IDENTITY_BYTES = 16_384
"""A file is known again by its beginning, so that it may have grown, or been compressed, since."""
SMALLEST_BYTES = 64
"""Less than that says nothing of what file it is."""


class Beginning(msgspec.Struct, frozen=True, array_like=True, tag="import"):
    """What is remembered of an imported log, as the checkpoint of its batches."""

    told: bytes
    """Digest of what the user said about it: read in another zone it is another log."""
    size: int
    digest: bytes
    fingerprint: str
    """Names the launch of lines before the first dump of arguments."""


def beginning_of(told: bytes, data: bytes) -> Beginning:
    """Return what to remember of a log that begins with ``data``."""
    return Beginning(
        hashlib.sha256(told).digest(), len(data), hashlib.sha256(data).digest(), launch_name(data)
    )


def known_as(engine: Engine, prefix: str, now: Beginning, data: bytes) -> tuple[str, Beginning] | None:
    """Return the collector id and the beginning of a shorter log that this one has grown from."""
    query = select(Collector.id, Collector.checkpoint).where(
        Collector.id.startswith(prefix), Collector.checkpoint.is_not(None)
    )
    best: tuple[str, Beginning] | None = None
    with engine.connect() as connection:
        for collector_id, checkpoint in connection.execute(query):
            before = _decoded(checkpoint)
            if before is None or before.told != now.told or not SMALLEST_BYTES <= before.size <= len(data):
                continue
            is_longer = best is None or before.size > best[1].size
            if is_longer and hashlib.sha256(data[: before.size]).digest() == before.digest:
                best = collector_id, before
    return best


def _decoded(checkpoint: bytes | None) -> Beginning | None:
    try:
        return msgspec.msgpack.decode(checkpoint or b"", type=Beginning)
    except msgspec.MsgspecError:  # of a log that is followed
        return None
