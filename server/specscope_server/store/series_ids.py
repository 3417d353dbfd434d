"""Series ids: made on first sight, remembered after the commit."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from sqlalchemy import Connection, func, select

from specscope_collectors.observations import Labels
from specscope_server.models import Series
from specscope_server.store import dialects
from specscope_server.store.chunks import chunks
from specscope_server.store.identity import canonical
from specscope_server.store.scalars import SeriesKey

CacheKey: TypeAlias = tuple[object, ...]


def series_identity(server_id: int, launch_id: int | None, metric: str, labels: Labels) -> str:
    """Return the hash that makes a series unique, also where there is no launch."""
    return hashlib.sha256(canonical([server_id, launch_id, metric, labels]).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Owner:
    """Whom the series of one batch belong to."""

    server_id: int
    launch_id: int | None

    def launch_of(self, key: SeriesKey) -> int | None:
        """Return the launch that a series belongs to; None for series about the server itself."""
        return self.launch_id if key.of_launch else None


class SeriesCache:
    """(server, launch, metric, labels as sent) → id of series whose row is committed.

    Labels sent in another order are another entry of the same id: cheaper than sorting them every time.
    """

    def __init__(self, capacity: int = 100_000) -> None:
        self.capacity = capacity
        self._ids: dict[CacheKey, int] = {}

    def get(self, key: CacheKey) -> int | None:
        """Return the id if remembered."""
        return self._ids.get(key)

    def remember(self, found: Mapping[CacheKey, int]) -> None:
        """Add ids; call it only after the commit of the transaction that made them. Full: starts anew."""
        if len(self._ids) + len(found) > self.capacity:
            self._ids = {}
        self._ids.update(found)


def count_series(connection: Connection, server_id: int, launch_id: int | None) -> int:
    """Return how many series a launch has (None: how many the server itself has)."""
    statement = select(func.count()).select_from(Series)
    statement = statement.where(Series.server_id == server_id, Series.launch_id == launch_id)
    return int(connection.execute(statement).scalar_one())


def _find(connection: Connection, identities: Sequence[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for part in chunks(identities):
        statement = select(Series.identity, Series.id).where(Series.identity.in_(part))
        found.update((identity, series_id) for identity, series_id in connection.execute(statement))
    return found


class SeriesIds:
    """Finds or makes the ids of the series of a batch.

    ``learnt`` holds what this transaction found; the caller commits and then has it remembered.
    """

    def __init__(self, cache: SeriesCache, max_series_per_launch: int) -> None:
        self._cache = cache
        self._limit = max_series_per_launch
        self.learnt: dict[CacheKey, int] = {}

    def resolve(self, connection: Connection, owner: Owner, keys: Sequence[SeriesKey]) -> list[int | None]:
        """Return one id per key; None where the launch has as many series as it may have."""
        cache_keys = [self._cache_key(owner, key) for key in keys]
        ids = [self._cache.get(cache_key) for cache_key in cache_keys]
        unknown = [index for index, series_id in enumerate(ids) if series_id is None]
        for of_launch in (True, False):
            chosen = [index for index in unknown if keys[index].of_launch is of_launch]
            if not chosen:
                continue
            rows = {index: _row(owner, keys[index]) for index in chosen}
            found = self._find_or_make(connection, rows.values())
            for index in chosen:
                ids[index] = found.get(rows[index]["identity"])
        learnt = ((cache_keys[index], ids[index]) for index in unknown)
        self.learnt |= {cache_key: series_id for cache_key, series_id in learnt if series_id is not None}
        return ids

    def _find_or_make(self, connection: Connection, rows: Iterable[dict[str, Any]]) -> dict[str, int]:
        wanted = {row["identity"]: row for row in rows}
        found = _find(connection, list(wanted))
        missing = [row for identity, row in wanted.items() if identity not in found]
        if missing:
            have = count_series(connection, missing[0]["server_id"], missing[0]["launch_id"])
            missing = missing[: max(0, self._limit - have)]
        if missing:
            statement = dialects.insert(connection, Series.__table__).on_conflict_do_nothing()  # type: ignore[arg-type]
            connection.execute(statement, missing)
            found |= _find(connection, [row["identity"] for row in missing])
        return found

    @staticmethod
    def _cache_key(owner: Owner, key: SeriesKey) -> CacheKey:
        return (owner.server_id, owner.launch_of(key), key.metric, *key.labels.items())


def _row(owner: Owner, key: SeriesKey) -> dict[str, Any]:
    launch_id = owner.launch_of(key)
    return {
        "server_id": owner.server_id,
        "launch_id": launch_id,
        "metric": key.metric,
        "labels": canonical(key.labels),
        "identity": series_identity(owner.server_id, launch_id, key.metric, key.labels),
    }
