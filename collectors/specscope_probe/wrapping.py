"""Putting a wrapper around one method of the engine, and taking it away again.

The wrapper calls the original exactly once, with the arguments that it was given, and hands back its result
or its exception untouched. What listens is guarded one by one: an exception switches that part off.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from inspect import getattr_static
from time import perf_counter_ns, thread_time_ns
from typing import Any

from specscope_probe.parts import Part
from specscope_probe.ranges import Ranges

Before = Callable[[int, tuple[Any, ...], dict[str, Any]], None]
"""Called with (host clock in ns, positional, keyword arguments) before the original."""

After = Callable[[int, Any, tuple[Any, ...], dict[str, Any]], None]
"""Called with (host clock in ns, result, positional, keyword arguments) when the original has returned."""

Failed = Callable[[], None]
"""Called when the original raised."""


class Meter:
    """Host time spent in listeners on the scheduler's thread, in ns since the start."""

    __slots__ = ("cpu_ns", "is_checking", "ns")

    def __init__(self) -> None:
        self.ns = 0
        self.is_checking = False
        """Whether the processor's time is read, too: that is a call into the system, and costs more."""
        self.cpu_ns = 0
        """Processor time while that was so: without the time in which the thread had to wait for one."""


@dataclass(slots=True)
class Seam:
    """One place in the engine at which parts listen. Arguments of a method on a class begin with ``self``."""

    name: str
    meter: Meter
    before: list[tuple[Part, Before]] = field(default_factory=list)
    after: list[tuple[Part, After]] = field(default_factory=list)
    failed: list[tuple[Part, Failed]] = field(default_factory=list)
    ranges: Ranges | None = None
    """What names the seam in traces."""

    def listen(
        self,
        part: Part,
        *,
        before: Before | None = None,
        after: After | None = None,
        failed: Failed | None = None,
    ) -> None:
        """Add a listener."""
        if before is not None:
            self.before.append((part, before))
        if after is not None:
            self.after.append((part, after))
        if failed is not None:
            self.failed.append((part, failed))

    def tell_failed(self) -> None:
        """Let listeners forget what they had begun."""
        for part, callback in self.failed:
            try:
                callback()
            except Exception as error:
                part.fail(error)


def wrap(original: Callable[..., Any], seam: Seam) -> Callable[..., Any]:
    """Return a function that does what ``original`` does and tells the listeners of ``seam``."""
    meter, before, after = seam.meter, seam.before, seam.after
    ranges = seam.ranges
    open_range = None if ranges is None else ranges.opener(seam.name)
    profiler = None if ranges is None or open_range is None else ranges.profiler

    @functools.wraps(original)
    def specscope_seam(*args: Any, **kwargs: Any) -> Any:
        used = thread_time_ns() if meter.is_checking else None
        now = perf_counter_ns()
        for part, tell in before:
            if part.is_on:
                try:
                    tell(now, args, kwargs)
                except Exception as error:
                    part.fail(error)
        meter.ns += perf_counter_ns() - now
        if used is not None:
            meter.cpu_ns += thread_time_ns() - used
        opened = None
        if profiler is not None and profiler._is_profiler_enabled and open_range is not None:
            opened = open_range(args, kwargs)
        try:
            result = original(*args, **kwargs)
        except BaseException:
            if opened is not None and ranges is not None:
                ranges.close(opened)
            seam.tell_failed()
            raise
        if opened is not None and ranges is not None:
            ranges.close(opened)
        used = thread_time_ns() if meter.is_checking else None
        now = perf_counter_ns()
        for part, hand in after:
            if part.is_on:
                try:
                    hand(now, result, args, kwargs)
                except Exception as error:
                    part.fail(error)
        meter.ns += perf_counter_ns() - now
        if used is not None:
            meter.cpu_ns += thread_time_ns() - used
        return result

    return specscope_seam


@dataclass(frozen=True, slots=True)
class Wrapped:
    """A wrapper that is in place."""

    owner: Any
    attribute: str
    wrapper: Callable[..., Any]
    original: Callable[..., Any] | None
    """None: the owner is an instance, whose class still holds the original."""

    def remove(self) -> None:
        """Put back what was there, unless somebody else has put something over it since."""
        if vars(self.owner).get(self.attribute) is not self.wrapper:
            return
        if self.original is None:
            delattr(self.owner, self.attribute)
        else:
            setattr(self.owner, self.attribute, self.original)


def wrap_attribute(owner: Any, attribute: str, seam: Seam) -> Wrapped:
    """Put a wrapper of ``seam`` on an instance, or on a class whose instances take no attributes."""
    original = getattr(owner, attribute)
    wrapper = wrap(original, seam)
    own = vars(owner).get(attribute)
    if isinstance(owner, type) and isinstance(getattr_static(owner, attribute), staticmethod | classmethod):
        wrapper = staticmethod(wrapper)  # what was got is called without the instance, and must stay so
    setattr(owner, attribute, wrapper)
    return Wrapped(owner, attribute, wrapper, own)


def remove_all(wrapped: Iterable[Wrapped]) -> None:
    """Take wrappers away, the last one first."""
    for one in reversed(list(wrapped)):
        one.remove()
