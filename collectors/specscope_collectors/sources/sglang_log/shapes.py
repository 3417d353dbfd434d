"""What all lines of one shape have in common: where their numbers stand.

Two lines have one shape when they are equal but for their digits, position by position. Every pattern that
the sure way of reading a line (`segments`, `stamps`, `ranks`, `fields`) uses knows digits only as a class, so
what it finds in one line of a shape stands at the same place in all others.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from specscope_collectors.logs.stamps import ABSOLUTE, LOCAL, find_stamp
from specscope_collectors.sources.sglang_log.fields import find_fields
from specscope_collectors.sources.sglang_log.levels import read_from
from specscope_collectors.sources.sglang_log.lines import form_of
from specscope_collectors.sources.sglang_log.ranks import find_tags
from specscope_collectors.sources.sglang_log.segments import Segment, is_quoted, split
from specscope_collectors.sources.sglang_log.server_args import find_dump

SAME_DIGITS = bytes.maketrans(b"123456789", b"000000000")
"""Turns lines into their shapes."""
MAX_DIGITS, MAX_TAG_DIGITS = 15, 3
"""Of a number, so that it and its power of ten are exact floats; of a rank, so that four make one number."""
MAX_LINE = 4_096
Places = tuple[int, ...]
"""Where the digits of one number stand in the line, highest first; a fraction's follow the whole part's."""


class Form(NamedTuple):
    """What shapes have in common that differ in the lengths of their numbers only."""

    is_decode: bool
    written_as: str
    """Which versions write it so, see `lines.form_of`."""
    zone: str
    """``""`` of the reader, ``Z``, ``+`` or ``-`` (then two more numbers give hours and minutes)."""
    fraction: int
    """Digits of the second's fraction that are used, 0 to 3."""
    tags: tuple[str, ...]
    metrics: tuple[str, ...]
    scales: tuple[float, ...]
    """Of each metric's digits, the power of ten that they are to be divided by."""
    divisors: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Shape:
    """Where the numbers stand: year … second, fraction, (zone's hours and minutes,) tags, metrics."""

    form: Form
    numbers: tuple[Places, ...]
    blank: int
    """Where a space stands."""


def learn(line: bytes) -> Shape | None:
    """Return the shape of a status line; None when its lines must be read one by one."""
    segment = _only_segment(line)
    stamp = find_stamp(segment.prefix) if segment else None
    if segment is None or stamp is None or stamp.kind not in (ABSOLUTE, LOCAL):
        return None
    fields = find_fields(segment.body, may_be_cut=False)
    read = read_from(fields, is_decode=segment.is_decode)
    if "requests.running" not in read or "requests.queued" not in read:
        return None
    body = len(line) - len(segment.body)
    numbers = [_decimal(fields[name][2], body + fields[name].start(2)) for name, _ in read.values()]
    tags = find_tags(segment.prefix)
    values = [number for number in numbers if number is not None]
    if len(values) < len(numbers) or any(end - start > MAX_TAG_DIGITS for start, end in tags.values()):
        return None
    when, fraction, zone = _moment(stamp.match, has_zone=stamp.kind == ABSOLUTE)
    return Shape(
        Form(
            segment.is_decode, form_of(segment), zone, fraction, tuple(tags), tuple(read),
            tuple(scale for _, scale in values), tuple(divisor for _, divisor in read.values()),
        ),
        (*when, *(tuple(range(*span)) for span in tags.values()), *(places for places, _ in values)),
        line.index(b" "),
    )  # fmt: skip


def _only_segment(line: bytes) -> Segment | None:
    """Return the status line that the line is; None where it is more than that, less or in doubt."""
    if len(line) > MAX_LINE or not line.isascii() or b"server_args=" in line:
        return None
    text = line.decode()
    segments = list(split(text))
    if len(segments) != 1 or segments[0].is_open or is_quoted(segments[0].prefix):
        return None
    return segments[0] if find_dump(text) < 0 else None


def _decimal(number: str, at: int) -> tuple[Places, float] | None:
    """Return the digits' places and the power of ten to divide by; None for a number that is out of reach."""
    whole, _, fraction = number.partition(".")
    if not whole.isdecimal() or len(whole) + len(fraction) > MAX_DIGITS:
        return None
    behind = at + len(whole) + 1
    return (*range(at, at + len(whole)), *range(behind, behind + len(fraction))), 10.0 ** len(fraction)


def _moment(match: re.Match[str], *, has_zone: bool) -> tuple[list[Places], int, str]:
    """Return the places of the stamp's numbers, how many digits its fraction has, and its kind of zone."""
    day, clock = match.start(1), match.start(2)
    starts = ((day, 4), (day + 5, 2), (day + 8, 2), (clock, 2), (clock + 3, 2), (clock + 6, 2))
    places = [tuple(range(at, at + size)) for at, size in starts]
    fraction = min(3, len(match[3] or ""))
    places.append(tuple(range(match.start(3), match.start(3) + fraction)))
    zone = match[4] if has_zone else ""
    if len(zone) > 1:
        at, end = match.span(4)
        places += [(at + 1, at + 2), (end - 2, end - 1)]
    return places, fraction, zone[:1]
