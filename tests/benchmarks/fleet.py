"""Make a fleet of one watched server: every row about it is copied, under other ids (SQLite)."""

from __future__ import annotations

from sqlalchemy import Connection, Engine

from specscope_server.models import Base

ROOM = {"server": 1_000, "launch": 10_000, "series": 1_000_000}
"""Ids that each server of the fleet has for itself."""
OTHERS = 100_000_000
OWNERS = {f"{name}_id": name for name in ROOM}
UNIQUE = ("name", "key", "identity", "base_url")
"""Columns of text that no two servers share."""


def multiply(engine: Engine, servers: int) -> None:
    """Copy what a store holds of its only server, until it holds so many."""
    with engine.begin() as connection:
        connection.exec_driver_sql("PRAGMA defer_foreign_keys = ON")
        for number in range(1, servers):
            for table in ("server", "launch", "series", *_about_servers()):
                _copy(connection, table, number)


def _about_servers() -> list[str]:
    tables = Base.metadata.sorted_tables
    return [
        table.name for table in tables
        if table.name not in ROOM and OWNERS.keys() & {column.name for column in table.columns}
    ]  # fmt: skip


def _copy(connection: Connection, table: str, number: int) -> None:
    columns = [column.name for column in Base.metadata.tables[table].columns]
    chosen = ", ".join(_copied(table, column, number) for column in columns)
    names = ", ".join(f'"{column}"' for column in columns)
    owner = (
        "id"
        if table in ROOM
        else next(one for one in ("server_id", "series_id", "launch_id") if one in columns)
    )
    room = ROOM[table if owner == "id" else OWNERS[owner]]
    connection.exec_driver_sql(
        f"INSERT INTO {table} ({names}) SELECT {chosen} FROM {table} WHERE {owner} < {room}"
    )


def _copied(table: str, column: str, number: int) -> str:
    if column == "id":
        return f"id + {number * ROOM.get(table, OTHERS)}"
    if column in OWNERS:
        return f"{column} + {number * ROOM[OWNERS[column]]}"
    return f"\"{column}\" || '/{number}'" if column in UNIQUE else f'"{column}"'
