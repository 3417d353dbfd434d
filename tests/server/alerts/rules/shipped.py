"""Asking the shipped rules of data that a test made, and what they were seen to say."""

from __future__ import annotations

from sqlalchemy import Engine
from tests.server.alerts.rules.support import readings
from tests.server.seed import SCRAPE_MS, T0

from specscope_server.alerts.rules.packed import pack
from specscope_server.alerts.rules.reading import Reading, Status
from specscope_server.alerts.rules.schema import Origin, StoredRule

SEEN: dict[str, set[str]] = {name: set() for name in pack()}
"""Rule → what it was seen to say of data of these tests."""


def at(scrapes: float) -> int:
    return T0 + round(scrapes * SCRAPE_MS)


def ask(store: Engine, name: str, now_ms: int) -> list[Reading]:
    stored = StoredRule(rule=pack()[name], version=1, origin=Origin.PACK, enabled=True)
    return readings(store, now_ms, stored)


def fires(store: Engine, name: str, now_ms: int) -> Reading | None:
    """Return the first breach of a rule; None = it is fine, or says nothing."""
    found = ask(store, name, now_ms)
    SEEN[name].update(reading.status.value for reading in found if reading.status is not Status.NO_DATA)
    assert not [reading for reading in found if reading.status is Status.ERROR], found
    return next((reading for reading in found if reading.status is Status.BREACH), None)
