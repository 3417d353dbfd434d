"""A receiver on loopback, and an outbox whose channel leads there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine
from tests.server.alerts.delivery.desk import Desk
from tests.support.receiver import Receiver


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver().running() as running:
        yield running


@pytest.fixture
def desk(sqlite_engine: Engine, receiver: Receiver) -> Desk:
    made = Desk(sqlite_engine)
    made.channels({"name": "hook", "kind": "webhook", "url": receiver.url})
    return made


@pytest.fixture
def any_desk(store_engine: Engine, receiver: Receiver) -> Desk:
    made = Desk(store_engine)
    made.channels({"name": "hook", "kind": "webhook", "url": receiver.url})
    return made
