"""Named ranges in torch's profiler: while somebody records a trace, each phase stands in it by our name.

SGLang names some phases itself from 0.5.15 on; those before (0.5.8 and 0.5.13 were looked at) name none, and
their traces can then be read all the same. Outside of a recording this costs one look at a flag of torch's.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from specscope_probe.parts import Part, State

NAMES = {
    "draft": "specscope.draft",
    "verify": "specscope.verify",
    "draft_extend": "specscope.draft_extend",
    "prefill_draft_extend": "specscope.draft_extend",
}
"""Seam → name of its range."""
FORWARD = "forward"
FORWARD_NAMES = {
    "TARGET_VERIFY": "specscope.target",
    "EXTEND": "specscope.prefill",
    "MIXED": "specscope.prefill",
    "SPLIT_PREFILL": "specscope.prefill",
}
"""Name of the forward mode → name of the target's range."""
PROFILER = "torch.autograd.profiler"


class Ranges:
    """Opens and closes ranges around seams. ``profiler`` is torch's module that knows if it records."""

    def __init__(self, profiler: Any = None) -> None:
        self.part = Part("ranges")
        self.profiler = sys.modules.get(PROFILER) if profiler is None else profiler
        needed = ("_is_profiler_enabled", "record_function")
        if self.profiler is None or not all(hasattr(self.profiler, name) for name in needed):
            self.profiler = None
            self.part.switch_off(State.MISSING, "this torch does not say when it records")

    def opener(self, seam: str) -> Callable[[tuple[Any, ...], dict[str, Any]], Any] | None:
        """Return what opens a range of that seam, None for one that has none; it is given the arguments."""
        if self.profiler is None or seam not in (*NAMES, FORWARD):
            return None
        fixed, profiler = NAMES.get(seam), self.profiler

        def open_range(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            if not self.part.is_on:
                return None
            try:
                name = fixed or _forward_name(args, kwargs)
                opened = None if name is None else profiler.record_function(name)
                if opened is not None:
                    opened.__enter__()
            except Exception as error:
                self.part.fail(error)
                return None
            return opened

        return open_range

    def close(self, opened: Any) -> None:
        """Close a range."""
        try:
            opened.__exit__(None, None, None)
        except Exception as error:
            self.part.fail(error)


def _forward_name(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
    forward_batch = args[0] if args else kwargs["forward_batch"]
    return FORWARD_NAMES.get(forward_batch.forward_mode.name)
