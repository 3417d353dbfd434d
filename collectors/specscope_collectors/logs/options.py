"""What a reader of a log must be told, and what it hands over."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, tzinfo
from typing import Protocol

from specscope_collectors.logs.blocks import Unpacked
from specscope_collectors.observations import Event, Launch, Observation

LAUNCH_BYTES = 1_024
"""A log's first bytes, which name the launch of lines before the first dump of arguments."""


def launch_name(beginning: bytes) -> str:
    """Return the name, the same whoever reads the log."""
    return hashlib.sha256(beginning[:LAUNCH_BYTES]).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOptions:
    """What the log itself does not say."""

    server: str
    fingerprint: str
    zone: tzinfo = UTC
    date: date | None = None
    year: int | None = None


class LogPortion(Protocol):
    """Observations of one launch."""

    @property
    def launch_key(self) -> str | None:
        """The launch they belong to."""
        ...

    @property
    def end(self) -> int:
        """Up to where in the log it reaches; grows strictly."""
        ...

    @property
    def records(self) -> Sequence[Launch | Event]:
        """Launches and events."""
        ...

    @property
    def observations(self) -> tuple[Observation, ...]:
        """All records, with the measurements."""
        ...


class AnyLogReader(Protocol):
    """Reads one engine's log, or its parts one after the other."""

    @property
    def first_ms(self) -> int | None:
        """Time of the first line that was used."""
        ...

    @property
    def found(self) -> bool:
        """Whether anything of this engine was found."""
        ...

    def read(self, log: Unpacked, *, done_to: int = 0) -> Iterator[LogPortion]:
        """Yield the portions of one part; one ends at ``done_to``, where a former reading ended."""
        ...

    def report(self) -> Iterator[str]:
        """Yield what was read, in words; complete when the portions are."""
        ...
