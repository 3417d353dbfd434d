"""Sampling the states that the draft is given: prefill after the forward, verify once rows are judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specscope_probe.parts import Part, State
from specscope_probe.states.counts import StateCounts
from specscope_probe.states.forwards import (
    PREFILL_MODE,
    VERIFY_MODE,
    UnknownAcceptsError,
    accepted_phases,
    extend_lengths,
    forward_batch_of,
    requests_of,
    states_of,
)
from specscope_probe.states.options import StateOptions
from specscope_probe.states.pipeline import Pipeline
from specscope_probe.states.requests import owners_named
from specscope_probe.states.rows import choose_prefill, choose_verify
from specscope_probe.wrapping import Seam

CHECK_EVERY = 16
"""Every so manieth sample is taken by all ranks of a group, to be compared."""
SPARSEST = 16
"""Taking every so manieth sample of each mode, and those that ranks compare, is the last step before none."""
PATIENCE = 16
"""Sampled forwards without any states after which the part is off."""
NO_STATES = "the target hands out no states here: there is no draft that asks for them"

MakePipeline = Callable[[int], Pipeline]
"""Makes the pipeline for states of a width, or raises ValueError."""


@dataclass(frozen=True, slots=True)
class Verifying:
    """A sampled verify forward between its end and the judging of its rows."""

    states: Any
    forward_batch: Any
    depth: int
    number: int


class ServingSampler:
    """Listens at the seams; decides on plain counters, so that all ranks of a group decide alike."""

    def __init__(
        self, torch: Any, part: Part, options: StateOptions, counts: StateCounts, make: MakePipeline, *,
        is_tree: bool, is_speaker: bool, is_capturing: Callable[[], bool],
    ) -> None:  # fmt: skip
        self.part = part
        self._torch = torch
        self._options = options
        self._counts = counts
        self._make = make
        self._is_tree = is_tree
        self._is_speaker = is_speaker
        self._is_capturing = is_capturing
        self._pipeline: Pipeline | None = None
        self._width = 0
        self._batch: Any = None
        self._verifying: Verifying | None = None
        self._every = {PREFILL_MODE: options.prefill_every, VERIFY_MODE: options.verify_every}
        self._forwards: Counter[str] = Counter()
        self._numbers = 0
        self._taken_every = 1
        """Of each mode's samples. All are numbered, so that numbers are the same in all ranks."""
        self._without_states = 0

    def listen(self, seams: dict[str, Seam]) -> None:
        """Listen at every seam that is needed."""
        seams["cycle"].listen(
            self.part, before=self._enter, after=lambda *_: self._forget(), failed=self._forget
        )
        seams["forward"].listen(self.part, after=self._after_forward)
        if "verify" in seams:
            seams["verify"].listen(self.part, after=self._after_verify)

    def thin(self) -> bool:
        """Take half as many samples; False: it takes the fewest already. Any thread may ask for it."""
        if self._taken_every >= SPARSEST:
            return False
        self._taken_every *= 2
        return True

    def _enter(self, now: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._batch = args[0] if args else next(iter(kwargs.values()))
        if self._pipeline is not None:
            self._pipeline.poll(now)

    def _forget(self) -> None:
        """Hold on to nothing of the engine's between cycles."""
        self._batch = self._verifying = None

    def _after_forward(self, now: int, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        forward_batch = forward_batch_of(args, kwargs)
        mode = forward_batch.forward_mode.name
        every = self._every.get(mode)
        if every is None:
            return
        turn = self._forwards[mode]
        self._forwards[mode] += 1
        if turn % every:
            return
        number = self._numbers
        self._numbers += 1
        is_mine = self._is_speaker and turn // every % self._taken_every == 0
        if self._is_capturing() or not (is_mine or number % CHECK_EVERY == 0):
            return
        states = states_of(result)
        if states is None:
            self._miss()
        elif self._is_ready(int(states.shape[-1])):
            with self._torch.inference_mode():
                if mode == PREFILL_MODE:
                    self._take_prefill(states, forward_batch, number)
                else:
                    depth = int(forward_batch.spec_info.draft_token_num)
                    self._verifying = Verifying(states, forward_batch, depth, number)

    def _miss(self) -> None:
        self._without_states += 1
        if self._without_states >= PATIENCE and self._pipeline is None:
            self.part.switch_off(State.MISSING, NO_STATES)

    def _is_ready(self, width: int) -> bool:
        """Make the pipeline when the first states come, and see that later ones have the same shape."""
        if self._pipeline is None:
            try:
                self._pipeline = self._make(width)
            except ValueError as error:
                self._counts.invariants["bad_width"] += 1
                self.part.switch_off(State.FAILED, str(error))
                return False
            self._width = width
        if width != self._width:
            self._counts.invariants["width_changed"] += 1
            return False
        return True

    def _take_prefill(self, states: Any, forward_batch: Any, number: int) -> None:
        lengths = extend_lengths(forward_batch)
        if lengths is None or sum(lengths[1]) > states.shape[0]:
            self._counts.dropped["not_all_rows"] += 1
            return
        are_checks, names = requests_of(self._batch, len(lengths[1]))
        rows, owners = choose_prefill(*lengths, are_checks, self._options.rows, number)
        owners = owners_named(owners, names)
        is_taken = self._reduce(states, forward_batch, rows, owners, number, (0,), None)
        self._counts.samples["prefill"] += is_taken

    def _after_verify(self, now: int, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        taken, self._verifying = self._verifying, None
        if taken is None:
            return
        rows = int(taken.states.shape[0])
        if not rows or rows % taken.depth:
            self._counts.dropped["not_all_rows"] += 1
            return
        with self._torch.inference_mode():
            try:
                phases = accepted_phases(self._torch, result, rows, taken.depth, is_tree=self._is_tree)
            except UnknownAcceptsError:
                self._every.pop(VERIFY_MODE)
                self._counts.dropped["not_judged"] += 1
                return
            are_checks, names = requests_of(self._batch, rows // taken.depth)
            chosen, owners = choose_verify(taken.depth, are_checks, self._options.rows, taken.number)
            owners = owners_named(owners, names)
            is_taken = self._reduce(
                taken.states, taken.forward_batch, chosen, owners, taken.number, (1, 2), phases
            )
        self._counts.samples["verify"] += is_taken

    def _reduce(
        self, states: Any, forward_batch: Any, rows: NDArray[np.int64], owners: NDArray[np.int64],
        number: int, phases: tuple[int, ...], phase_of: Any,
    ) -> bool:  # fmt: skip
        """Hand rows on; False: they were dropped, and it was counted why."""
        pipeline = self._pipeline
        assert pipeline is not None
        opened = pipeline.begin(rows, phases, forward_batch.input_ids, forward_batch.positions, phase_of)
        if opened is None:
            return False
        shape = (len(rows), pipeline.reducer.slots, pipeline.reducer.hidden_size)
        pipeline.reducer.add(opened, 0, states.index_select(0, opened.indices).view(shape))
        pipeline.finish(opened, owners, number if number % CHECK_EVERY == 0 else None)
        return True
