"""Putting the part together for one scheduler, and its thread."""

from __future__ import annotations

import importlib
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from specscope import __version__
from specscope_probe.accepts import TREE, drafts_of
from specscope_probe.info import engine_version
from specscope_probe.parts import Part, State
from specscope_probe.ranks import Rank
from specscope_probe.seams import owners
from specscope_probe.states.calibration import Calibrator
from specscope_probe.states.capture import CALIBRATION_RULE, Capture, decoder_of, hidden_size_of, read_capture
from specscope_probe.states.counts import StateCounts
from specscope_probe.states.device import Reducer
from specscope_probe.states.document import Identity
from specscope_probe.states.finishing import Finisher
from specscope_probe.states.limits import Learnt
from specscope_probe.states.link import Link
from specscope_probe.states.options import StateOptions
from specscope_probe.states.outbox import Outbox
from specscope_probe.states.pipeline import Pipeline
from specscope_probe.states.projection import matrix
from specscope_probe.states.pushing import Pusher
from specscope_probe.states.replay_files import ReplayFiles
from specscope_probe.states.replaying import ReplayKeeper
from specscope_probe.states.samples import CALIBRATION_PHASES, SERVING_PHASES
from specscope_probe.states.serving import ServingSampler
from specscope_probe.states.spool import Spool
from specscope_probe.wrapping import Seam

log = logging.getLogger("specscope_probe")


