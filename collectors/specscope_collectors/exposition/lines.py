"""Grammar of one sample line of the Prometheus text format.

Ordinary lines are taken apart by two linear regular expressions, label sets are remembered between scrapes.
What they cannot read (quoted names, exemplars, odd spacing) goes to prometheus_client's own parser, which is
lenient and slow; `LineReader` limits how many bytes may take that way.
"""

from __future__ import annotations

import re
from functools import lru_cache

from prometheus_client.parser import text_string_to_metric_families

from specscope_collectors.increments import LabelPairs

MAX_LINE_BYTES = 64 * 1024

UNUSUAL_LINE_BYTES = 4 * 1024
"""Longest line that the lenient parser may read: its time grows with the square of the length."""

UNUSUAL_BODY_BYTES = 1024 * 1024
"""Most bytes of one body that the lenient parser may read."""

_SAMPLE = re.compile(
    r"([a-zA-Z_:][a-zA-Z0-9_:]*)"
    r'(?:[ \t]*\{([^"{}]*(?:"[^"\\]*(?:\\.[^"\\]*)*"[^"{}]*)*)\}[ \t]*|[ \t]+)'
    r'([^ \t{}"#]+)'
    r'(?:[ \t]+([^ \t{}"#]+))?'
)
_PAIR = re.compile(r'\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"([^"\\]*(?:\\.[^"\\]*)*)"\s*(?:,|$)')
_ESCAPE = re.compile(r'\\([\\n"])')
_CACHED_LABEL_CHARACTERS = 1024


class BadLineError(ValueError):
    """This line is no sample; the message says why."""


class LineReader:
    """Reads the sample lines of one body."""

    def __init__(self) -> None:
        self._unusual_bytes_left = UNUSUAL_BODY_BYTES

    def read(self, line: bytes) -> tuple[str, LabelPairs, float]:
        """Return (name, sorted labels, value) of a line without its line end; raise `BadLineError`."""
        if len(line) > MAX_LINE_BYTES:
            raise BadLineError(f"longer than {MAX_LINE_BYTES} bytes")
        try:
            text = line.decode()
        except UnicodeDecodeError:
            raise BadLineError("not UTF-8") from None
        match = _SAMPLE.fullmatch(text)
        labels = label_pairs(match[2]) if match and match[2] else ()
        if match is None or labels is None:
            return self._unusual(text, len(line))
        if match[4] is not None:
            number(match[4])
        return match[1], labels, number(match[3])

    def _unusual(self, text: str, size_bytes: int) -> tuple[str, LabelPairs, float]:
        self._unusual_bytes_left -= size_bytes
        if size_bytes > UNUSUAL_LINE_BYTES or self._unusual_bytes_left < 0:
            raise BadLineError("not a plain sample line, and too much of that for the lenient parser")
        try:
            (family,) = text_string_to_metric_families(text)
            (sample,) = family.samples
            return sample.name, tuple(sorted(sample.labels.items())), float(sample.value)
        except (ValueError, IndexError, OverflowError):
            raise BadLineError('not of the form name{label="value",…} number') from None


def number(text: str) -> float:
    """Return a value or timestamp; raise `BadLineError` (also for ``1_000``, which only Python reads)."""
    try:
        if "_" not in text:
            return float(text)
    except ValueError:
        pass
    raise BadLineError(f"{text[:40]!r} is no number")


def label_pairs(text: str) -> LabelPairs | None:
    """Return the labels between the braces, sorted by name; None if they are not plainly written."""
    if len(text) > _CACHED_LABEL_CHARACTERS:
        return _label_pairs(text)
    return _cached_label_pairs(text)


def _label_pairs(text: str) -> LabelPairs | None:
    labels: dict[str, str] = {}
    at, end = 0, len(text)
    while at < end:
        match = _PAIR.match(text, at)
        if match is None:
            return None if text[at:].strip() else tuple(sorted(labels.items()))
        name, value = match.groups()
        if name in labels or name.startswith("__"):
            return None
        labels[name] = _ESCAPE.sub(_unescaped, value) if "\\" in value else value
        at = match.end()
    return tuple(sorted(labels.items()))


_cached_label_pairs = lru_cache(maxsize=16_384)(_label_pairs)


def _unescaped(match: re.Match[str]) -> str:
    return "\n" if match[1] == "n" else match[1]
