"""What one sampled forward hands to the thread that finishes profiles: small arrays in host memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from specscope_probe.states.buffers import Buffer

PREFILL, VERIFY_ACCEPTED, VERIFY_REJECTED, CALIBRATION = (
    "prefill",
    "verify_accepted",
    "verify_rejected",
    "calibration",
)
SERVING_PHASES = (PREFILL, VERIFY_ACCEPTED, VERIFY_REJECTED)
CALIBRATION_PHASES = (CALIBRATION,)

HEAD, SINK, OTHER = "head", "sink", "other"
ROW_CLASSES = (HEAD, SINK, OTHER)

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Origin:
    """What is known of a sample without the device."""

    time_ms: int
    requests: Integers
    """A number for the request of each row."""
    thresholds: Floats
    """ln‖h‖ beyond which a row is a sink, by slot; −∞ as long as it is not known."""
    token_ids: tuple[int, ...]
    """Ids whose directions were kept; () as long as they are not known."""
    check: int | None
    """Number of a sample that all ranks of a group take, to compare what they hold."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Sampled rows. Shapes begin with (rows, slots) or (rows,)."""

    origin: Origin
    ln_norms: Floats
    sketches: Floats
    first_values: Floats
    ids: Integers
    positions: Integers
    phases: Integers


def read_buffer(buffer: Buffer, origin: Origin) -> Sample:
    """Copy a finished buffer's rows, so that it can be used again."""
    rows = len(origin.requests)
    names = ("ln_norms", "sketches", "first_values", "ids", "positions", "phases")
    return Sample(origin, *(np.array(getattr(buffer, name).numpy()[:rows]) for name in names))
