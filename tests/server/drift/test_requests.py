"""A window speaks of eight requests or more, and one that goes on through many profiles is one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.server.drift.conftest import Served
from tests.server.seed import T0

WRONG = (3, 7, 10)


@pytest.mark.parametrize(
    ("new", "state", "requests"),
    [(1, "suspected", 32), (0, "not_enough", 1), (None, "not_enough", 1)],
    ids=["others in each", "the same one", "of an older probe"],
)
def test_one_long_request_does_not_speak(
    known: Served, ask: Callable[..., Any], new: int | None, state: str, requests: int
) -> None:
    for minute in range(33):
        known.windows(
            WRONG, count=1, rows=8, requests=1, new_requests=new, phases=("prefill",),
            start_ms=T0 + minute * 60_000,
        )  # fmt: skip
    cell = ask()["cells"][0]
    assert (cell["state"], cell["requests"]) == (state, requests)
