"""How far the history of one server was read, and what must be remembered to go on."""

from __future__ import annotations

import msgspec

from specscope_collectors import checkpoint
from specscope_collectors.increments import CheckpointError, CounterMemory, LabelPairs
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

    @property
    def patience_ms(self) -> int:
        """Time without a scrape after which something is missing."""
        return max(PATIENCE_MS, int(_INTERVALS * (self.interval_ms or 0)))


class State(msgspec.Struct, frozen=True, kw_only=True):
    """All of it: as of the last stored batch, or on the way to the next."""

    place: Place
    memory: CounterMemory = CounterMemory()
    known: Known | None = None


class _Wire(msgspec.Struct, array_like=True):
    format: int
    place: Place
    rest: bytes


def encode(state: State, codec: checkpoint.KnownCodec) -> bytes:
    """Return a checkpoint."""
    rest = checkpoint.encode(state.memory, state.known, codec)
    return msgspec.msgpack.encode(_Wire(FORMAT, state.place, rest))


def decode(data: bytes) -> State:
    """Return what `encode` was given. Raises `CheckpointError`."""
    try:
        wire = msgspec.msgpack.decode(data, type=_Wire)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise CheckpointError(f"checkpoint of {len(data)} bytes cannot be read: {error}") from error
    if wire.format != FORMAT:
        raise CheckpointError(f"checkpoint has format {wire.format}, this version reads {FORMAT}")
    memory, known = checkpoint.decode(wire.rest)
    return State(place=wire.place, memory=memory, known=known)
