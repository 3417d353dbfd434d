"""The thread that turns samples and sums into files, with numpy, away from the scheduler's thread."""

from __future__ import annotations

import logging
import queue
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from specscope_probe.parts import Part
from specscope_probe.states.buffers import Buffer, Sums
from specscope_probe.states.capture import Capture
from specscope_probe.states.counts import StateCounts
from specscope_probe.states.document import Identity, as_arrays, document, packed
from specscope_probe.states.invariants import is_embedding
from specscope_probe.states.limits import Learnt
from specscope_probe.states.requests import Seen
from specscope_probe.states.samples import OTHER, PREFILL, VERIFY_ACCEPTED, Origin, Sample, read_buffer
from specscope_probe.states.sketch import median
from specscope_probe.states.spool import Spool
from specscope_probe.states.window import Window

log = logging.getLogger("specscope_probe")

ENOUGH_TO_COMPARE = 64
GROSS = 0.5
"""Nats between the medians of ln‖h‖ in prefill and verify: other text makes a fraction of that."""


@dataclass(frozen=True, slots=True)
class Taken:
    """A sampled forward that the device is done with."""

    buffer: Buffer
    origin: Origin


Entry = Taken | Sums | None


class Finisher:
    """Entries come in the order in which the device did them; None ends the thread."""

    def __init__(
        self, part: Part, identity: Identity, capture: Capture, phases: tuple[str, ...], learnt: Learnt,
        counts: StateCounts, give_back: Callable[[Buffer], None], spool: Spool | None,
        written: Callable[[], None] = lambda: None,
    ) -> None:  # fmt: skip
        self.part = part
        self.learnt = learnt
        self.entries: queue.SimpleQueue[Entry] = queue.SimpleQueue()
        self._identity = identity
        self._capture = capture
        self._phases = phases
        self._counts = counts
        self._give_back = give_back
        self._spool = spool
        """None: this rank only takes part in the comparison of ranks."""
        self._written = written
        """Told when there is a new file."""
        self._seen = Seen()
        self._window = self._new_window()

    def run(self) -> None:
        """Work until told to stop; an exception switches the part off, and the rest is thrown away."""
        while (entry := self.entries.get()) is not None:
            try:
                self.take(entry)
            except Exception as error:
                self.part.fail(error)

    def take(self, entry: Taken | Sums) -> None:
        """Add a sample to the window, or end the window."""
        if isinstance(entry, Sums):
            self._end_window(entry)
            return
        sample = read_buffer(entry.buffer, entry.origin)
        self._give_back(entry.buffer)
        if sample.origin.check is not None:
            self._check(sample)
        if self._spool is None:
            return
        self._count_bad(sample)
        self.learnt.add(sample)
        if np.isneginf(sample.origin.thresholds).any():
            self._counts.dropped["no_limit"] += 1
            return
        self._window.add(sample)
        for index, phase in enumerate(self._phases):
            self._counts.rows[phase] += int((sample.phases == index).sum())

    def _end_window(self, sums: Sums) -> None:
        window, self._window = self._window, self._new_window()
        self._capture = capture = sums.capture or self._capture
        if not window.tallies or self._spool is None:
            return
        self._look_for_faults(window)
        created_ms = int(time.time() * 1000)
        arrays = as_arrays(sums.channels, sums.tokens, sums.distinct)
        content = document(self._identity, capture, window, arrays, self.learnt.limits, created_ms)
        self.learnt.update_limits()
        try:
            self._spool.write(packed(content), created_ms)
        except OSError as error:
            self._counts.files["dropped"] += 1
            log.warning("specscope: a window of state profiles is dropped: %s", error)
        else:
            self._counts.files["written"] += 1
            self._written()

    def _new_window(self) -> Window:
        return Window(self._phases, self._capture.slots, int(time.time() * 1000), self._seen)

    def _check(self, sample: Sample) -> None:
        finite = np.where(np.isfinite(sample.ln_norms), sample.ln_norms, np.nan)
        if len(finite) and not np.isnan(finite).all(axis=0).any():
            self._counts.check_ln_norms = tuple(np.nanmean(finite, axis=0).tolist())
            self._counts.check_sample = sample.origin.check

    def _count_bad(self, sample: Sample) -> None:
        zero_rows = int(np.isneginf(sample.ln_norms).any(axis=1).sum())
        bad = ~np.isfinite(sample.ln_norms) & ~np.isneginf(sample.ln_norms)
        self._counts.invariants["zero_rows"] += zero_rows
        self._counts.invariants["nonfinite_rows"] += int(bad.any(axis=1).sum())

    def _look_for_faults(self, window: Window) -> None:
        for slot in range(window.slots):
            pairs = identical = 0
            for phase in self._phases:
                comparison = window.comparisons.get((phase, slot))
                if comparison is not None:
                    for kind, count in comparison.counts.items():
                        self._counts.invariants[kind] += count
                    pairs += comparison.counts["equal_id_pairs"]
                    identical += comparison.counts["equal_id_pairs_identical"]
            if is_embedding(pairs, identical) and not self._capture.is_calibration:
                self._counts.invariants["embedding"] += 1
            self._counts.invariants["capture_differs"] += _differs(window, slot)


def _differs(window: Window, slot: int) -> bool:
    """Say whether prefill and verify cannot have captured the same layer."""
    tallies = [window.tallies.get((phase, OTHER, slot)) for phase in (PREFILL, VERIFY_ACCEPTED)]
    bins = [tally.norms.bins for tally in tallies if tally is not None]
    if len(bins) < 2 or any(sum(each.values()) < ENOUGH_TO_COMPARE for each in bins):
        return False
    return abs(median(bins[0]) - median(bins[1])) > GROSS
