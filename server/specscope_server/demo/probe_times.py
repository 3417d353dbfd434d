"""What Specscope's probe would say inside the demo engine: times only, on the device's clock.

The parts add up to the same cycles as the device timer's and the scheduler's: the engine's ``rest`` is split
into preparation of verify, sampling, the gap before the next cycle, and what no part explains.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from specscope_server.demo.model import Cycle

PREPARE, SAMPLING, GAP = 0.25, 0.35, 0.25
"""Shares of a cycle's rest; what is left belongs to no part."""
WARM_UP_CYCLES = 2
BATCHES = ("1", "2", "3-4", "5-8", "9-16", "17-32", "33-64")
EVERY_BATCH, NO_DRAFTS = "all", "0"


def batch_label(requests: int) -> str:
    """Return the power of two that holds a batch, as the probe labels it."""
    return BATCHES[min((requests - 1).bit_length(), len(BATCHES) - 1)]


@dataclass(slots=True)
class Sums:
    """Cycles of one kind and shape, in ms."""

    cycles: int = 0
    warm_up_cycles: int = 0
    warm_up_ms: float = 0.0
    parts: dict[str, float] = field(default_factory=dict)

    def add(self, parts: Mapping[str, float]) -> None:
        """Add a cycle; the first ones are kept apart."""
        if self.warm_up_cycles < WARM_UP_CYCLES:
            self.warm_up_cycles += 1
            self.warm_up_ms += sum(parts.values())
            return
        self.cycles += 1
        for name, spent_ms in parts.items():
            self.parts[name] = self.parts.get(name, 0.0) + spent_ms


@dataclass(slots=True)
class ProbeTimes:
    """All times of one launch, by (kind, batch, D)."""

    sums: dict[tuple[str, str, str], Sums] = field(default_factory=dict)
    wall_ms: float = 0.0
    cycles_seen: int = 0

    def decoded(self, cycle: Cycle, requests: int, num_steps: int) -> None:
        """Add a decode step over so many requests."""
        batch, rest = batch_label(requests), cycle.rest
        width = str(num_steps + 1) if num_steps else NO_DRAFTS
        if num_steps:
            parts = {
                "draft": cycle.draft,
                "verify_prepare": PREPARE * rest,
                "verify": cycle.verify,
                "sampling": SAMPLING * rest,
                "draft_extend": cycle.extend,
                "other": (1 - PREPARE - SAMPLING - GAP) * rest,
            }
        else:
            parts = {"decode": cycle.plain, "decode_other": (1 - GAP) * rest}
        self._add("speculative" if num_steps else "plain", batch, width, parts)
        self._add("gap", batch, width, {"gap": GAP * rest})
        self._seen(cycle.total)

    def prefilled(self, requests: int, device_ms: float, rest_ms: float) -> None:
        """Add a prefill batch."""
        parts = {"prefill": 0.97 * device_ms, "prefill_draft_extend": 0.03 * device_ms,
                 "prefill_other": (1 - GAP) * rest_ms}  # fmt: skip
        self._add("prefill", EVERY_BATCH, NO_DRAFTS, parts)
        self._add("gap", batch_label(requests), NO_DRAFTS, {"gap": GAP * rest_ms})
        self._seen(device_ms + rest_ms)

    def _add(self, kind: str, batch: str, width: str, parts: Mapping[str, float]) -> None:
        self.sums.setdefault((kind, batch, width), Sums()).add(parts)

    def _seen(self, wall_ms: float) -> None:
        self.cycles_seen += 1
        self.wall_ms += wall_ms
