"""What a probe says of itself and of the engine around it."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

from specscope import __version__


def info_labels(scheduler: Any, worker: Any, clock: str) -> dict[str, str]:
    """Return the labels of ``specscope_probe_info``; few, short and never a path or a model's name."""
    return {
        "version": __version__,
        "engine_version": engine_version(),
        "worker": type(worker).__name__[:60],
        "overlap": overlap_of(scheduler),
        "clock": clock,
    }


def engine_version() -> str:
    """Return the version of the SGLang in this process."""
    return str(getattr(sys.modules.get("sglang"), "__version__", "unknown"))[:40]


def overlap_of(scheduler: Any) -> str:
    """Return whether the scheduler overlaps its work with the device's: ``on`` or ``off``."""
    return "on" if getattr(scheduler, "enable_overlap", False) else "off"


def simulated_accept_length(environment: Mapping[str, str] = os.environ) -> str | None:
    """Return ``SGLANG_SIMULATE_ACC_LEN`` if it makes the engine invent accepted drafts."""
    text = environment.get("SGLANG_SIMULATE_ACC_LEN", "").strip()
    try:
        return text if text and float(text) > 0 else None
    except ValueError:
        return text
