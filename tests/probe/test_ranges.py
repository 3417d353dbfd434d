"""Names in traces: each phase has one while the profiler records, and never otherwise."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from tests.probe.standin import Batch, ForwardMode, Request, engine
from tests.probe.test_probe import start

from specscope_collectors.traces.phases import Mark, mark_of
from specscope_probe import ranges
from specscope_probe.parts import State
from specscope_probe.ranges import FORWARD_NAMES, NAMES, Ranges

BATCH = Batch([Request()])


class Profiler:
    """torch's module as far as it is asked, and what was recorded."""

    def __init__(self) -> None:
        self._is_profiler_enabled = False
        self.seen: list[str] = []
        self.broken = ""
        """Which end of a range raises."""

    def record_function(self, name: str) -> Any:
        """Return a range."""

        def enter(_: Any) -> None:
            self.seen.append(f"+{name}")
            if self.broken == "enter":
                raise RuntimeError("broken")

        def leave(_: Any, *__: Any) -> None:
            self.seen.append(f"-{name}")
            if self.broken == "exit":
                raise RuntimeError("broken")

        return type("Range", (), {"__enter__": enter, "__exit__": leave})()


@pytest.fixture
def profiler(monkeypatch: pytest.MonkeyPatch) -> Profiler:
    """A profiler that does not record yet, found where torch's is."""
    found = Profiler()
    monkeypatch.setitem(ranges.sys.modules, ranges.PROFILER, found)  # type: ignore[arg-type]
    return found


def test_phases_are_named_while_it_records(profiler: Profiler) -> None:
    scheduler = engine(accepts=lambda batch: [1])
    probe, _ = start(scheduler)
    scheduler.run(BATCH)
    assert profiler.seen == []
    profiler._is_profiler_enabled = True
    scheduler.run(BATCH)
    opened = [name[1:] for name in profiler.seen if name[0] == "+"]
    assert opened == ["specscope.draft", "specscope.verify", "specscope.target", "specscope.draft_extend"]
    assert sorted(name[1:] for name in profiler.seen if name[0] == "-") == sorted(opened)
    verify, target = (profiler.seen.index(f"-specscope.{name}") for name in ("verify", "target"))
    assert target < verify
    profiler.seen.clear()
    scheduler.run(Batch([Request()], ForwardMode.EXTEND))
    opened = [name for name in profiler.seen if name[0] == "+"]
    assert opened == ["+specscope.prefill", "+specscope.draft_extend"]
    profiler._is_profiler_enabled = False
    scheduler.run(BATCH)
    assert len(profiler.seen) == 4
    assert probe.ranges.part.is_on


@pytest.mark.parametrize("end", ["enter", "exit"])
def test_a_profiler_that_raises_costs_the_names_alone(profiler: Profiler, end: str) -> None:
    scheduler = engine(accepts=lambda batch: [1])
    probe, _ = start(scheduler)
    profiler._is_profiler_enabled, profiler.broken = True, end
    scheduler.run(BATCH)
    scheduler.run(BATCH)
    assert (probe.ranges.part.state, probe.ranges.part.errors) == (State.FAILED, 1)
    assert probe.timing.is_on
    assert probe.timer.cycles == 2


def test_a_range_is_closed_when_the_engine_raises(profiler: Profiler) -> None:
    def spend(what: str) -> None:
        if what == "draft":
            raise MemoryError("out of memory")

    scheduler = engine(spend)
    start(scheduler)
    profiler._is_profiler_enabled = True
    with pytest.raises(MemoryError):
        scheduler.run(BATCH)
    assert profiler.seen == ["+specscope.draft", "-specscope.draft"]


def test_a_torch_that_does_not_say_is_missing() -> None:
    found = Ranges(SimpleNamespace(record_function=None))
    assert found.part.state is State.MISSING
    assert found.opener("draft") is None


def test_the_reader_of_traces_knows_every_name() -> None:
    names = {*NAMES.values(), *FORWARD_NAMES.values()}
    assert {mark_of(name) for name in names} == {
        Mark.DRAFT, Mark.OWN_VERIFY, Mark.STEP_VERIFY, Mark.STEP_EXTEND, Mark.DRAFT_EXTEND
    }  # fmt: skip
