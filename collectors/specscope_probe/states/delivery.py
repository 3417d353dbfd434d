"""Where finished windows go: a file in the spool, or straight to a server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from specscope_probe.states.options import StateOptions
from specscope_probe.states.spool import Spool


class Delivery:
    """Called by the finishing thread with one window after the other."""

    def __init__(self, options: StateOptions, rank: Mapping[str, str]) -> None:
        self._spool = Spool(options.spool, options.spool_bytes, rank) if options.spool is not None else None

    def __call__(self, packed: bytes, content: Mapping[str, Any]) -> str:
        """Deliver one window; return what became of it. Raises OSError when it must be given up."""
        if self._spool is None:
            raise OSError("there is no spool")
        self._spool.write(packed, content["created_ms"])
        return "written"
