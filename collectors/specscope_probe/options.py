"""What can be set, all through environment variables, which scheduler processes inherit."""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

log = logging.getLogger("specscope_probe")

DEFAULT_BUDGET = 0.005


@dataclass(frozen=True, slots=True)
class Options:
    """Settings of one probe."""

    budget: float = DEFAULT_BUDGET
    """Share of the cycles' wall time that the probe's own host time may take."""
    time_every: int = 1
    """Time every k-th cycle; accepted drafts are counted in all of them."""
    export_seconds: float = 1.0
    """How often counters are handed to the engine's metrics."""
    stop_file: Path = Path(tempfile.gettempdir()) / "specscope-probe.stop"
    """When this file appears, the probe takes itself out of the running engine."""


def read_options(environment: Mapping[str, str] = os.environ) -> Options:
    """Return the settings; what cannot be understood is logged and the default taken."""
    default = Options()
    stop_file = environment.get("SPECSCOPE_PROBE_STOP_FILE")
    return Options(
        budget=read_number(environment, "SPECSCOPE_PROBE_BUDGET", default.budget, 0.0, 1.0),
        time_every=int(
            read_number(environment, "SPECSCOPE_PROBE_TIME_EVERY", default.time_every, 1, 1_000_000)
        ),
        export_seconds=read_number(
            environment, "SPECSCOPE_PROBE_EXPORT_SECONDS", default.export_seconds, 0.05, 3600.0
        ),
        stop_file=Path(stop_file) if stop_file else default.stop_file,
    )


def read_number(
    environment: Mapping[str, str], name: str, default: float, least: float, most: float
) -> float:
    """Return the number in a variable; what is none, or out of bounds, is logged and the default taken."""
    text = environment.get(name)
    if not text:
        return default
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if least <= value <= most:
        return value
    log.warning("specscope: %s=%r is not between %g and %g; %g is used", name, text, least, most, default)
    return default
