"""What was made of rows that the store still holds unchanged: kept from one pass of reading to the next."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

from sqlalchemy import ColumnElement, Engine, func, select
from sqlalchemy.orm import InstrumentedAttribute, Session

from specscope_server.store.chunks import chunks
from specscope_server.store.one_pass import pass_of

MAX_KEPT = 5_000
RowsState: TypeAlias = tuple[int, int, int]
"""(rows, highest id, sum of ids): tells rows apart that are added and removed, but never changed."""
Made = TypeVar("Made")


class Lasting:
    """Values by key, each with the state of the store that it rests on. Safe to use from several threads."""

    def __init__(self, max_kept: int = MAX_KEPT) -> None:
        self._lock = threading.Lock()
        self._max_kept = max_kept
        self._known: OrderedDict[Hashable, tuple[Hashable, Any]] = OrderedDict()

    def get(self, key: Hashable, state: Hashable, make: Callable[[], Made]) -> Made:
        """Return what was made under this key when the state was the same, or make it now."""
        with self._lock:
            found = self._known.get(key)
            if found is not None and found[0] == state:
                self._known.move_to_end(key)
                return found[1]  # type: ignore[no-any-return]
        made = make()
        with self._lock:
            self._known[key] = (state, made)
            while len(self._known) > self._max_kept:
                self._known.popitem(last=False)
        return made


_kept: WeakKeyDictionary[Engine, Lasting] = WeakKeyDictionary()


def lasting(session: Session, key: Hashable, state: Hashable, make: Callable[[], Made]) -> Made:
    """Return what was made in an earlier pass, if ``state``, which tells all that it rests on, is the same.

    Outside a pass, and where the state is None (not known), it is made now. Nobody changes what is returned.
    """
    if state is None or pass_of(session) is None:
        return make()
    engine = session.get_bind()
    assert isinstance(engine, Engine)
    return _kept.setdefault(engine, Lasting()).get(key, state, make)


def states_of_rows(
    session: Session,
    key: InstrumentedAttribute[Any],
    row_id: InstrumentedAttribute[int],
    keys: Sequence[int],
    *conditions: ColumnElement[bool],
) -> dict[int, RowsState]:
    """Return key → state of its rows, of those that have any."""
    query = select(key, func.count(), func.max(row_id), func.sum(row_id)).where(*conditions).group_by(key)
    found: dict[int, RowsState] = {}
    for part in chunks(keys):
        for one, *state in session.execute(query.where(key.in_(part))):
            count, highest, total = map(int, state)
            found[one] = count, highest, total
    return found
