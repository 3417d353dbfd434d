"""How far the history of one server was read, and what must be remembered to go on."""

from __future__ import annotations

import msgspec

from specscope_collectors import checkpoint
from specscope_collectors.alternation import NOTHING, Seen
from specscope_collectors.increments import CheckpointError, CounterMemory, LabelPairs, SeriesKey
from specscope_collectors.launches import Known

FORMAT = 1
PATIENCE_MS = 60_000
"""A scrape that comes later than this, or than some intervals, is not directly after the one before it."""
_INTERVALS = 2.5


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where reading stands; times are epoch milliseconds of the API."""

    asked_from_ms: int
    """Beginning of what was read."""
    done_to_ms: int
    """Everything up to here was read."""
    first_ms: int | None = None
    """First good scrape."""
    last_ms: int | None = None
    """Last good scrape."""
    failed: bool = True
    """No good scrape directly before."""
    changed_ms: int | None = None
    """Last time at which it came, came back, or a counter fell."""
    interval_ms: int | None = None
    """Shortest time between two scrapes, as far as seen."""
    witness: LabelPairs = ()
    started: float | None = None
    added: tuple[str, ...] = ()
    """Names of labels that the scraper adds."""
    close_to_ms: int = 0
    """Up to here every scrape is read although a grid would do: it showed that something happened."""

    @property
    def patience_ms(self) -> int:
        """Time without a scrape after which something is missing."""
        return max(PATIENCE_MS, int(_INTERVALS * (self.interval_ms or 0)))


class State(msgspec.Struct, frozen=True, kw_only=True):
    """All of it: as of the last stored batch, or on the way to the next."""

    place: Place
    memory: CounterMemory = CounterMemory()
    known: Known | None = None
    seen: Seen = NOTHING


class _Wire(msgspec.Struct, array_like=True):
    format: int
    place: Place
    rest: bytes
    seen: Seen = NOTHING
    """Without its counters."""
    last: bytes | None = None
    """These; None when they are what the memory has of its last scrape, as they mostly are."""


def encode(state: State, codec: checkpoint.KnownCodec) -> bytes:
    """Return a checkpoint."""
    rest = checkpoint.encode(state.memory, state.known, codec)
    last = state.seen.last
    apart = None if last == _last_of(state.memory) else _packed(last)
    seen = msgspec.structs.replace(state.seen, last={})
    return msgspec.msgpack.encode(_Wire(FORMAT, state.place, rest, seen, apart))


def _last_of(memory: CounterMemory) -> dict[SeriesKey, float]:
    """Return what the last scrape said that was remembered."""
    return {key: value for key, (value, at_ms) in memory.counters.items() if at_ms == memory.scraped_ms}


def _packed(counters: dict[SeriesKey, float]) -> bytes:
    return CounterMemory(None, {key: (value, 0) for key, value in counters.items()}).encode()


def _unpacked(data: bytes) -> dict[SeriesKey, float]:
    return {key: value for key, (value, _) in CounterMemory.decode(data).counters.items()}


def decode(data: bytes) -> State:
    """Return what `encode` was given. Raises `CheckpointError`."""
    try:
        wire = msgspec.msgpack.decode(data, type=_Wire)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise CheckpointError(f"checkpoint of {len(data)} bytes cannot be read: {error}") from error
    if wire.format != FORMAT:
        raise CheckpointError(f"checkpoint has format {wire.format}, this version reads {FORMAT}")
    memory, known = checkpoint.decode(wire.rest)
    last = _last_of(memory) if wire.last is None else _unpacked(wire.last)
    seen = msgspec.structs.replace(wire.seen, last=last)
    return State(place=wire.place, memory=memory, known=known, seen=seen)