class StateProfiling:
    """State profiles of one scheduler. Made when the event loop begins; graphs are captured by then."""

    def __init__(self, scheduler: Any, rank: Rank, options: StateOptions) -> None:
        self.part = Part("states")
        self.counts = StateCounts()
        self._options = options
        self._rank = rank
        self._torch = importlib.import_module("torch")
        there = owners(scheduler)
        self._worker = there["worker"]
        self._runner = there["runner"]
        self._server_args = getattr(scheduler, "server_args", None)
        self._device = str(getattr(self._runner, "device", "cpu"))
        self._finisher: Finisher | None = None
        # Here and not at the first sample: this copy waits for the device.
        self._projection = self._torch.from_numpy(matrix(hidden_size_of(self._runner))).to(self._device)
        self._spool: Spool | None = None
        if rank.is_speaker and options.spool is not None:
            self._spool = Spool(options.spool, options.spool_bytes, rank.labels)
        self._pusher = self._make_pusher()
        self.parts = [self.part] if self._pusher is None else [self.part, self._pusher.part]
        self._listener: ServingSampler | Calibrator | None = None
        self._replays: ReplayKeeper | None = None

    def listen(self, seams: dict[str, Seam]) -> None:
        """Listen; why that cannot be is the part's reason."""
        try:
            self._listen(seams)
        except Exception as error:
            self.part.fail(error)

    def device_seconds(self) -> float | None:
        """Return what reducing samples has taken on the device; None: not known, or not judged: a launch for
        calibration is for nothing else.
        """
        return None if self._options.is_calibrating else self.counts.device_seconds

    def thin(self) -> bool:
        """Sample half as often; False: it is at its least, or there is nothing to thin."""
        return isinstance(self._listener, ServingSampler) and self._listener.thin()

    def activity(self) -> tuple[object, ...]:
        """Return what differs when there is something new to report."""
        counts = self.counts
        pushing = (*counts.pushes.values(), counts.push_waiting)
        return (*counts.files.values(), *counts.rows.values(), counts.check_sample, *pushing)

    def _listen(self, seams: dict[str, Seam]) -> None:
        if "forward" not in seams:
            self.part.switch_off(State.MISSING, "the engine has no forward to listen at")
            return
        if self._options.is_calibrating:
            if not self._rank.is_speaker:
                self.part.switch_off(State.NOT_HERE, "the first rank of the group calibrates")
                return
            self._listener = self._calibrator()
        else:
            self._listener = self._sampler()
            if self._options.is_replaying and self._options.spool is not None and self._rank.is_speaker:
                self._replays = ReplayKeeper(
                    self._torch, self._runner, ReplayFiles(self._options.spool), engine_version(),
                    self._is_capturing,
                )  # fmt: skip
                self._replays.listen(seams)
        self._listener.listen(seams)
        if self._pusher is not None:
            threading.Thread(target=self._pusher.run, name="specscope-push", daemon=True).start()

    def remove(self) -> None:
        """Take hooks away and let the thread end."""
        if isinstance(self._listener, Calibrator):
            self._listener.remove()
        if self._finisher is not None:
            self._finisher.entries.put(None)
        if self._pusher is not None:
            self._pusher.stop()

    def _make_pusher(self) -> Pusher | None:
        """Return what pushes to a server, if one is named and this rank has anything to push."""
        options = self._options
        if self._spool is None or not options.server:
            return None
        link = Link(options.server, options.token_file)
        if link.is_clear_text:
            log.warning("specscope: %s is not https: the token can be read on the way", options.server)
        rank = ",".join(f"{name}={value}" for name, value in sorted(self._rank.labels.items()))
        collector_id = f"probe:{options.server_name}:push:{rank}"[:300]
        self.counts.push_waiting = 0
        outbox = Outbox(self._spool)
        return Pusher(Part("push"), link, options.server_name, outbox, collector_id, self.counts)

    def _sampler(self) -> ServingSampler:
        return ServingSampler(
            self._torch, self.part, self._options, self.counts, self._serving_pipeline,
            is_tree=drafts_of(self._worker) == TREE, is_speaker=self._rank.is_speaker,
            is_capturing=self._is_capturing,
        )  # fmt: skip

    def _calibrator(self) -> Calibrator:
        boundaries = len(decoder_of(self._runner.model).layers) + 1
        hidden_size = hidden_size_of(self._runner)
        capture = Capture(
            None, tuple(range(boundaries)), CALIBRATION_RULE, hidden_size, boundaries * hidden_size,
            is_calibration=True,
        )  # fmt: skip
        pipeline = self._pipeline(capture, CALIBRATION_PHASES)
        return Calibrator(
            self._torch, self.part, self._options, self.counts, pipeline, self._runner.model,
            self._is_capturing,
        )  # fmt: skip

    def _serving_pipeline(self, width: int) -> Pipeline:
        return self._pipeline(
            read_capture(self._runner, width), SERVING_PHASES, lambda: read_capture(self._runner, width)
        )

    def _pipeline(
        self, capture: Capture, phases: tuple[str, ...], look: Callable[[], Capture | None] = lambda: None
    ) -> Pipeline:
        with self._torch.inference_mode():
            reducer = Reducer(
                self._torch, self._device, capture.hidden_size, capture.slots, len(phases),
                self._options.rows, self._projection,
            )  # fmt: skip
        learnt = Learnt(capture.slots, self._options.token_ids)
        finisher = Finisher(
            self.part, self._identity(), replace(capture), phases, learnt, self.counts, reducer.give_back,
            self._spool, self._pusher.wake if self._pusher is not None else lambda: None,
        )  # fmt: skip
        threading.Thread(target=finisher.run, name="specscope-states", daemon=True).start()
        self._finisher = finisher
        return Pipeline(reducer, finisher, self._options, self.counts, self._is_capturing, look)

    def _identity(self) -> Identity:
        seed = getattr(self._server_args, "random_seed", None)
        return Identity(
            rank=self._rank.labels,
            engine_version=engine_version(),
            model_class=type(self._runner.model).__name__[:100],
            probe_version=__version__,
            started_ms=int(time.time() * 1000),
            random_seed=seed if type(seed) is int else None,
        )

    def _is_capturing(self) -> bool:
        return self._device.startswith("cuda") and bool(self._torch.cuda.is_current_stream_capturing())
