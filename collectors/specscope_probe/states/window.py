"""One window of sampled rows, counted by phase, row class and slot; and the profiles that it becomes."""

from __future__ import annotations

from base64 import b64encode
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specscope_probe.states.invariants import Comparison
from specscope_probe.states.projection import NAME
from specscope_probe.states.requests import Seen, count_of
from specscope_probe.states.rows import HEAD as FIRST_POSITIONS
from specscope_probe.states.samples import HEAD, OTHER, SINK, Floats, Sample
from specscope_probe.states.sketch import NormSketch

MOST_REQUESTS = 65_536
"""Of a window and place; more are not counted."""
ROWS_SHOWN = 4
"""Raw rows kept of each phase and window."""

Place = tuple[str, str, int]
"""Phase, row class, slot."""


@dataclass(slots=True)
class Tally:
    """Rows of one place."""

    rows: int = 0
    norms: NormSketch = field(default_factory=NormSketch)
    requests: set[int] = field(default_factory=set)
    invariants: Counter[str] = field(default_factory=Counter)

    def add(self, ln_norms: Floats, requests: list[int]) -> None:
        """Add rows."""
        self.rows += len(ln_norms)
        is_finite = np.isfinite(ln_norms)
        self.norms.add(ln_norms[is_finite])
        zero_rows = int(np.isneginf(ln_norms).sum())
        self.invariants["zero_rows"] += zero_rows
        self.invariants["nonfinite_rows"] += len(ln_norms) - int(is_finite.sum()) - zero_rows
        if len(self.requests) < MOST_REQUESTS:
            self.requests.update(requests)


