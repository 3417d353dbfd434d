"""A wrapper does what the original does, whatever listens."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from specscope_probe.parts import Part, State
from specscope_probe.wrapping import Meter, Seam, remove_all, wrap_attribute


class Engine:
    """Something to wrap."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def step(self, batch: str, *, publish: int = 0) -> str:
        """Do a step."""
        self.calls.append((batch, publish))
        if batch == "bad":
            raise KeyError("the engine's own")
        return f"{batch}!"


class Frozen(Engine):
    """Takes no attributes of its own, like the engine's component that processes results."""

    __slots__ = ()

    def __init__(self) -> None: ...

    def step(self, batch: str, *, publish: int = 0) -> str:
        return f"{batch}?"


def explode(*_: Any) -> None:
    """A listener with a bug."""
    raise RuntimeError("a bug in the probe")


def test_arguments_results_and_signature_pass_through() -> None:
    engine, heard = Engine(), []
    seam = Seam("step", Meter())
    seam.listen(Part("p"), before=lambda *a: heard.append(a[1:]), after=lambda *a: heard.append(a[1]))
    signature = inspect.signature(engine.step)
    wrap_attribute(engine, "step", seam)
    assert engine.step("a", publish=3) == "a!"
    assert engine.calls == [("a", 3)]
    assert heard == [(("a",), {"publish": 3}), "a!"]
    assert inspect.signature(engine.step) == signature
    assert engine.step.__name__ == "step"


def test_an_exception_of_the_engine_goes_through_untouched_and_listeners_forget() -> None:
    engine, forgotten = Engine(), []
    seam = Seam("step", Meter())
    seam.listen(Part("p"), after=lambda *a: forgotten.append("after"), failed=lambda: forgotten.append("f"))
    wrap_attribute(engine, "step", seam)
    with pytest.raises(KeyError, match="the engine's own"):
        engine.step("bad")
    assert forgotten == ["f"]
    assert engine.calls == [("bad", 0)]


@pytest.mark.parametrize("when", ["before", "after", "failed"])
def test_a_bug_in_a_listener_switches_off_its_part_alone(when: str, caplog: pytest.LogCaptureFixture) -> None:
    engine, other = Engine(), []
    broken, healthy = Part("broken"), Part("healthy")
    seam = Seam("step", Meter())
    seam.listen(broken, **{when: explode})
    seam.listen(healthy, before=lambda *_: other.append(1))
    wrap_attribute(engine, "step", seam)
    for _ in range(3):
        if when == "failed":
            with pytest.raises(KeyError):
                engine.step("bad")
        assert engine.step("a") == "a!"
    assert broken.state is State.FAILED
    assert "a bug in the probe" in broken.reason
    assert healthy.is_on
    assert len(other) == (6 if when == "failed" else 3)
    assert len([record for record in caplog.records if "switched off" in record.message]) == 1


def test_wrappers_on_instances_and_classes_come_off_again() -> None:
    engine, frozen = Engine(), Frozen()
    original = Frozen.__dict__["step"]
    seam = Seam("step", Meter())
    wrapped = [wrap_attribute(engine, "step", seam), wrap_attribute(Frozen, "step", seam)]
    assert frozen.step("a") == "a?"
    remove_all(wrapped)
    assert "step" not in vars(engine)
    assert Frozen.__dict__["step"] is original
    remove_all(wrapped)
    assert engine.step("a") == "a!"


class Bound:
    """Methods of a class that are called without the instance."""

    @staticmethod
    def fixed(batch: str) -> str:
        return f"{batch}."

    @classmethod
    def shared(cls, batch: str) -> str:
        return f"{cls.__name__} {batch}"


def test_methods_without_an_instance_are_called_without_one() -> None:
    originals = dict(vars(Bound))
    wrapped = [wrap_attribute(Bound, name, Seam(name, Meter())) for name in ("fixed", "shared")]
    assert (Bound().fixed("a"), Bound.fixed("a"), Bound().shared("a")) == ("a.", "a.", "Bound a")
    remove_all(wrapped)
    assert dict(vars(Bound)) == originals


def test_an_exception_that_cannot_say_what_it_is_stays_inside() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    def fail(*_: Any) -> None:
        raise Mute

    engine, seam, part = Engine(), Seam("step", Meter()), Part("p")
    seam.listen(part, before=fail)
    wrap_attribute(engine, "step", seam)
    assert engine.step("a") == "a!"
    assert (part.state, part.reason) == (State.FAILED, "Mute")


def test_what_somebody_else_put_over_it_stays() -> None:
    engine = Engine()
    wrapped = wrap_attribute(engine, "step", Seam("step", Meter()))
    theirs = lambda batch: "theirs"  # noqa: E731
    engine.step = theirs  # type: ignore[method-assign, assignment]
    wrapped.remove()
    assert engine.step is theirs


def test_the_time_of_listeners_is_measured_and_not_that_of_the_engine() -> None:
    import time

    engine, meter = Engine(), Meter()
    seam = Seam("step", meter)
    seam.listen(Part("p"), before=lambda *_: busy(2_000_000))
    engine.step = lambda batch: busy(5_000_000)  # type: ignore[method-assign, assignment]
    wrap_attribute(engine, "step", seam)
    began = time.perf_counter_ns()
    engine.step("a")
    assert 2_000_000 <= meter.ns <= time.perf_counter_ns() - began - 5_000_000


def busy(ns: int) -> None:
    """Compute for that long."""
    import time

    end = time.perf_counter_ns() + ns
    while time.perf_counter_ns() < end:
        pass
