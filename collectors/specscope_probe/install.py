"""Putting the probe into a scheduler process: it attaches when an event loop begins.

By then workers exist and graphs are captured, whatever the engine's version, and nothing has been served.
"""

from __future__ import annotations

import functools
import importlib
import logging
from collections.abc import Callable
from typing import Any

from specscope_probe.options import read_options
from specscope_probe.probe import Probe

log = logging.getLogger("specscope_probe")

SCHEDULER_MODULE = "sglang.srt.managers.scheduler"
EVENT_LOOPS = "event_loop_"

_MARK = "_specscope_probe"
"""Name under which a scheduler keeps its probe, and an event loop the note that it is wrapped."""


def install() -> None:
    """Wrap every event loop of the scheduler's class. Any number of calls do the work of one."""
    scheduler_class = importlib.import_module(SCHEDULER_MODULE).Scheduler
    for name in dir(scheduler_class):
        loop = getattr(scheduler_class, name)
        if name.startswith(EVENT_LOOPS) and callable(loop) and not hasattr(loop, _MARK):
            setattr(scheduler_class, name, _attaching(loop))


def _attaching(loop: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(loop)
    def specscope_event_loop(scheduler: Any, *args: Any, **kwargs: Any) -> Any:
        attach(scheduler)
        return loop(scheduler, *args, **kwargs)

    setattr(specscope_event_loop, _MARK, True)
    return specscope_event_loop


def attach(scheduler: Any) -> Probe | None:
    """Attach a probe unless the scheduler has one; an exception here leaves the engine as it was."""
    existing: Probe | None = getattr(scheduler, _MARK, None)
    if existing is not None:
        return existing
    probe: Probe | None = None
    try:
        probe = Probe(scheduler, read_options())
        setattr(scheduler, _MARK, probe)
        probe.attach()
        probe.start()
    except Exception as error:
        log.exception("specscope: the probe could not be attached; the engine runs without it")
        if probe is not None:
            probe.remove(f"{type(error).__name__} while attaching")
    return probe
