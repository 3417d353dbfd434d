"""How often the verdict is wrong by chance: told beside it, and not before it is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Engine
from tests.server.drift.conftest import Served


@pytest.fixture
def store_engine(sqlite_engine: Engine) -> Engine:
    """What is said does not depend on the store; how it is read is tested on all of them elsewhere."""
    return sqlite_engine


Ask = Callable[..., Any]


def test_false_alarms_are_told_with_their_budget(known: Served, ask: Ask) -> None:
    known.windows()
    told = ask()["false_alarms"]
    assert told["budget_per_month"] == 1
    assert told["windows_per_month"] == pytest.approx(4320)
    assert told["expected_per_month"] < 1
    assert "false alarms a month here." in told["words"]


def test_of_one_window_no_rate_is_told(known: Served, ask: Ask) -> None:
    known.windows(count=1)
    told = ask()["false_alarms"]
    assert told["windows_per_month"] is told["expected_per_month"] is None
    assert "not known yet" in told["words"]
