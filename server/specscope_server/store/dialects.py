"""The only place with SQL that differs between engines.

Rows travel as columns (one list per column): SQLite binds them row by row, PostgreSQL takes arrays or COPY.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import date, timedelta
from typing import Any, TypeAlias

import orjson
from sqlalchemy import REAL, BigInteger, Connection, Double, Engine, LargeBinary, Table, Text, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError

from specscope_server.models import Base

Columns: TypeAlias = Sequence[Sequence[Any]]
"""One sequence per column of the table, in its order, all of the same length."""

DAY_MS = 86_400_000
PARTITIONED = ("sample", "distribution")
"""Tables with one partition per UTC day on PostgreSQL."""

DROP_LOCK_TIMEOUT = "2s"
_PARTITION_LOCK = 0x5BEC_0001
_SERVER_LOCK = 0x5BEC_0002


def is_sqlite(bind: Engine | Connection) -> bool:
    """Whether the engine is SQLite (else PostgreSQL)."""
    return bind.dialect.name == "sqlite"


def insert(bind: Engine | Connection, table: Table) -> sqlite.Insert | postgresql.Insert:
    """Return an INSERT that knows ON CONFLICT; both engines spell it alike."""
    return sqlite.insert(table) if is_sqlite(bind) else postgresql.insert(table)


def lock_server(connection: Connection, server_name: str) -> None:
    """Hold back other batches of this server until the transaction ends (SQLite has one writer anyway)."""
    if not is_sqlite(connection):
        statement = text("SELECT pg_advisory_xact_lock(:space, hashtext(:name))")
        connection.execute(statement, {"space": _SERVER_LOCK, "name": server_name})


def bulk_insert(connection: Connection, table: Table, columns: Columns) -> None:
    """Insert rows that are known to be new."""
    names = ", ".join(column.name for column in table.columns)
    if is_sqlite(connection):
        marks = ", ".join("?" * len(table.columns))
        connection.exec_driver_sql(
            f"INSERT INTO {table.name} ({names}) VALUES ({marks})", list(zip(*columns, strict=True))
        )
        return
    _copy(connection, f"COPY {table.name} ({names}) FROM STDIN", columns)


def merge(connection: Connection, table: Table, columns: Columns, updates: str) -> None:
    """Insert rows; where the primary key exists run ``updates``: ``x = old.x + new.x``, LEAST, GREATEST."""
    if not columns[0]:
        return
    key = ", ".join(column.name for column in table.primary_key.columns)
    updates = updates.replace("old.", f"{table.name}.").replace("new.", "excluded.")
    if is_sqlite(connection):
        marks = ", ".join("?" * len(table.columns))
        updates = updates.replace("LEAST(", "min(").replace("GREATEST(", "max(")
        source, parameters = f"VALUES ({marks})", list(zip(*columns, strict=True))
    else:
        arrays = ", ".join(f"%s::{_postgresql_type(column.type)}[]" for column in table.columns)
        source, parameters = f"SELECT * FROM unnest({arrays})", tuple(map(list, columns))  # type: ignore[assignment]
    names = ", ".join(column.name for column in table.columns)
    connection.exec_driver_sql(
        f"INSERT INTO {table.name} ({names}) {source} ON CONFLICT ({key}) DO UPDATE SET {updates}", parameters
    )


def latest_times(connection: Connection, series_ids: Collection[int]) -> dict[int, int]:
    """Return series id → time of its newest sample, for those that have one."""
    return {row[0]: row[1] for row in select_by_ids(connection, Base.metadata.tables["latest"], series_ids)}


def select_by_ids(
    connection: Connection, table: Table, ids: Collection[int], more: str = "", *parameters: Any
) -> list[Any]:
    """Return the rows of these series that also meet ``more``, in which ``?`` stands for each parameter.

    They are the driver's plain tuples: turning them into SQLAlchemy rows costs more than reading them.
    """
    names = ", ".join(column.name for column in table.columns)
    statement = f"SELECT {names} FROM {table.name} WHERE series_id"
    if is_sqlite(connection):
        condition, chosen = "IN (SELECT value FROM json_each(?))", orjson.dumps(list(ids)).decode()
        return _tuples(connection, f"{statement} {condition} {more}", (chosen, *parameters))
    statement = f"{statement} = ANY(%s::bigint[]) {more.replace('?', '%s')}"
    return _tuples(connection, statement, (list(ids), *parameters))


def fetch_series(
    connection: Connection, table_name: str, columns: str, series_id: int, from_ms: int, to_ms: int
) -> list[Any]:
    """Return plain tuples of one series in [from_ms, to_ms), in order of time."""
    mark = "?" if is_sqlite(connection) else "%s"
    statement = (
        f"SELECT {columns} FROM {table_name} "
        f"WHERE series_id = {mark} AND time_ms >= {mark} AND time_ms < {mark} ORDER BY time_ms"
    )
    return _tuples(connection, statement, (series_id, from_ms, to_ms))


def fetch_many(
    connection: Connection,
    table_name: str,
    columns: str,
    series_ids: Collection[int],
    from_ms: int,
    to_ms: int,
) -> list[Any]:
    """Return plain tuples (series_id, *columns) of many series in [from_ms, to_ms), in one statement; in any
    order.
    """
    chosen, ids = _these(connection, series_ids)
    mark = "?" if is_sqlite(connection) else "%s"
    statement = (
        f"SELECT series_id, {columns} FROM {table_name} "
        f"WHERE series_id {chosen} AND time_ms >= {mark} AND time_ms < {mark}"
    )
    return _tuples(connection, statement, (ids, from_ms, to_ms))


def fetch_after(connection: Connection, after_ms: Mapping[int, int]) -> list[Any]:
    """Return plain tuples (series_id, time_ms, value, span_ms) of the samples of each series after its own
    time; in any order.
    """
    wanted = "t.series_id, t.time_ms, t.value, t.span_ms"
    if is_sqlite(connection):
        # CROSS JOIN keeps the order: for each series one seek, never a scan of the table.
        source = "(SELECT value ->> 0 AS id, value ->> 1 AS after FROM json_each(?)) k CROSS JOIN sample t"
        parameters: tuple[Any, ...] = (orjson.dumps(list(after_ms.items())).decode(),)
    else:
        source = "unnest(%s::bigint[], %s::bigint[]) AS k(id, after) JOIN sample t"
        parameters = (list(after_ms), list(after_ms.values()))
    statement = f"SELECT {wanted} FROM {source} ON t.series_id = k.id AND t.time_ms > k.after"
    return _tuples(connection, statement, parameters)


def _these(connection: Connection, ids: Collection[int]) -> tuple[str, Any]:
    """Return a condition that a column is one of these, and its one parameter."""
    if is_sqlite(connection):
        return "IN (SELECT value FROM json_each(?))", orjson.dumps(list(ids)).decode()
    return "= ANY(%s::bigint[])", list(ids)


def existing_keys(connection: Connection, table: Table, columns: Columns) -> set[tuple[int, ...]]:
    """Return those of the given primary keys (columns of integers) that the table holds."""
    if not columns[0]:
        return set()
    names = [column.name for column in table.primary_key.columns]
    on = " AND ".join(f"t.{name} = k.{name}" for name in names)
    wanted = ", ".join(f"t.{name}" for name in names)
    if is_sqlite(connection):
        fields = ", ".join(f"value ->> {index} AS {name}" for index, name in enumerate(names))
        keys = orjson.dumps(list(zip(*columns, strict=True))).decode()
        # CROSS JOIN keeps the order: for each key one seek, never a scan of the table.
        source, parameters = f"(SELECT {fields} FROM json_each(?)) k CROSS JOIN {table.name} t", (keys,)
    else:
        arrays = ", ".join("%s::bigint[]" for _ in names)
        source = f"unnest({arrays}) AS k({', '.join(names)}) JOIN {table.name} t"
        parameters = tuple(map(list, columns))  # type: ignore[assignment]
    return set(_tuples(connection, f"SELECT {wanted} FROM {source} ON {on}", parameters))


def oldest_time(connection: Connection, table: Table, series_ids: Collection[int]) -> int | None:
    """Return the time of the oldest row of these series (one seek per series); None when there is none."""
    oldest = f"(SELECT min(t.time_ms) FROM {table.name} t WHERE t.series_id = k.id)"
    if is_sqlite(connection):
        ids = orjson.dumps(list(series_ids)).decode()
        source, parameters = "(SELECT value AS id FROM json_each(?)) k", (ids,)
    else:
        source, parameters = "unnest(%s::bigint[]) AS k(id)", (list(series_ids),)  # type: ignore[assignment]
    [(time_ms,)] = _tuples(connection, f"SELECT min({oldest}) FROM {source}", parameters)
    return None if time_ms is None else int(time_ms)


def partition_name(table: str, day: int) -> str:
    """Return the name of a day's partition; ``day`` counts days since the epoch."""
    return f"{table}_p{_date(day)}"


