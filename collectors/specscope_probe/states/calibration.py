"""Calibration: the input of every decoder layer and of the final norm, boundaries 0 … n, during prefill.

It needs an engine whose prefill runs without graphs, as it listens at modules, and that has every layer's
output at hand: where a sum over ranks is left to the next layer there is nothing to read.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from specscope_probe.parts import Part, State
from specscope_probe.states.capture import decoder_of
from specscope_probe.states.counts import StateCounts
from specscope_probe.states.device import Open
from specscope_probe.states.forwards import PREFILL_MODE, extend_lengths, forward_batch_of, requests_of
from specscope_probe.states.options import StateOptions
from specscope_probe.states.pipeline import Pipeline
from specscope_probe.states.requests import owners_named
from specscope_probe.states.rows import choose_prefill
from specscope_probe.wrapping import Seam

GRAPHS = "prefill runs in a graph here; start the engine without (--disable-cuda-graph and its like)"
PARTIAL = "a layer leaves its sum over ranks to the next; calibrate with one rank"


class NotReadableError(RuntimeError):
    """What a layer is given is not the residual stream."""


def layer_input(layer: Any, args: tuple[Any, ...], kwargs: dict[str, Any], rows: int) -> tuple[Any, Any]:
    """Return (states, residual or None) that a layer is given; their sum is the boundary.

    Up to 0.5.20 and in models that have not moved, both are arguments. From 0.5.23 on the residual stands
    in a stream of the batch. Raises NotReadableError.
    """
    given = inspect.signature(layer.forward).bind(*args, **kwargs).arguments
    states, residual = given.get("hidden_states"), given.get("residual")
    stream = getattr(given.get("forward_batch"), "residual_stream", None)
    if "residual" not in given and stream is not None:
        pending = stream.pending
        if pending is not None:
            if pending.owed is not None or not pending.update.is_plain_add:
                raise NotReadableError(PARTIAL)
            states, residual = pending.value, stream.residual
    _check_rows(states, residual, rows)
    if states is None or getattr(states, "_sglang_needs_allreduce_fusion", False):
        raise NotReadableError(PARTIAL)
    return states, residual


def norm_input(args: tuple[Any, ...], rows: int) -> tuple[Any, Any]:
    """Return (states, residual or None) that the final norm is given. Raises NotReadableError."""
    states, residual = args[0], args[1] if len(args) > 1 else None
    _check_rows(states, residual, rows)
    return states, residual


def _check_rows(states: Any, residual: Any, rows: int) -> None:
    for tensor in (states, residual):
        if tensor is not None and (not hasattr(tensor, "shape") or tensor.shape[0] < rows):
            raise NotReadableError("a layer is given fewer rows than there are tokens")


class Calibrator:
    """Hooks on the target's modules, which do nothing but in a sampled prefill."""

    def __init__(
        self, torch: Any, part: Part, options: StateOptions, counts: StateCounts, pipeline: Pipeline,
        model: Any, is_capturing: Callable[[], bool],
    ) -> None:  # fmt: skip
        self.part = part
        self._torch = torch
        self._options = options
        self._counts = counts
        self._pipeline = pipeline
        self._decoder = decoder_of(model)
        self._is_capturing = is_capturing
        self._handles: list[Any] = []
        self._batch: Any = None
        self._forwards = 0
        self._open: Open | None = None
        self._owners: Any = None
        self._next = 0
        self._rows = 0
        """Rows that every layer must be given."""

    def listen(self, seams: dict[str, Seam]) -> None:
        """Listen at the seams and hook the modules."""
        seams["cycle"].listen(self.part, before=self._enter, failed=self._forget)
        seams["forward"].listen(
            self.part, before=self._before_forward, after=self._after_forward, failed=self._forget
        )
        for boundary, layer in enumerate(self._decoder.layers):
            hook = self._layer_hook(boundary)
            self._handles.append(layer.register_forward_pre_hook(hook, with_kwargs=True))
        last = len(self._decoder.layers)
        self._handles.append(self._decoder.norm.register_forward_pre_hook(self._norm_hook(last)))

    def remove(self) -> None:
        """Take the hooks away."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def _enter(self, now: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._batch = args[0] if args else next(iter(kwargs.values()))
        self._pipeline.poll(now)

    def _forget(self) -> None:
        if self._open is not None:
            self.part.switch_off(State.FAILED, "the engine raised within a sampled prefill")
        self._open = self._batch = None

    def _before_forward(self, now: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        forward_batch = forward_batch_of(args, kwargs)
        if forward_batch.forward_mode.name != PREFILL_MODE or self._is_capturing():
            return
        turn = self._forwards
        self._forwards += 1
        lengths = extend_lengths(forward_batch)
        if turn % self._options.prefill_every or lengths is None:
            return
        are_checks, names = requests_of(self._batch, len(lengths[1]))
        rows, owners = choose_prefill(*lengths, are_checks, self._options.rows, turn)
        with self._torch.inference_mode():
            self._open = self._pipeline.begin(rows, (0,), forward_batch.input_ids, forward_batch.positions)
        self._owners = owners_named(owners, names)
        self._next = 0
        self._rows = sum(lengths[1])

    def _layer_hook(self, boundary: int) -> Callable[..., None]:
        def hook(layer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            if self._open is not None and self.part.is_on:
                try:
                    self._take(boundary, *layer_input(layer, args, kwargs, self._rows))
                except Exception as error:
                    self._refuse(error)

        return hook

    def _norm_hook(self, boundary: int) -> Callable[..., None]:
        def hook(norm: Any, args: tuple[Any, ...]) -> None:
            if self._open is not None and self.part.is_on:
                try:
                    self._take(boundary, *norm_input(args, self._rows))
                except Exception as error:
                    self._refuse(error)

        return hook

    def _refuse(self, error: Exception) -> None:
        self._open = None
        if isinstance(error, NotReadableError):
            self.part.switch_off(State.MISSING, str(error))
        else:
            self.part.fail(error)

    def _take(self, boundary: int, states: Any, residual: Any) -> None:
        if boundary != self._next or self._open is None:
            return  # a model that runs a layer twice; the forward is dropped when it ends
        with self._torch.inference_mode():
            rows = states.index_select(0, self._open.indices)
            if residual is not None:
                rows = rows + residual.index_select(0, self._open.indices)
            self._pipeline.reducer.add(self._open, boundary, rows.unsqueeze(1))
        self._next += 1

    def _after_forward(self, now: int, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        opened, self._open = self._open, None
        if opened is None:
            return
        if self._next != self._pipeline.reducer.slots:
            self._counts.dropped["not_captured"] += 1
            is_graph = bool(getattr(result, "can_run_graph", False)) or self._next == 0
            reason = GRAPHS if is_graph else f"only {self._next} boundaries were seen in one prefill"
            self.part.switch_off(State.MISSING, reason)
            return
        with self._torch.inference_mode():
            self._pipeline.finish(opened, self._owners, None)
        self._counts.samples["calibration"] += 1
