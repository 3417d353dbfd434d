"""What a collector has stored of its target, where it goes on, and who else stores under its name."""

from __future__ import annotations

import structlog

from specscope_collectors import checkpoint
from specscope_collectors.increments import CheckpointError
from specscope_collectors.launches import Known
from specscope_collectors.observations import Batch, HealthState, Observation, Sink, Target
from specscope_collectors.tick import Committed

log = structlog.get_logger("specscope.collector")


class NotStoredError(Exception):
    """The sink did not store a batch."""


class Journal:
    """Puts batches of one target into the sink under one ``collector_id``."""

    def __init__(self, target: Target, collector_id: str, sink: Sink) -> None:
        self._target = target
        self._collector_id = collector_id
        self._sink = sink
        self._codec = checkpoint.KnownCodec()
        self._is_shared = False
        self._told = ""

    def resume(self) -> Committed | None:
        """Return the state that is stored; None when the store cannot be asked now."""
        try:
            resume = self._sink.resume(self._collector_id)
        except Exception as error:
            self.tell("store", "not readable", error=repr(error)[:300])
            return None
        if resume.checkpoint is None:
            return Committed(sequence=resume.sequence)
        try:
            memory, known = checkpoint.decode(resume.checkpoint)
        except CheckpointError as error:
            log.warning("starting anew", target=self._target.name, reason=str(error))
            return Committed(sequence=resume.sequence)
        return Committed(resume.sequence, memory, known)

    def store(self, after: Committed, observations: tuple[Observation, ...]) -> bool:
        """Store what leads to ``after``; False when another process stored this sequence first.

        Raises `NotStoredError`, having said so in the log.
        """
        batch = Batch(
            collector_id=self._collector_id,
            sequence=after.sequence,
            target=self._target,
            launch_key=_key(after.known),
            observations=observations,
            checkpoint=checkpoint.encode(after.memory, after.known, self._codec),
        )
        try:
            is_new = self._sink.apply(batch)
        except Exception as error:
            self.tell("store", "not stored", error=repr(error)[:300])
            raise NotStoredError from error
        if not is_new and not self._is_shared:
            self._is_shared = True
            remedy = "stop one of them; until then each stores what the other has not"
            log.warning("another process watches this target too", target=self._target.name, remedy=remedy)
        return is_new

    def tell(self, state: str, detail: str, **more: str) -> None:
        """Log a state once, when it begins."""
        if state != self._told:
            write = log.info if state == HealthState.OK.value else log.warning
            write("target state", target=self._target.name, state=state, detail=detail, **more)
            self._told = state


def _key(known: Known | None) -> str | None:
    return known.launch.key if known else None
