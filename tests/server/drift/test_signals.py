"""Signals of drift: the page's own verdict as of each point in time, with why there is none."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from sqlalchemy import Engine, select
from sqlalchemy.orm import Session
from tests.server.client import Web
from tests.server.drift.conftest import PHASES, TRAINED, WINDOW_MS, Served
from tests.server.seed import NOW, SERVER, T0

from specscope_server.drift.signals import SIGNALS
from specscope_server.kit.signal import SignalQuery, SignalSeries, Target, Why
from specscope_server.models import Server

Read = Callable[..., dict[str, SignalSeries]]


@pytest.fixture
def store_engine(sqlite_engine: Engine) -> Engine:
    """What is said does not depend on the store."""
    return sqlite_engine


@pytest.fixture
def read(served: Served, web: Web) -> Read:
    """Return a signal's series over the hour, at every window's end, by slot, or by slot and phase."""

    def reading(name: str, window_ms: int = 3 * WINDOW_MS) -> dict[str, SignalSeries]:
        signal = next(signal for signal in SIGNALS if signal.name == f"drift.{name}")
        with Session(served.engine) as session:
            number = session.scalar(select(Server.id).where(Server.name == SERVER))
            assert number is not None
            query = SignalQuery(
                (Target(number, SERVER),), T0, NOW, WINDOW_MS, window_ms, NOW, web.app.state.specscope
            )
            found = signal.read(session, query)
        names = ("slot", "phase")
        return {" ".join(each.labels[name] for name in names if name in each.labels): each for each in found}

    return reading


def test_the_verdict_follows_the_windows(known: Served, read: Read) -> None:
    known.windows(count=2, phases=PHASES[:1])
    wrong = (3, 6, 9)
    known.windows(wrong, 2, phases=PHASES[:1], told=TRAINED, start_ms=T0 + 2 * WINDOW_MS)
    found = read("verdict")
    assert found["0"].value[:4].tolist() == [0, 0, 1, 2]
    assert found["1"].value[:4].tolist() == [0, 0, 0, 0]
    assert found["0"].why[:5].tolist() == [Why.OK] * 5
    assert found["0"].n[0] == 256
    assert found["0"].requests is not None
    assert found["0"].requests[0] == 32
    assert read("wrong_slots")[""].value[:4].tolist() == [0, 0, 0, 1]


def test_where_nothing_was_profiled_there_is_no_value(known: Served, read: Read) -> None:
    known.windows(count=1, phases=PHASES[:1])
    found = read("verdict", WINDOW_MS)["0"]
    assert found.why.tolist() == [Why.OK] + [Why.NO_DATA] * 5
    assert np.isnan(found.value[1:]).all()
    assert read("norm")["0 prefill"].value[0] < 0.1


def test_too_few_rows_are_few(known: Served, read: Read) -> None:
    known.windows(count=1, rows=30, requests=4)
    assert read("verdict")["0"].why[0] == Why.FEW
    assert read("direction")["0 prefill"].why[0] == Why.FEW


def test_invariants_and_claims(known: Served, read: Read) -> None:
    known.windows((0, 6, 9), 1)
    embedding = read("embedding")
    assert (embedding["0 prefill"].value[0], embedding["1 prefill"].value[0]) == (1, 0)
    assert (read("claims")["0"].value[0], read("claims")["1"].value[0]) == (1, 0)
    assert read("nonfinite_rows")["0 prefill"].value[0] == 0
    assert "identical" in embedding["0 prefill"].note


def test_a_server_without_profiles_has_no_series(served: Served, read: Read) -> None:
    served.windows(count=0)
    assert all(read(signal.name.removeprefix("drift.")) == {} for signal in SIGNALS)