class Window:
    """Filled by the probe's thread alone."""

    def __init__(
        self, phases: tuple[str, ...], slots: int, started_ms: int, seen: Seen | None = None
    ) -> None:
        self.phases = phases
        self.slots = slots
        self.started_ms = started_ms
        self.seen = seen or Seen()
        """Requests of earlier windows."""
        self.last_ms = 0
        self.tallies: dict[Place, Tally] = {}
        self.comparisons: dict[tuple[str, int], Comparison] = {}
        self.token_ids: tuple[int, ...] = ()
        self.token_rows: dict[tuple[str, int], NDArray[np.int64]] = {}
        self.shown: list[dict[str, Any]] = []
        self._shown_rows: Counter[str] = Counter()

    def add(self, sample: Sample) -> None:
        """Add the rows of one sample, whose limits of sinks are known."""
        self.last_ms = max(self.last_ms, sample.origin.time_ms)
        if sample.origin.token_ids != self.token_ids:
            self.token_ids, self.token_rows = sample.origin.token_ids, {}
        is_head = sample.positions < FIRST_POSITIONS
        for phase, name in enumerate(self.phases):
            in_phase = sample.phases == phase
            if in_phase.any():
                self._show(name, sample, np.flatnonzero(in_phase))
                for slot in range(self.slots):
                    self._add_slot(name, slot, sample, in_phase, is_head)

    def _add_slot(
        self,
        phase: str,
        slot: int,
        sample: Sample,
        in_phase: NDArray[np.bool_],
        is_head: NDArray[np.bool_],
    ) -> None:
        ln_norms = sample.ln_norms[:, slot]
        is_sink = np.isfinite(ln_norms) & (ln_norms > sample.origin.thresholds[slot])
        classes = {SINK: is_sink, HEAD: is_head & ~is_sink, OTHER: ~is_head & ~is_sink}
        for row_class, in_class in classes.items():
            rows = np.flatnonzero(in_phase & in_class)
            if len(rows):
                tally = self.tallies.setdefault((phase, row_class, slot), Tally())
                tally.add(ln_norms[rows], sample.origin.requests[rows].tolist())
        others = np.flatnonzero(in_phase & classes[OTHER] & np.isfinite(ln_norms))
        comparison = self.comparisons.setdefault((phase, slot), Comparison())
        comparison.add(
            sample.ids[others], sample.positions[others], sample.sketches[others, slot], ln_norms[others]
        )
        self._count_tokens(phase, slot, sample.ids[others])

    def _count_tokens(self, phase: str, slot: int, ids: NDArray[np.int64]) -> None:
        if not self.token_ids:
            return
        counts = self.token_rows.setdefault((phase, slot), np.zeros(len(self.token_ids), np.int64))
        known = np.asarray(self.token_ids, np.int64)
        places = np.searchsorted(known, ids).clip(max=len(known) - 1)
        np.add.at(counts, places[known[places] == ids], 1)

    def _show(self, phase: str, sample: Sample, rows: NDArray[np.int64]) -> None:
        """Keep a few raw rows: the first of the window, and of each the first values only."""
        for row in rows[: max(ROWS_SHOWN - self._shown_rows[phase], 0)].tolist():
            self._shown_rows[phase] += 1
            self.shown += [
                {
                    "phase": phase,
                    "slot": slot,
                    "position": int(sample.positions[row]),
                    "norm": _number(np.exp(np.float64(sample.ln_norms[row, slot]))),
                    "first_values": [_number(value) for value in sample.first_values[row, slot]],
                }
                for slot in range(self.slots)
            ]

    def profiles(
        self, channels: Floats, tokens: Floats, distinct: Floats | None, common: dict[str, Any],
        places: list[dict[str, int]],
    ) -> Iterator[dict[str, Any]]:  # fmt: skip
        """Yield a profile of the contract for each place that has rows; ``common`` goes into all of them.

        ``places`` says of each slot where it is: ``slot`` and ``boundary``, as far as there are such.

        ``channels`` has the shape (phases, slots, 3, H), ``tokens`` (phases, slots, ids + 1, SIZE),
        ``distinct``, the rows that Σh² is of, (phases, slots).
        """
        new = self._new_requests()
        for (phase, row_class, slot), tally in sorted(self.tallies.items()):
            profile = {
                "type": "state_profile",
                "time_ms": self.last_ms,
                "span_ms": max(self.last_ms - self.started_ms, 1),
                "phase": phase,
                "row_class": row_class,
                "rows": tally.rows,
                "requests": count_of(tally.requests),
                "new_requests": new[phase, row_class, slot],
                "ln_norms": tally.norms.described(),
                "invariants": dict(tally.invariants),
                **places[slot],
                **common,
            }
            if row_class == OTHER:
                index = self.phases.index(phase)
                profile["invariants"] |= self._compared(phase, slot)
                if distinct is not None:
                    profile["invariants"]["distinct_rows"] = int(distinct[index, slot])
                profile |= self._sums(phase, slot, channels[index, slot], tokens[index, slot])
            yield profile

    def _new_requests(self) -> dict[Place, int | None]:
        """Return of each place how many requests are in no earlier window, and know all of them from now on.
        A request that any slot had is known in all of them.
        """
        found = {place: self.seen.new_of(place[:2], tally.requests) for place, tally in self.tallies.items()}
        for place, tally in self.tallies.items():
            self.seen.note(place[:2], tally.requests)
        return found

    def _compared(self, phase: str, slot: int) -> dict[str, int]:
        counts = self.comparisons[phase, slot].counts
        return {
            name: counts[name] for name in ("duplicate_rows", "equal_id_pairs", "equal_id_pairs_identical")
        }

    def _sums(self, phase: str, slot: int, channels: Floats, tokens: Floats) -> dict[str, Any]:
        found: dict[str, Any] = {
            "direction_sum": _encoded(channels[0]),
            "direction_sum_of_squares": _encoded(channels[1]),
            "sum_of_squares": _encoded(channels[2]),
        }
        counts = self.token_rows.get((phase, slot))
        if counts is not None and counts.any():
            seen = np.flatnonzero(counts)
            found["token_ids"] = [self.token_ids[place] for place in seen.tolist()]
            found["token_rows"] = counts[seen].tolist()
            found["token_directions"] = _encoded(tokens[seen])
            found["projection"] = NAME
        return found


def _encoded(array: Floats) -> str:
    return b64encode(np.ascontiguousarray(array, "<f4").tobytes()).decode("ascii")


def _number(value: np.floating[Any]) -> float | None:
    return float(f"{value:.6g}") if np.isfinite(value) else None
