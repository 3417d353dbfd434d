"""Labels of a target (rack, cluster, tenant …) travel with its launches."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from specscope_collectors.observations import Batch, Launch, Resume, Sink

LABELS_KEY = "target_labels"
"""Under this key they stand in a launch's configuration."""
MAX_LABELS, MAX_TEXT = 64, 500


class LabelledSink:
    """Passes batches on, with ``labels`` in the configuration of each launch."""

    def __init__(self, sink: Sink, labels: Mapping[str, str]) -> None:
        self._sink = sink
        kept = sorted(labels.items())[:MAX_LABELS]
        self._labels = {name[:MAX_TEXT]: value[:MAX_TEXT] for name, value in kept}

    def resume(self, collector_id: str) -> Resume:
        """Return where the collector left off."""
        return self._sink.resume(collector_id)

    def apply(self, batch: Batch) -> bool:
        """Store the batch."""
        if not any(isinstance(each, Launch) for each in batch.observations):
            return self._sink.apply(batch)
        observations = tuple(
            self._labelled(each) if isinstance(each, Launch) else each for each in batch.observations
        )
        return self._sink.apply(msgspec.structs.replace(batch, observations=observations))

    def _labelled(self, launch: Launch) -> Launch:
        return msgspec.structs.replace(launch, config={**launch.config, LABELS_KEY: self._labels})


def labelled(sink: Sink, labels: Mapping[str, str]) -> Sink:
    """Return ``sink`` if there is nothing to add."""
    return LabelledSink(sink, labels) if labels else sink
