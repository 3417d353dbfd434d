"""The shipped rule about hidden states: it fires on a confirmed verdict, and on nothing less."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine
from tests.server.alerts.rules.support import readings
from tests.server.drift.conftest import PHASES, TRAINED, WINDOW_MS, Served
from tests.server.seed import T0

from specscope_server.alerts.rules.packed import pack
from specscope_server.alerts.rules.reading import Reading, Status
from specscope_server.alerts.rules.schema import Origin, StoredRule

WRONG = (3, 6, 9)


@pytest.fixture
def store_engine(sqlite_engine: Engine) -> Engine:
    """What is said does not depend on the store."""
    return sqlite_engine


def breaches(served: Served, windows: int) -> list[Reading]:
    rule = StoredRule(rule=pack()["norm-drift"], version=1, origin=Origin.PACK, enabled=True)
    found = readings(served.engine, T0 + windows * WINDOW_MS + 1, rule)
    assert not [reading for reading in found if reading.status is Status.ERROR], found
    return [reading for reading in found if reading.status is Status.BREACH]


def test_states_as_trained_raise_nothing_and_one_window_is_not_enough(known: Served) -> None:
    known.windows(count=3, phases=PHASES[:1])
    assert breaches(known, 3) == []
    known.windows(WRONG, 1, phases=PHASES[:1], told=TRAINED, start_ms=T0 + 3 * WINDOW_MS)
    assert breaches(known, 4) == []


def test_a_confirmed_wrong_layer_fires_and_names_the_slot(known: Served) -> None:
    known.windows(count=2, phases=PHASES[:1])
    known.windows(WRONG, 2, phases=PHASES[:1], told=TRAINED, start_ms=T0 + 2 * WINDOW_MS)
    found = breaches(known, 4)
    assert [reading.labels["slot"] for reading in found] == ["0"]
    assert "not what the draft was trained on (false alarms expected: at most " in found[0].reason
    assert "a month, budget 1)" in found[0].reason
    cost = found[0].evidence["conditions"][0]["false_alarms"]
    assert 0 <= cost["expected_per_month"] < cost["budget_per_month"] == 1


def test_while_one_window_is_known_no_rate_of_false_alarms_is_told(known: Served) -> None:
    """Two phases at once confirm a fault before there are two windows to tell a pace from."""
    known.windows(WRONG, 1, phases=PHASES[:2], told=TRAINED)
    found = breaches(known, 1)
    assert [reading.labels["slot"] for reading in found] == ["0"]
    assert "(false alarms expected: rate not known yet, budget 1)" in found[0].reason
    assert found[0].evidence["conditions"][0]["false_alarms"]["expected_per_month"] is None
