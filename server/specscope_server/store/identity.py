"""Servers and launches: made on first sight, found again afterwards."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import orjson
from sqlalchemy import Connection, select, update

from specscope_collectors.observations import Launch as LaunchRecord
from specscope_collectors.observations import Target
from specscope_server.models import Launch, Server
from specscope_server.store import dialects
from specscope_server.store.limits import BEGINNING_MS, number_reason, text_reason, time_reason
from specscope_server.store.refusal import Reason

UNKNOWN_ENGINE = "unknown"
"""Engine of a launch that measurements speak of before its configuration has arrived."""
MAX_CONFIG_CHARACTERS = 1_000_000


def canonical(value: Any) -> str:
    """Return JSON with sorted keys: equal things have equal text, and any text can be stored."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS).decode()
    except TypeError:  # integers beyond 64 bits, half surrogate pairs, objects of other kinds
        return json.dumps(value, sort_keys=True, default=str)


def upsert_server(connection: Connection, target: Target, now_ms: int) -> int:
    """Return the server's id; make it, or note a changed URL."""
    row = connection.execute(
        select(Server.id, Server.base_url).where(Server.name == target.name)
    ).one_or_none()
    if row is None:
        values = {"name": target.name, "base_url": target.base_url, "created_ms": now_ms, "last_seen_ms": 0}
        statement = dialects.insert(connection, Server.__table__).values(values).returning(Server.id)  # type: ignore[arg-type]
        return int(connection.execute(statement).scalar_one())
    # who follows a log or a directory knows no address, and must not take away the one that is known
    if row.base_url != target.base_url and "://" in target.base_url:
        connection.execute(update(Server).where(Server.id == row.id).values(base_url=target.base_url))
    return int(row.id)


def upsert_launch(connection: Connection, server_id: int, record: LaunchRecord) -> int:
    """Return the launch's id. Sending a launch again changes nothing but when it was first seen, and the
    version where nobody knew it, or the same witness has come to know it better.
    """
    where = (Launch.server_id == server_id) & (Launch.key == record.key)
    row = connection.execute(
        select(Launch.id, Launch.engine, Launch.version_source, Launch.first_seen_ms).where(where)
    ).one_or_none()
    if row is None:
        values = {"server_id": server_id, "first_seen_ms": record.time_ms, "last_seen_ms": record.time_ms}
        statement = dialects.insert(connection, Launch.__table__).values(values | _launch_values(record))  # type: ignore[arg-type]
        return int(connection.execute(statement.returning(Launch.id)).scalar_one())
    changes: dict[str, Any] = {"first_seen_ms": min(row.first_seen_ms, record.time_ms)}
    if row.engine == UNKNOWN_ENGINE:
        changes |= _launch_values(record)
    elif record.engine_version and row.version_source in (None, record.version_source):
        changes |= {"engine_version": record.engine_version, "version_source": record.version_source}
    connection.execute(update(Launch).where(Launch.id == row.id).values(changes))
    return int(row.id)


def placeholder(key: str, time_ms: int) -> LaunchRecord:
    """Return what is known of a launch whose configuration was lost on the way: only that it was."""
    return LaunchRecord(key=key, time_ms=time_ms, engine=UNKNOWN_ENGINE, reason="configuration not received")


def _launch_values(record: LaunchRecord) -> dict[str, Any]:
    plain = ("key", "reason", "engine", "engine_version", "version_source", "model", "served_model_name")
    more = ("dtype", "quantization", "kv_cache_dtype", "is_demo")
    return {
        **{name: getattr(record, name) for name in (*plain, *more)},
        **msgspec.structs.asdict(record.speculative),
        **msgspec.structs.asdict(record.parallelism),
        "environment": canonical(record.environment),
        "config": canonical(record.config),
    }


def launch_reason(record: LaunchRecord, oldest_ms: int, now_ms: int) -> Reason | None:
    """Return why a launch is refused."""
    values = _launch_values(record)
    config = (values.pop("environment"), values.pop("config"))
    if sum(map(len, config)) > MAX_CONFIG_CHARACTERS:
        return Reason.TOO_LARGE
    texts = [value for value in values.values() if isinstance(value, str)]
    numbers = [value for value in values.values() if isinstance(value, int)]
    # A launch may well be older than the oldest sample that is kept.
    return text_reason(*texts) or number_reason(*numbers) or time_reason(record.time_ms, BEGINNING_MS, now_ms)
