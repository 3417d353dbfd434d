"""Reports of the collector about itself: files, discoveries and spool, as sources of the collector."""

from __future__ import annotations

from collections.abc import Sequence

from specscope_collectors.observations import Batch, Observation, Resume, Sink, Target

REPORT_SECONDS = 10.0
"""At least so often the state is said again, so that silence means that the collector stopped."""


class OwnHealth:
    """One reporter with its own sequence; ``checkpoint`` is what it must know after a restart."""

    def __init__(self, sink: Sink, collector: Target, name: str) -> None:
        self.collector_id = f"{collector.name}/{name}"
        self._sink = sink
        self._collector = collector
        self._sequence: int | None = None

    def resume(self) -> bytes | None:
        """Return the checkpoint of the last stored report. Raises what the sink raises."""
        resume = self._read()
        return resume.checkpoint

    def report(self, observations: Sequence[Observation], checkpoint: bytes | None = None) -> None:
        """Store. Raises when it was not stored; then the same may be said again."""
        sequence = (self._read().sequence if self._sequence is None else self._sequence) + 1
        self._sequence = None  # asked anew unless it is stored
        self._sink.apply(
            Batch(
                collector_id=self.collector_id,
                sequence=sequence,
                target=self._collector,
                observations=tuple(observations),
                checkpoint=checkpoint,
            )
        )
        self._sequence = sequence

    def _read(self) -> Resume:
        resume = self._sink.resume(self.collector_id)
        self._sequence = resume.sequence
        return resume
