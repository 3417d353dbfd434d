"""Host memory that travels to the device and back without anybody waiting: a ring of pinned buffers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

SKETCH = 16
"""Columns of the projection that are kept of every sampled row, to tell rows from each other."""
FIRST_VALUES = 5


class Buffer:
    """What one sampled forward is told and what it gives back, as tensors; rows come first."""

    def __init__(self, torch: Any, rows: int, slots: int, *, is_device: bool) -> None:
        def make(*shape: int, dtype: Any = torch.float32) -> Any:
            return torch.zeros(shape, dtype=dtype, pin_memory=is_device)

        self.indices = make(rows, dtype=torch.int64)
        self.thresholds = make(slots)
        self.ln_norms = make(rows, slots)
        self.sketches = make(rows, slots, SKETCH)
        self.first_values = make(rows, slots, FIRST_VALUES)
        self.ids = make(rows, dtype=torch.int64)
        self.positions = make(rows, dtype=torch.int64)
        self.phases = make(rows, dtype=torch.int64)
        self.began = torch.cuda.Event(enable_timing=True) if is_device else None
        self.done = torch.cuda.Event(enable_timing=True) if is_device else None


@dataclass(slots=True)
class Sums:
    """Sums of one window as they came from the device; index 0 is the phase, index 1 the slot."""

    channels: Any
    """Shape (phases, slots, 3, H): Σu, Σu², and Σh² of rows that are no repetition."""
    tokens: Any
    """Shape (phases, slots, token ids + 1, SIZE): projected Σu; the last place is of all other ids."""
    distinct: Any = None
    """Rows that Σh² is of, shape (phases, slots)."""
    done: Any = None
    capture: Any = None
    """What the rows of the window are; None = as before."""


def is_done(event: Any) -> bool:
    """Say whether the device has passed an event; without a device everything is done at once."""
    return event is None or bool(event.query())
