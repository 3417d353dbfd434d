"""The verdict names the fault that is there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.server.drift.conftest import Served

Ask = Callable[..., Any]


def test_states_as_trained_are_the_same(known: Served, ask: Ask) -> None:
    known.windows()
    found = ask()
    assert found["verdict"]["state"] == "ok"
