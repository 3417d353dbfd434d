"""Windows in which the two statistics name no one boundary are no sign that all is well."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from specscope_collectors.states.rules import Fault
from specscope_server.drift.cells import _state
from specscope_server.drift.schemas import CellState

VOTES: Any = SimpleNamespace(fault=Fault.NONE, is_confirmed=False)


def window(place: int | None, *missing: str) -> Any:
    return SimpleNamespace(is_comparable=True, judged=SimpleNamespace(place=place, missing=missing))


@pytest.mark.parametrize(
    ("windows", "state"),
    [
        ([window(27), window(27), window(27)], CellState.SAME),
        ([window(27), window(None), window(27)], CellState.SAME),
        ([window(None), window(None), window(27)], CellState.NOT_ENOUGH),
        ([window(None)], CellState.NOT_ENOUGH),
        ([window(None, "64 rows on common ids")], CellState.NOT_ENOUGH),
        ([window(None, "64 rows on common ids"), window(27)], CellState.SAME),
    ],
)
def test_same_is_said_only_where_half_of_the_windows_name_a_boundary(
    windows: list[Any], state: CellState
) -> None:
    assert _state(windows, windows, VOTES) == state
