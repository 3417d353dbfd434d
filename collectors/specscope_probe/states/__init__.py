"""State profiles: what the hidden states that the draft is given look like, sampled inside the engine.

Rows are chosen on the CPU, reduced on the device on the stream in use without ever waiting for it, and
finished by a thread of the probe's own with numpy. What leaves are sums, counts and a few norms.
"""

from __future__ import annotations

import importlib
import logging
from typing import TYPE_CHECKING, Any

from specscope_probe.ranks import Rank
from specscope_probe.states.options import read_state_options

if TYPE_CHECKING:
    from specscope_probe.states.part import StateProfiling

log = logging.getLogger("specscope_probe")


def state_profiling(scheduler: Any, rank: Rank) -> StateProfiling | None:
    """Return the part that profiles states; None: nobody asked for it, or it cannot be made here."""
    options = read_state_options()
    if not options.is_on:
        return None
    try:
        made: StateProfiling = importlib.import_module("specscope_probe.states.part").StateProfiling(
            scheduler, rank, options
        )
    except Exception:
        log.exception("specscope: states are not profiled; all else is measured")
        return None
    return made