def ensure_partitions(engine: Engine, days: Collection[int]) -> None:
    """Make these days' partitions (PostgreSQL), in a short transaction, safe beside other writers."""
    if is_sqlite(engine) or not days:
        return
    with engine.begin() as connection:
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_PARTITION_LOCK})")
        have = set(partitions(connection))
        for table in PARTITIONED:
            for day in sorted(days):
                if partition_name(table, day) not in have:
                    _create_partition(connection, table, day)


def partitions(connection: Connection) -> list[str]:
    """Return the names of all daily partitions (PostgreSQL)."""
    cursor = connection.exec_driver_sql(
        "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid "
        "JOIN pg_class p ON p.oid = i.inhparent WHERE p.relname = ANY(%s) ORDER BY 1",
        (list(PARTITIONED),),
    )
    return list(cursor.scalars())


def drop_partition(connection: Connection, name: str) -> None:
    """Drop one partition; give up soon when readers hold it, so that nobody has to queue behind."""
    connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{DROP_LOCK_TIMEOUT}'")
    connection.exec_driver_sql(f"DROP TABLE IF EXISTS {name}")


def delete_oldest_of_series(
    connection: Connection, table: str, series_ids: Sequence[int], before_ms: int, most: int
) -> int:
    """Delete at most about ``most`` rows older than ``before_ms`` of each series; return how many in all."""
    oldest = f"SELECT time_ms FROM {table} WHERE series_id = ? ORDER BY time_ms LIMIT 1 OFFSET {most}"
    return _delete(
        connection,
        f"DELETE FROM {table} WHERE series_id = ? AND time_ms < ? AND time_ms < COALESCE(({oldest}), ?)",
        [(series_id, before_ms, series_id, before_ms) for series_id in series_ids],
    )


