"""One pass of reading: many questions about the same moment, one after the other, on one session.

While a pass is on, what was read of the store is not asked for again, and the newest samples come from tapes.
A pass must see nothing of its own writes, so it does not write.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
from sqlalchemy import Connection, Engine
from sqlalchemy.orm import Session

from specscope_server.store.rollup import HOUR_MS, TEN_MINUTES_MS
from specscope_server.store.rows import Matrix, Rows, raw_rows
from specscope_server.store.tapes import Held, Tapes, tapes_of

NAME = "one_pass"
LONGEST_MS = HOUR_MS + TEN_MINUTES_MS
"""What lies further back is not read from tapes."""
Made = TypeVar("Made")
Key = TypeVar("Key", bound=Hashable)


class OnePass:
    """What one pass has read."""

    def __init__(self, tapes: Tapes, server_ids: Sequence[int], now_ms: int) -> None:
        self.memo: dict[Hashable, Any] = {}
        self.server_ids = tuple(server_ids)
        """Of whom the pass reads: what is asked about one of them is read of all at once."""
        self._tapes, self.now_ms = tapes, now_ms
        self._read: set[int] = set()
        self._held: dict[int, Held | None] = {}
        """Series id → its tape, as all of the pass see it; None = it can have none."""

    def follow(self, connection: Connection, ids: Collection[int], from_ms: int) -> None:
        """Bring tapes up to date that are not yet, or that begin too late."""
        begins_ms = {one: from_ms for one in ids if self._is_short(one, from_ms)}
        self._update(connection, begins_ms)

    def follow_all(self, connection: Connection) -> None:
        """Bring all tapes up to date that the last passes used."""
        self._update(connection, self._tapes.begins(self.now_ms))

    def end(self) -> None:
        """Note which tapes were read."""
        self._tapes.used(self._read, self.now_ms)

    def _update(self, connection: Connection, begins_ms: Mapping[int, int]) -> None:
        if begins_ms:
            found = self._tapes.update(connection, begins_ms, self.now_ms)
            self._held |= {one: found.get(one) for one in begins_ms}

    def _is_short(self, series_id: int, from_ms: int) -> bool:
        if series_id not in self._held:
            return True
        held = self._held[series_id]
        return held is not None and held[0] > from_ms

    def newest_ms(self, series_id: int) -> int | None:
        """Return when the newest sample of a series was taken; None = its tape does not tell."""
        held = self._held.get(series_id)
        return None if held is None or not len(held[1]) else int(held[1][-1, 0])

    def read(self, connection: Connection, ids: Sequence[int], from_ms: int, to_ms: int) -> Rows | None:
        """Return the samples in [from, to); None where they cannot be taken from tapes."""
        if from_ms < self.now_ms - LONGEST_MS or not ids:
            return None
        self.follow(connection, ids, from_ms)
        self._read.update(ids)
        parts = [_part(held[1], from_ms, to_ms) for one in ids if (held := self._held[one]) is not None]
        if len(parts) < len(ids):
            return None
        place = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
        return raw_rows(place, np.concatenate(parts))


def _part(rows: Matrix, from_ms: int, to_ms: int) -> Matrix:
    begin, end = rows[:, 0].searchsorted((from_ms, to_ms))
    return rows[begin:end]


@contextmanager
def one_pass(session: Session, server_ids: Sequence[int], now_ms: int) -> Iterator[None]:
    """Let the block read the store as one pass."""
    engine = session.get_bind()
    assert isinstance(engine, Engine)
    found = session.info[NAME] = OnePass(tapes_of(engine), server_ids, now_ms)
    try:
        found.follow_all(session.connection())
        yield
    finally:
        del session.info[NAME]
        found.end()


def pass_of(session: Session) -> OnePass | None:
    """Return the pass that is on; None = none is."""
    found: OnePass | None = session.info.get(NAME)
    return found


def remembered(session: Session, key: Hashable, make: Callable[[], Made]) -> Made:
    """Return what was made under this key in this pass before, or make it now. Nobody changes it."""
    found = pass_of(session)
    if found is None:
        return make()
    if key not in found.memo:
        found.memo[key] = make()
    return found.memo[key]  # type: ignore[no-any-return]


def remembered_each(
    session: Session,
    what: Hashable,
    keys: Collection[Key],
    make: Callable[[Sequence[Key]], Mapping[Key, Made]],
    besides: Collection[Key] = (),
) -> dict[Key, Made]:
    """Return key → what was made of it, asking in this pass only for keys not asked for before.

    ``besides``: what is likely to be asked for later, and is asked for along with the rest.
    """
    found = pass_of(session)
    if found is None:
        return dict(make(list(keys)))
    known: dict[Key, Made | None] = found.memo.setdefault((what,), {})
    if any(key not in known for key in keys):
        wanted = [key for key in dict.fromkeys([*keys, *besides]) if key not in known]
        known |= dict.fromkeys(wanted) | dict(make(wanted))
    return {key: value for key in keys if (value := known[key]) is not None}
