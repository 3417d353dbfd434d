"""Reducing sampled rows to sums, on the device and the stream that the engine is using.

Nothing here waits for the device, looks at a value of it, or changes a tensor of the engine. Arithmetic is
float32. Every operation is also right on the CPU, where the tests compare it with float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specscope_probe.states.buffers import FIRST_VALUES, SKETCH, Buffer, Sums
from specscope_probe.states.projection import SIZE
from specscope_probe.states.rows import HEAD

SEEN = 1 << 18
"""Places to note in which token ids stood where; of two that fall into one, the later is left out."""
BUFFERS = 8
"""Sampled forwards that may be on their way at a time; more are dropped and counted."""


@dataclass(slots=True)
class Open:
    """A sampled forward that is being reduced; tensors are on the device."""

    buffer: Buffer
    rows: int
    phases: slice
    """Phases that its rows may have."""
    indices: Any
    thresholds: Any
    in_phase: Any
    """Per phase: which rows have it and stand behind the first positions. Shape (phases, rows)."""
    token_places: Any
    """Row → its place among the token ids; None as long as these are not known."""
    is_new: Any = None
    """Which rows have a token id at a position where no row of the window had it: a prefix that requests
    share counts once."""
    small: dict[str, Any] = field(default_factory=dict)


class Reducer:
    """Sums of one process. Used by the scheduler's thread alone, always in inference mode."""

    def __init__(
        self, torch: Any, device: Any, hidden_size: int, slots: int, phases: int, rows: int,
        projection: Any,
    ) -> None:  # fmt: skip
        self.torch = torch
        self.is_device = torch.device(device).type == "cuda"
        self.rows = rows
        self.slots = slots
        self.hidden_size = hidden_size
        self._device = device
        self._phases = phases
        self._free = [Buffer(torch, rows, slots, is_device=self.is_device) for _ in range(BUFFERS)]
        self._projection = torch.as_tensor(projection).to(device)
        self._channels = torch.zeros((phases, slots, 3, hidden_size), device=device)
        self._tokens = torch.zeros((phases, slots, 1, SIZE), device=device)
        self._distinct = torch.zeros((phases, slots), device=device)
        self._seen = torch.zeros(SEEN, dtype=torch.bool, device=device)
        self._ids: Any = None
        self._stream: Any = None

    def can_begin(self) -> bool:
        """Say whether a buffer is free."""
        return bool(self._free)

    def set_token_ids(self, ids: Sequence[int]) -> None:
        """Begin to keep directions of these token ids, in ascending order."""
        host = self.torch.tensor(list(ids), dtype=self.torch.int64, pin_memory=self.is_device)
        self._ids = host.to(self._device, non_blocking=True)
        self._pinned_ids = host  # until the copy is done, and longer
        shape = (self._phases, self.slots, len(ids) + 1, SIZE)
        self._tokens = self.torch.zeros(shape, device=self._device)

    def begin(
        self, chosen: NDArray[np.int64], thresholds: NDArray[np.float32], phases: tuple[int, ...],
        ids: Any, positions: Any, phase_of: Any = None,
    ) -> Open:  # fmt: skip
        """Start with the rows at ``chosen``; ``ids``, ``positions`` and ``phase_of`` are of all rows.

        ``phase_of`` None: all rows have the only phase. ``phases`` are successive numbers.
        """
        self._follow_stream()
        buffer = self._free.pop()
        rows = len(chosen)
        if buffer.began is not None:
            buffer.began.record()
        buffer.indices.numpy()[:rows] = chosen
        buffer.thresholds.numpy()[:] = thresholds
        indices = buffer.indices[:rows].to(self._device, non_blocking=True)
        small = {"ids": ids.index_select(0, indices), "positions": positions.index_select(0, indices)}
        if phase_of is None:
            small["phases"] = self.torch.full_like(indices, phases[0])
        else:
            small["phases"] = phase_of.index_select(0, indices)
        is_body = small["positions"] >= HEAD
        of = slice(phases[0], phases[-1] + 1)
        numbers = self.torch.arange(of.start, of.stop, device=self._device)
        in_phase = (small["phases"] == numbers.unsqueeze(1)) & is_body
        shapes = {"ln_norms": (), "sketches": (SKETCH,), "first_values": (FIRST_VALUES,)}
        for name, tail in shapes.items():
            small[name] = self.torch.empty((rows, self.slots, *tail), device=self._device)
        places = self._token_places(small["ids"])
        limits = buffer.thresholds.to(self._device, non_blocking=True)
        is_new = self._is_new(small, is_summed=not np.isneginf(thresholds).any())
        return Open(buffer, rows, of, indices, limits, in_phase, places, is_new, small)

    def add(self, opened: Open, first: int, states: Any) -> None:
        """Add the states [rows, m, H] of slots ``first`` … ``first + m − 1``; they are ours to change."""
        torch = self.torch
        slots = slice(first, first + states.shape[1])
        values = states.float()
        norms = torch.linalg.vector_norm(values, dim=-1)
        opened.small["first_values"][:, slots] = values[..., :FIRST_VALUES]
        is_good = (norms > 0) & (norms < torch.inf)
        is_bad = ~is_good
        ln_norms = norms.log()
        opened.small["ln_norms"][:, slots] = ln_norms
        values.masked_fill_(is_bad.unsqueeze(-1), 0.0)
        units = values / norms.masked_fill(is_bad, 1.0).unsqueeze(-1)
        is_other = is_good & (ln_norms <= opened.thresholds[slots])
        projected = (units.view(-1, self.hidden_size) @ self._projection).view(*norms.shape, SIZE)
        opened.small["sketches"][:, slots] = projected[..., :SKETCH]
        # Shape (phases, rows, m, 1): all phases at once, as each call costs the host its launch.
        weights = (opened.in_phase.unsqueeze(-1) & is_other).unsqueeze(-1).float()
        sums = self._channels[opened.phases, slots]
        sums[:, :, 0].add_((units * weights).sum(1))
        if opened.token_places is not None:
            tokens = (projected * weights).transpose(1, 2)
            self._tokens[opened.phases, slots].index_add_(2, opened.token_places, tokens)
        units.square_()
        values.square_()
        sums[:, :, 1].add_((units * weights).sum(1))
        weights *= opened.is_new.view(-1, 1, 1)
        sums[:, :, 2].add_((values * weights).sum(1))
        self._distinct[opened.phases, slots].add_(weights.sum(1).squeeze(-1))

    def finish(self, opened: Open) -> Buffer:
        """Send what is small to the host; the buffer may be read once its ``done`` has passed."""
        for name, tensor in opened.small.items():
            getattr(opened.buffer, name)[: opened.rows].copy_(tensor, non_blocking=True)
        if opened.buffer.done is not None:
            opened.buffer.done.record()
        return opened.buffer

    def give_back(self, buffer: Buffer) -> None:
        """Take a buffer that has been read."""
        self._free.append(buffer)

    def take_sums(self) -> Sums:
        """Send the sums to the host and begin anew at zero."""
        self._follow_stream()
        host = [self._sent(each) for each in (self._channels, self._tokens, self._distinct)]
        for each in (self._channels, self._tokens, self._distinct, self._seen):
            each.zero_()
        sums = Sums(host[0], host[1], distinct=host[2])
        if self.is_device:
            sums.done = self.torch.cuda.Event()
            sums.done.record()
        return sums

    def _sent(self, tensor: Any) -> Any:
        host = self.torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=self.is_device)
        return host.copy_(tensor, non_blocking=True)

    def _is_new(self, small: dict[str, Any], *, is_summed: bool) -> Any:
        """Note which token ids stand where, and return which rows are the first; earlier ones are looked for
        among the rows themselves, too. Before limits are known rows go into no sum, and none is noted.
        """
        torch = self.torch
        ids, positions, phases = (small[name].to(torch.int64) for name in ("ids", "positions", "phases"))
        places = ((ids * 1_000_003 + positions) * self._phases + phases) % SEEN
        is_again = (places.unsqueeze(1) == places.unsqueeze(0)).tril(-1).any(1)
        is_new = ~(self._seen[places] | is_again)
        if is_summed:
            self._seen.index_fill_(0, places, True)
        return is_new

    def _token_places(self, ids: Any) -> Any:
        if self._ids is None:
            return None
        places = self.torch.searchsorted(self._ids, ids).clamp_(max=len(self._ids) - 1)
        return self.torch.where(self._ids[places] == ids, places, len(self._ids))

    def _follow_stream(self) -> None:
        """The sums belong to one stream at a time; should the engine change it, the new one goes after."""
        if not self.is_device:
            return
        stream = self.torch.cuda.current_stream()
        if self._stream is not None and stream != self._stream:
            stream.wait_stream(self._stream)
        self._stream = stream
