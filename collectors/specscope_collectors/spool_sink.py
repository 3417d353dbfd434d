"""The spool as a `Sink`: collectors do not know whether the server is in their process or far away."""

from __future__ import annotations

import threading

from specscope_collectors.clock import Clock, system_clock
from specscope_collectors.observations import Batch, Event, Resume, Target
from specscope_collectors.spool import Spool
from specscope_collectors.spool_notices import Notice

COLLECTOR_ID = "spool"


class SpoolSink:
    """Keeps batches in a spool, and what happened to it as events among them."""

    def __init__(self, spool: Spool, collector: Target, clock: Clock = system_clock) -> None:
        """``collector``: what events that concern no watched server are reported of."""
        self._spool = spool
        self._collector = collector
        self._clock = clock
        self._telling = threading.Lock()

    def resume(self, collector_id: str) -> Resume:
        """Return where the collector left off, as the spool knows it."""
        return self._spool.resume(collector_id)

    def apply(self, batch: Batch) -> bool:
        """Keep the batch; False when its sequence was there before."""
        is_new = self._spool.append(batch)
        self.tell()
        return is_new

    def tell(self, *, at_once: bool = False) -> None:
        """Put what happened to the spool into it. Telling may make more happen, which waits for next time."""
        with self._telling:
            for notice in self._spool.take_notices(at_once=at_once):
                self._spool.append(self._batch(notice))

    def _batch(self, notice: Notice) -> Batch:
        event = Event(kind=notice.kind, time_ms=self._clock(), message=notice.message, detail=notice.detail)
        return Batch(
            collector_id=COLLECTOR_ID,
            sequence=self._spool.resume(COLLECTOR_ID).sequence + 1,
            target=notice.target or self._collector,
            observations=(event,),
        )
