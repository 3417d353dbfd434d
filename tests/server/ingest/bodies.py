"""Bodies as collectors push them."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from typing import Any

import msgspec
import zstandard
from tests.server.client import Web
from tests.server.seed import NOW

from specscope_collectors.observations import Batch, Increment, Launch, Observation, Target

TARGET = Target(name="gpu1:30000", base_url="http://gpu1:30000")
MSGPACK = {"content-type": "application/msgpack"}


def make_batch(sequence: int, *more: Observation, collector: str = "watch:a#1", **fields: Any) -> Batch:
    """Return a batch whose growth is its sequence."""
    time_ms = NOW - 3_600_000 + sequence * 1_000
    growth = Increment(
        metric="spec.verify_calls", labels={"c": collector}, time_ms=time_ms, span_ms=1_000, value=sequence
    )
    return Batch(
        collector_id=collector,
        sequence=sequence,
        observations=(Launch(key="a", time_ms=NOW - 3_600_000, engine="sglang"), growth, *more),
        **{"target": TARGET, "launch_key": "a", **fields},
    )


def packed(batches: Sequence[Batch]) -> bytes:
    return msgspec.msgpack.encode(list(batches))


def frames(batches: Sequence[Batch]) -> bytes:
    """Return a body as the spool sends it: the head of the list and each batch are frames of their own."""
    parts = [b"\xdd" + len(batches).to_bytes(4, "big"), *(msgspec.msgpack.encode(each) for each in batches)]
    return b"".join(zstandard.ZstdCompressor().compress(part) for part in parts)


def encoded(content: bytes, encoding: str) -> bytes:
    if encoding == "zstd":
        return zstandard.ZstdCompressor().compress(content)
    return gzip.compress(content) if encoding == "gzip" else content


def push(web: Web, content: bytes, **headers: str) -> Any:
    """Return the answer to a body; keyword names become headers with dashes."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return web.request("POST", "/api/v1/ingest", content=content, headers=MSGPACK | named)
