"""Prometheus text format → samples: fast, bounded in memory, and refusing bad lines one by one.

Agrees with prometheus_client's parser on every sample that it accepts, except: ``…_created`` series are left
out, timestamps are checked and ignored, and a series that stands twice with different values is refused.
"""

from __future__ import annotations

import io
import re
from collections.abc import Collection
from dataclasses import dataclass, field

from specscope_collectors.exposition.lines import BadLineError, LineReader
from specscope_collectors.exposition.sniff import (
    NotAnExposition,
    refuse_other_formats,
    unknown_format,
)
from specscope_collectors.increments import LabelPairs

__all__ = ["Exposition", "NotAnExposition", "RawSeries", "parse_exposition"]

RawSeries = tuple[str, LabelPairs]
"""(sample name as written, sorted labels)."""

EXAMPLES = 5
"""How many refusals are told in words."""

MAX_NAMES = 10_000
"""Distinct sample names remembered for telling the engine version."""

_NAME = re.compile(rb"[a-zA-Z_:][a-zA-Z0-9_:]*")
_METRIC_COMMENT = re.compile(rb"#[ \t]*(?:TYPE|HELP|EOF)\b")
_EOF = b"# EOF"


@dataclass(slots=True)
class Exposition:
    """What one body said. ``samples`` keeps the order of the body; NaN and infinities are still in it."""

    samples: dict[RawSeries, float] = field(default_factory=dict)
    names: frozenset[str] = frozenset()
    """Every sample name seen, wanted or not (at most `MAX_NAMES`)."""
    lines: int = 0
    skipped: int = 0
    """Sample lines whose name is not wanted."""
    refused: int = 0
    refusals: list[str] = field(default_factory=list)
    """Up to `EXAMPLES` refusals in words, with line number and reason."""
    damaged: set[str] = field(default_factory=set)
    """Sample names of which a value was refused: sums over them would be short."""
    contradicted: set[RawSeries] = field(default_factory=set)
    """Series that stand more than once with different values; none of these is in ``samples``."""
    over_limit: int = 0
    """Values refused because ``max_series`` was reached."""
    is_truncated: bool = False
    """The body does not end with a line end (or OpenMetrics' ``# EOF``): the rest was cut off."""

    def refuse(self, name: str | None, reason: str) -> None:
        """Count one refused value and keep the first few reasons."""
        self.refused += 1
        if name is not None:
            self.damaged.add(name)
        if len(self.refusals) < EXAMPLES:
            self.refusals.append(reason)


def parse_exposition(body: bytes, *, max_series: int, wanted: Collection[str] | None) -> Exposition:
    """Return the samples of ``body`` whose names are ``wanted`` (None = all), at most ``max_series`` of them.

    Raise `NotAnExposition` if the body is something else than metrics.
    """
    refuse_other_formats(body)
    parse = _Parse(max_series, None if wanted is None else frozenset(name.encode() for name in wanted))
    for line in io.BytesIO(body):
        parse.line(line.strip())
    if not parse.is_exposition:
        raise unknown_format(body)
    return parse.finish(body)


class _Parse:
    """One body in progress."""

    def __init__(self, max_series: int, wanted: frozenset[bytes] | None) -> None:
        self.is_exposition = False
        self._found = Exposition()
        self._max_series = max_series
        self._wanted = wanted
        self._names: set[bytes] = set()
        self._contradicted: dict[RawSeries, int] = {}
        self._reader = LineReader()
        self._cut_off: set[str] = set()
        """Names that reached the limit: the rest of their lines is counted, not read, for that takes long."""

    def line(self, line: bytes) -> None:
        self._found.lines += 1
        if not line:
            return
        if line[0] == 0x23:  # '#'
            self.is_exposition = self.is_exposition or _METRIC_COMMENT.match(line) is not None
            return
        match = _NAME.match(line)
        name = match[0] if match else None
        if name is not None and not self._is_wanted(name):
            # One line that reads well proves that this is an exposition; the others need not be read.
            if not self.is_exposition:
                self.is_exposition = self._read(line) is not None
            self._found.skipped += 1
            return
        self._sample(line, name)

    def finish(self, body: bytes) -> Exposition:
        found = self._found
        for (name, labels), line in self._contradicted.items():
            del found.samples[name, labels]
            found.contradicted.add((name, labels))
            found.refuse(None, f"line {line}: {name} stands twice with the same labels and other values")
        found.names = frozenset(name.decode() for name in self._names)
        found.is_truncated = not body.endswith(b"\n") and not body[-64:].rstrip().endswith(_EOF)
        return found

    def _is_wanted(self, name: bytes) -> bool:
        if name not in self._names and len(self._names) < MAX_NAMES:
            self._names.add(name)
        return (self._wanted is None or name in self._wanted) and not name.endswith(b"_created")

    def _read(self, line: bytes) -> tuple[str, LabelPairs, float] | None:
        """Return the sample of a line; None, and nothing counted, if it is none."""
        try:
            return self._reader.read(line)
        except BadLineError:
            return None

    def _sample(self, line: bytes, name: bytes | None) -> None:
        found = self._found
        known = None if name is None else name.decode()
        if known in self._cut_off:
            found.over_limit += 1
            found.refused += 1
            return
        try:
            sample_name, labels, value = self._reader.read(line)
        except BadLineError as problem:
            found.refuse(known, f"line {found.lines}: {known or 'line'}: {problem}")
            return
        self.is_exposition = True
        if name is None and not self._is_wanted(sample_name.encode()):
            found.skipped += 1
            return
        self._keep((sample_name, labels), value)

    def _keep(self, series: RawSeries, value: float) -> None:
        found = self._found
        before = found.samples.get(series)
        if before is not None:
            if before != value and not (before != before and value != value):
                self._contradicted.setdefault(series, found.lines)
        elif len(found.samples) < self._max_series:
            found.samples[series] = value
        else:
            self._cut_off.add(series[0])
            found.over_limit += 1
            found.refuse(series[0], f"line {found.lines}: {series[0]}: more than {self._max_series} series")
