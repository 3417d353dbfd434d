"""When the probe is installed, and that it takes nothing with it while it is not."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from tests.probe.standin import Batch, Request, engine

from specscope_probe import install, loading
from specscope_probe.install import attach

ROOT = Path(__file__).resolve().parents[2]


class Loops:
    """The engine's scheduler class, as far as its event loops go."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def event_loop_normal(self) -> None:
        self.ran.append("normal")

    def event_loop_overlap(self) -> None:
        self.ran.append("overlap")

    def other(self) -> None:
        self.ran.append("other")


@pytest.fixture
def scheduler_class(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A process in which the engine's scheduler module is loaded, with the switch on."""
    loops = type("Scheduler", (Loops,), {})
    module = ModuleType(loading.SCHEDULER_MODULE)
    module.Scheduler = loops  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, loading.SCHEDULER_MODULE, module)
    monkeypatch.setenv(loading.SWITCH, "1")
    return loops


def wrapped(scheduler_class: Any) -> set[str]:
    """Return the names that the probe has put its own over."""
    return {name for name in vars(scheduler_class) if not name.startswith("__")}


def as_child(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process be somebody's spawned child."""
    monkeypatch.setattr(multiprocessing, "parent_process", lambda: SimpleNamespace(pid=1))


def test_schedulers_are_children_that_have_the_scheduler_loaded(
    scheduler_class: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    loading.register()
    assert wrapped(scheduler_class) == set(), "the engine's main process imports the scheduler too"
    as_child(monkeypatch)
    loading.register()
    assert wrapped(scheduler_class) == {"event_loop_normal", "event_loop_overlap"}


def test_other_children_are_left_alone(scheduler_class: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    as_child(monkeypatch)
    monkeypatch.delitem(sys.modules, loading.SCHEDULER_MODULE)
    loading.register()
    assert wrapped(scheduler_class) == set()


@pytest.mark.parametrize("switch", ["", "0", "yes", "true"])
def test_only_1_switches_it_on(
    scheduler_class: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, switch: str
) -> None:
    as_child(monkeypatch)
    monkeypatch.setenv(loading.SWITCH, switch)
    loading.register()
    loading.forward_hook({})
    assert wrapped(scheduler_class) == set()
    assert caplog.text.count("neither 1 (on) nor 0 (off)") == (0 if switch in ("", "0") else 2)


def test_both_loaders_any_number_of_times_install_once(
    scheduler_class: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_child(monkeypatch)
    attached: list[Any] = []
    monkeypatch.setattr(install, "attach", attached.append)
    loading.register()
    first = dict(vars(scheduler_class))
    loading.forward_hook({"target_modules": ["*"]})
    loading.register()
    assert dict(vars(scheduler_class)) == first
    scheduler = scheduler_class()
    scheduler.event_loop_normal()
    scheduler.other()
    assert scheduler.ran == ["normal", "other"]
    assert attached == [scheduler]


def test_a_failing_install_does_not_stop_the_engine(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    as_child(monkeypatch)
    monkeypatch.setenv(loading.SWITCH, "1")
    monkeypatch.setitem(sys.modules, loading.SCHEDULER_MODULE, ModuleType("empty"))
    loading.register()
    assert loading.forward_hook() is None
    assert "the engine runs without it" in caplog.text


def test_a_scheduler_gets_one_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(install.Probe, "start", lambda self: None)
    scheduler = engine()
    probe = attach(scheduler)
    assert attach(scheduler) is probe
    scheduler.run(Batch([Request()]))
    assert probe is not None
    assert probe.timer.cycles == 1


def test_an_engine_that_cannot_be_understood_is_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    scheduler = SimpleNamespace()
    assert attach(scheduler) is None
    assert "could not be attached" in caplog.text


def test_without_the_switch_next_to_nothing_is_imported() -> None:
    code = (
        "import os, sys; before = set(sys.modules)\n"
        "from specscope_probe import loading\n"
        "loading.register(); loading.forward_hook({})\n"
        "print(sorted(name for name in set(sys.modules) - before if name != 'specscope_probe.loading'))"
    )
    environment = {"PYTHONPATH": str(ROOT / "collectors"), "PATH": ""}
    command = [sys.executable, "-S", "-c", code]
    outcome = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    assert outcome.stdout.strip() in ("['specscope_probe']", "['__future__', 'specscope_probe']")