def delete_oldest_of_servers(
    connection: Connection, table: str, server_ids: Sequence[int], before_ms: int, most: int
) -> int:
    """Delete at most ``most`` rows older than ``before_ms`` of each server; return how many in all."""
    oldest = f"SELECT id FROM {table} WHERE server_id = ? AND time_ms < ? ORDER BY time_ms LIMIT {most}"
    return _delete(
        connection,
        f"DELETE FROM {table} WHERE id IN ({oldest})",
        [(server_id, before_ms) for server_id in server_ids],
    )


def _delete(connection: Connection, statement: str, parameters: Sequence[tuple[int, ...]]) -> int:
    statement = statement if is_sqlite(connection) else statement.replace("?", "%s")
    return connection.exec_driver_sql(statement, list(parameters)).rowcount


def _tuples(connection: Connection, statement: str, parameters: tuple[Any, ...]) -> list[Any]:
    """Execute and fetch plain tuples; errors are SQLAlchemy's as everywhere."""
    result = connection.exec_driver_sql(statement, parameters)
    try:
        return list(result.cursor.fetchall())
    finally:
        result.close()


def _copy(connection: Connection, statement: str, columns: Columns) -> None:
    driver_error = connection.dialect.loaded_dbapi.Error
    try:
        with connection.connection.cursor().copy(statement) as copy:
            for row in zip(*columns, strict=True):
                copy.write_row(row)
    except driver_error as error:
        raise DBAPIError.instance(statement, None, error, driver_error, dialect=connection.dialect) from error


def _create_partition(connection: Connection, table: str, day: int) -> None:
    """Create, then attach: ATTACH lets readers and writers of other days go on, PARTITION OF would not."""
    name, start = partition_name(table, day), day * DAY_MS
    connection.exec_driver_sql(f"CREATE TABLE {name} (LIKE {table} INCLUDING ALL)")
    connection.exec_driver_sql(
        f"ALTER TABLE {table} ATTACH PARTITION {name} FOR VALUES FROM ({start}) TO ({start + DAY_MS})"
    )


def _date(day: int) -> str:
    return (date(1970, 1, 1) + timedelta(days=day)).strftime("%Y%m%d")


def _postgresql_type(kind: Any) -> str:
    if isinstance(kind, BigInteger):
        return "bigint"
    if isinstance(kind, Double | REAL):
        return "double precision"
    if isinstance(kind, LargeBinary):
        return "bytea"
    if isinstance(kind, Text):
        return "text"
    raise TypeError(f"no array of {kind!r} is written in bulk")
