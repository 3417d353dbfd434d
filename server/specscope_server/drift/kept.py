"""A few results that are dear to make and never change, by what they were made of."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

from sqlalchemy import Connection, Engine
from sqlalchemy.orm import Session

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Kept(Generic[Key, Value]):
    """The most recently used results; safe between threads, which may make the same one twice."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: OrderedDict[Key, Value] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Key) -> Value | None:
        """Return what is kept; None: nothing."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def put(self, key: Key, value: Value) -> Value:
        """Keep a result, let the one go that was not used for longest, and return it."""
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            while len(self._values) > self._most:
                self._values.popitem(last=False)
        return value

    def made(self, key: Key, make: Callable[[], Value]) -> Value:
        """Return what is kept, or make it."""
        found = self.get(key)
        return self.put(key, make()) if found is None else found


class KeptByStore(Generic[Key, Value]):
    """The same for results whose key holds ids: these mean something in one database only."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._stores: WeakKeyDictionary[Engine, Kept[Key, Value]] = WeakKeyDictionary()

    def of(self, session: Session) -> Kept[Key, Value]:
        """Return what is kept of a session's database."""
        bind = session.get_bind()
        engine = bind.engine if isinstance(bind, Connection) else bind
        return self._stores.setdefault(engine, Kept(self._most))
