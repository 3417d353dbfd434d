"""Check and write profiles of hidden states."""

from __future__ import annotations

import math
from collections.abc import Sequence
from hashlib import sha256

import msgspec
import zstandard
from sqlalchemy import Connection

from specscope_collectors.observations import LnNorms
from specscope_collectors.observations import StateProfile as ProfileRecord
from specscope_server.models import StateProfile
from specscope_server.store import dialects
from specscope_server.store.identity import canonical
from specscope_server.store.limits import MAX_INTEGER, label_reason, number_reason, text_reason, time_reason
from specscope_server.store.refusal import Reason

FLOAT_BYTES = 4
BIN_WIDTH = 0.02
"""Of every profile, as the contract has it: bins of unequal widths could not be added up."""
FARTHEST_BIN = 49_999
"""From 0 either way: any profiles added up span fewer bins than readers have room for (100,000)."""
MAX_HIDDEN_SIZE, MAX_TOKEN_IDS, MAX_PROJECTION, MAX_BINS = 65_536, 1_024, 65_536, 20_000
PHASES = frozenset({"prefill", "verify_accepted", "verify_rejected", "calibration"})
ROW_CLASSES = frozenset({"head", "sink", "other"})


def profile_reason(record: ProfileRecord, oldest_ms: int, now_ms: int) -> Reason | None:
    """Return why a profile is refused: its sums and its arrays must agree with each other."""
    return (
        text_reason(record.phase, record.row_class, record.projection)
        or label_reason(record.labels)
        or number_reason(record.rows, record.requests, record.slot, record.boundary)
        or time_reason(record.time_ms, oldest_ms, now_ms)
        or (Reason.BAD_SPAN if record.span_ms <= 0 else None)
        or (Reason.BAD_PROFILE if not _is_possible(record) else None)
    )


def _is_possible(record: ProfileRecord) -> bool:
    if record.phase not in PHASES or record.row_class not in ROW_CLASSES:
        return False
    if not 0 < record.hidden_size <= MAX_HIDDEN_SIZE or record.rows <= 0 or record.requests > record.rows:
        return False
    if record.new_requests is not None and not 0 <= record.new_requests <= record.requests:
        return False
    channels = (record.direction_sum, record.direction_sum_of_squares, record.sum_of_squares)
    if any(array and len(array) != FLOAT_BYTES * record.hidden_size for array in channels):
        return False
    if any(not 0 <= count <= MAX_INTEGER for count in record.invariants.values()):
        return False
    return _norms_are_possible(record.ln_norms, record.rows) and _tokens_are_possible(record)


def _norms_are_possible(norms: LnNorms, rows: int) -> bool:
    """Σ over bins are the rows with a norm, and bounds hold what lies between them."""
    numbers = (norms.sum, norms.sum_of_squares, norms.minimum, norms.maximum, norms.bin_width)
    if not all(math.isfinite(number) for number in numbers) or len(norms.bins) > MAX_BINS:
        return False
    if any(abs(place) > FARTHEST_BIN for place in norms.bins):
        return False
    if norms.bin_width != BIN_WIDTH or any(count <= 0 for count in norms.bins.values()):
        return False
    counted = sum(norms.bins.values())
    return counted <= rows and (counted == 0 or norms.minimum <= norms.maximum)


def _tokens_are_possible(record: ProfileRecord) -> bool:
    """One count and one vector for each token id, and no more rows than there are."""
    ids, rows = record.token_ids, record.token_rows
    if len(ids) != len(rows) or len(ids) > MAX_TOKEN_IDS or len(set(ids)) != len(ids):
        return False
    if any(token < 0 for token in ids) or any(count <= 0 for count in rows) or sum(rows) > record.rows:
        return False
    if not record.token_directions:
        return True
    size, rest = divmod(len(record.token_directions), FLOAT_BYTES * len(ids)) if ids else (0, 1)
    return rest == 0 and 0 < size <= MAX_PROJECTION


def write_profiles(
    connection: Connection, server_id: int, launch_id: int | None, records: Sequence[ProfileRecord]
) -> None:
    """Add profiles; one that is there already (same place, same time) changes nothing."""
    rows = [_row(server_id, launch_id, record) for record in records]
    if rows:
        statement = dialects.insert(connection, StateProfile.__table__).on_conflict_do_nothing()  # type: ignore[arg-type]
        connection.execute(statement, rows)


def read_body(body: bytes) -> ProfileRecord:
    """Return the record that `write_profiles` was given."""
    return msgspec.msgpack.decode(zstandard.ZstdDecompressor().decompress(body), type=ProfileRecord)


def _row(server_id: int, launch_id: int | None, record: ProfileRecord) -> dict[str, object]:
    names = (
        "time_ms",
        "span_ms",
        "phase",
        "row_class",
        "slot",
        "boundary",
        "hidden_size",
        "rows",
        "requests",
    )
    labels = canonical(record.labels)
    place = [server_id, launch_id, record.phase, record.row_class, record.slot, record.boundary, labels]
    return {
        "server_id": server_id,
        "launch_id": launch_id,
        "identity": sha256(canonical(place).encode()).hexdigest()[:40],
        "labels": labels,
        **{name: getattr(record, name) for name in names},
        "body": zstandard.ZstdCompressor(level=3).compress(msgspec.msgpack.encode(record)),
    }
