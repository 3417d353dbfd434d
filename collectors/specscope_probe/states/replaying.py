"""Whole rows of requests that ask for it by their id, so that training samples can be compared row by row.

Off unless ``SPECSCOPE_PROBE_REPLAY=1``. A request whose id is ``specscope-replay-RUN-SAMPLE`` leaves the
states of its prefill in the spool, a file for each chunk. Nothing is kept of other requests, and no token id
is written.
"""

from __future__ import annotations

import json
import logging
import queue
import re
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from specscope_probe.parts import Part
from specscope_probe.states.buffers import is_done
from specscope_probe.states.capture import read_capture
from specscope_probe.states.forwards import PREFILL_MODE, extend_lengths, forward_batch_of, states_of
from specscope_probe.states.replay_files import ReplayFiles
from specscope_probe.wrapping import Seam

log = logging.getLogger("specscope_probe")

REQUEST = re.compile(r"specscope-replay-([0-9a-f]{8,32})-([0-9]{1,5})")
MOST_ROWS = 2_048
"""Of one chunk; the rest of it is left out."""
MOST_WAITING = 16
"""Chunks on their way from the device at a time; more are left out."""
DTYPES = {"torch.bfloat16": "bfloat16", "torch.float16": "float16", "torch.float32": "float32"}


@dataclass(frozen=True, slots=True)
class Chunk:
    """Rows of one prefill of a replay, on their way to host memory."""

    run: str
    sample: int
    start: int
    rows: Any
    description: str
    done: Any
    """Event of the device; None = there is no device."""


class ReplayKeeper:
    """Listens at the seams. Device calls are made by the scheduler's thread alone; a thread writes files."""

    def __init__(
        self, torch: Any, runner: Any, files: ReplayFiles, engine_version: str,
        is_capturing: Callable[[], bool],
    ) -> None:  # fmt: skip
        self.part = Part("replay")
        self._torch = torch
        self._runner = runner
        self._files = files
        self._engine_version = engine_version
        self._is_capturing = is_capturing
        self._batch: Any = None
        self._waiting: deque[Chunk] = deque()
        self._entries: queue.SimpleQueue[Chunk | None] = queue.SimpleQueue()

    def listen(self, seams: dict[str, Seam]) -> None:
        """Listen, and start the thread."""
        seams["cycle"].listen(
            self.part, before=self._enter, after=lambda *_: self._forget(), failed=self._forget
        )
        seams["forward"].listen(self.part, after=self._after_forward)
        threading.Thread(target=self._write, name="specscope-replay", daemon=True).start()

    def remove(self) -> None:
        """Let the thread end."""
        self._entries.put(None)

    def _enter(self, now: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._batch = args[0] if args else next(iter(kwargs.values()))
        self._hand_on()

    def _forget(self) -> None:
        self._batch = None

    def _after_forward(self, now: int, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        forward_batch = forward_batch_of(args, kwargs)
        requests = getattr(self._batch, "reqs", None)
        if forward_batch.forward_mode.name != PREFILL_MODE or not requests or self._is_capturing():
            return
        asked = [REQUEST.fullmatch(str(request.rid)) for request in requests]
        if not any(asked):
            return
        states, lengths = states_of(result), extend_lengths(forward_batch)
        if states is None or lengths is None or len(lengths[1]) != len(requests):
            return
        first = 0
        for match, prefix, length in zip(asked, *lengths, strict=True):
            if match is not None and first + length <= states.shape[0]:
                self._take(match, states[first : first + min(length, MOST_ROWS)], prefix)
            first += length
        self._hand_on()

    def _take(self, match: re.Match[str], rows: Any, start: int) -> None:
        if len(self._waiting) >= MOST_WAITING or str(rows.dtype) not in DTYPES:
            return
        with self._torch.inference_mode():
            is_device = rows.is_cuda
            host = self._torch.empty(rows.shape, dtype=rows.dtype, pin_memory=is_device)
            host.copy_(rows, non_blocking=True)
            done = self._torch.cuda.Event() if is_device else None
            if done is not None:
                done.record()
        description = self._description(int(rows.shape[1]), DTYPES[str(rows.dtype)])
        self._waiting.append(Chunk(match[1], int(match[2]), start, host, description, done))

    def _hand_on(self) -> None:
        """Give the thread what the device is done with; the rest at the next cycle."""
        while self._waiting and not self._is_capturing() and is_done(self._waiting[0].done):
            self._entries.put(self._waiting.popleft())

    def _write(self) -> None:
        while (chunk := self._entries.get()) is not None:
            try:
                self._files.write(chunk.run, chunk.sample, chunk.start, self._arrays(chunk))
            except OSError as error:
                log.warning("specscope: rows of a replay are dropped: %s", error)
            except Exception as error:
                self.part.fail(error)
                return

    def _arrays(self, chunk: Chunk) -> dict[str, Any]:
        rows, dtype = chunk.rows, DTYPES[str(chunk.rows.dtype)]
        if dtype == "bfloat16":
            rows = rows.view(self._torch.int16)
        states = rows.numpy()
        return {
            "states": states.view(np.uint16) if dtype == "bfloat16" else states,
            "described": np.frombuffer(chunk.description.encode(), np.uint8),
        }

    def _description(self, width: int, dtype: str) -> str:
        """Return what rows are, as the engine captures now."""
        try:
            capture = read_capture(self._runner, width).described()
        except ValueError as error:
            capture = {"trouble": str(error)}
        whole = {"format": 1, "dtype": dtype, "engine_version": self._engine_version, "capture": capture}
        return json.dumps(whole)
