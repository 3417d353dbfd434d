"""Profiles of hidden states are kept whole, once, and refused when their sums cannot be."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from sqlalchemy import Engine, select
from sqlalchemy.orm import Session
from tests.store.conftest import T0, batch

from specscope_collectors.observations import LnNorms, StateProfile
from specscope_server.models import StateProfile as Row
from specscope_server.store.ingest import IngestWriter
from specscope_server.store.retention import Retention, enforce
from specscope_server.store.state_writer import read_body

H, SIZE = 8, 4


def floats(*shape: int) -> bytes:
    """Return an array of that shape as it travels."""
    return np.arange(np.prod(shape), dtype="<f4").tobytes()


def profile(**changes: Any) -> StateProfile:
    """Return a profile of ten rows of two token ids."""
    values: dict[str, Any] = {
        "time_ms": T0 + 60_000, "span_ms": 60_000, "labels": {"tp_rank": "0"}, "phase": "verify_accepted",
        "row_class": "other", "slot": 1, "boundary": 30, "hidden_size": H, "rows": 10, "requests": 3,
        "ln_norms": LnNorms(sum=30.0, sum_of_squares=91.0, minimum=2.9, maximum=3.2, bins={145: 4, 150: 6}),
        "token_ids": (5, 9), "token_rows": (6, 3), "token_directions": floats(2, SIZE), "projection": "g-4-1",
        "direction_sum": floats(H), "direction_sum_of_squares": floats(H), "sum_of_squares": floats(H),
        "invariants": {"zero_rows": 0, "nonfinite_rows": 0},
    }  # fmt: skip
    return StateProfile(**{**values, **changes})


def stored(engine: Engine) -> list[Row]:
    """Return all profiles."""
    with Session(engine) as session:
        return list(session.scalars(select(Row).order_by(Row.id)))


def test_a_profile_comes_back_as_it_was_sent(store_engine: Engine, writer: IngestWriter) -> None:
    writer.apply(batch(profile(), sequence=2))
    [row] = stored(store_engine)
    assert read_body(row.body) == profile()
    assert (row.slot, row.boundary, row.phase, row.rows, row.requests) == (1, 30, "verify_accepted", 10, 3)
    assert row.launch_id is not None


def test_it_travels_as_json_too() -> None:
    assert msgspec.json.decode(msgspec.json.encode(profile()), type=StateProfile) == profile()


def test_the_same_place_and_time_is_kept_once_and_another_beside_it(
    store_engine: Engine, writer: IngestWriter
) -> None:
    writer.apply(batch(profile(), sequence=2))
    writer.apply(batch(profile(rows=11), profile(slot=2), profile(row_class="sink"), sequence=3))
    assert [(row.slot, row.row_class, row.rows) for row in stored(store_engine)] == [
        (1, "other", 10), (2, "other", 10), (1, "sink", 10),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "changes",
    [
        {"phase": "dreaming"}, {"row_class": "all"}, {"rows": 0}, {"requests": 11}, {"hidden_size": 0},
        {"new_requests": 4}, {"new_requests": -1},
        {"direction_sum": floats(H - 1)}, {"sum_of_squares": b"abc"},
        {"token_rows": (6,)}, {"token_ids": (5, 5)}, {"token_rows": (6, 5)}, {"token_ids": (5, -1)},
        {"token_directions": floats(2, SIZE)[:-1]}, {"token_ids": (), "token_rows": ()},
        {"ln_norms": LnNorms(sum=1.0, sum_of_squares=1.0, minimum=0.0, maximum=1.0, bins={1: 11})},
        {"ln_norms": LnNorms(sum=1.0, sum_of_squares=1.0, minimum=2.0, maximum=1.0, bins={1: 1})},
        {"ln_norms": LnNorms(sum=float("nan"), sum_of_squares=1.0, minimum=0.0, maximum=1.0, bins={1: 1})},
        {"ln_norms": LnNorms(sum=1.0, sum_of_squares=1.0, minimum=0.0, maximum=1.0, bins={1: 0})},
        {"ln_norms": LnNorms(
            sum=1.0, sum_of_squares=1.0, minimum=0.0, maximum=1.0, bins={1: 1}, bin_width=0.5
        )},
        {"ln_norms": LnNorms(sum=1.0, sum_of_squares=1.0, minimum=0.0, maximum=1.0, bins={50_000: 1})},
        {"invariants": {"zero_rows": -1}},
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_and_counted(
    store_engine: Engine, writer: IngestWriter, changes: dict[str, Any]
) -> None:
    applied = writer.apply_counted(batch(profile(**changes), profile(slot=0), sequence=2))
    assert applied.refused == {"bad_profile": 1}
    assert [row.slot for row in stored(store_engine)] == [0]


def test_a_profile_without_a_launch_or_over_no_time_is_refused(writer: IngestWriter) -> None:
    assert writer.apply_counted(batch(profile(), launch=None, sequence=2)).refused == {"no_launch": 1}
    assert writer.apply_counted(batch(profile(span_ms=0), sequence=3)).refused == {"bad_span": 1}


def test_profiles_go_when_they_are_too_old(store_engine: Engine, writer: IngestWriter) -> None:
    writer.apply(batch(profile(), sequence=2))
    day_ms = 86_400_000
    enforce(store_engine, Retention(states_days=2), T0 + day_ms)
    assert len(stored(store_engine)) == 1
    enforce(store_engine, Retention(states_days=2), T0 + 3 * day_ms)
    assert stored(store_engine) == []
