"""The whole history of one server: the newest segment, and older ones that were asked for later."""

from __future__ import annotations

from dataclasses import dataclass, field

import structlog

from specscope_collectors.increments import CheckpointError
from specscope_collectors.observations import Sink, SourceHealth
from specscope_collectors.sources.prometheus import SOURCE
from specscope_collectors.sources.prometheus.replay import Replay, Tally
from specscope_collectors.sources.prometheus.segment import Reading, Segment
from specscope_collectors.sources.prometheus.state import Place, State, decode

MAX_SEGMENTS = 50

log = structlog.get_logger("specscope.collector")


def collector_id(server: str, url: str) -> str:
    """Return under which id the history of a server is stored, whoever reads it."""
    return f"{SOURCE}:{server}@{url}"


@dataclass(slots=True)
class History:
    """Call `open` once, then `advance` until it returns True."""

    reading: Reading
    sink: Sink
    max_series: int
    tally: Tally = field(init=False)
    segments: list[Segment] = field(default_factory=list)
    """The newest first."""
    _reached: dict[str, int] = field(default_factory=dict)
    """Segment → up to where it was read in this process."""

    def open(self, since_ms: int) -> None:
        """Find what was read before: what ``since_ms`` asks for beyond that becomes a segment of its own."""
        newest = collector_id(self.reading.target.name, self.reading.api.url)
        name, bound_ms = newest, None
        for _ in range(MAX_SEGMENTS):
            segment = self._segment(name, since_ms, bound_ms)
            self.segments.append(segment)
            place = segment.state.place
            if place.asked_from_ms <= since_ms:
                break
            bound_ms = place.asked_from_ms if place.first_ms is None else place.first_ms
            # Not by the bound: that moves when the newer segment finds its first scrape after all.
            name = f"{newest}<{place.asked_from_ms}"
        self.tally = self.segments[0].replay.tally
        for segment in self.segments[1:]:
            segment.replay.tally = self.tally

    def _segment(self, name: str, since_ms: int, bound_ms: int | None) -> Segment:
        resume = self.sink.resume(name)
        state = None
        if resume.checkpoint is not None:
            try:
                state = decode(resume.checkpoint)
            except CheckpointError as error:
                log.warning("starting anew", history=name, reason=str(error))
        state = state or State(place=Place(asked_from_ms=since_ms, done_to_ms=since_ms))
        replay = Replay(self.max_series)
        return Segment(self.reading, replay, self.sink, name, state, resume.sequence, bound_ms)

    async def advance(self, until_ms: int, now_ms: int) -> bool:
        """Read and store the next chunk; return whether everything up to ``until_ms`` was read."""
        for segment in self.segments:
            if self._reached.get(segment.collector_id) == until_ms:
                continue
            if not await segment.advance(until_ms, now_ms):
                return False
            self._reached[segment.collector_id] = until_ms
        return True

    def done_ms(self, until_ms: int) -> int:
        """Return how much time was read, over all segments, in ms."""
        total = 0
        for segment in self.segments:
            place = segment.state.place
            end = until_ms if segment.bound_ms is None else min(until_ms, segment.bound_ms)
            is_done = self._reached.get(segment.collector_id) == until_ms
            total += max(0, (end if is_done else min(place.done_to_ms, end)) - place.asked_from_ms)
        return total

    def tell(self, health: SourceHealth) -> None:
        """Store how reading went."""
        self.segments[0].tell(health)
