"""When a line was written: stamps of five forms, with and without zone, date, year and fractions."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, tzinfo

# Kept loose: `Clockface` finds out whether it is a time that exists.
_ABSOLUTE = re.compile(
    r"(?<!\d)(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?(Z|[+-]\d\d:?\d\d)(?!\d)"
)
BRACKET = re.compile(r"\[(\d{4}-\d\d-\d\d[T ])?(\d\d:\d\d:\d\d)(?:[.,](\d{1,6}))?((?: [^\]\[]{0,80})?)\]")
"""The engine's own stamp: [date time.ms tags]."""
_PLAIN = re.compile(r"(?<!\d)(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?(?![\d+Z-])")
_NAMES = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
_SYSLOG = re.compile(rf"(?<!\w)({_NAMES}) ([ \d]\d) (\d\d:\d\d:\d\d)(?:\.(\d{{1,6}}))?")
_MONTHS = {name: at for at, name in enumerate(_NAMES.split("|"), start=1)}
_DAY_MS = 86_400_000
_HALF_YEAR_MS = 183 * _DAY_MS
_SHORT_BACK_MS = 60_000
NO_STAMP, NO_DATE, NO_YEAR, BAD_STAMP = "no_stamp", "no_date", "no_year", "bad_stamp"
ABSOLUTE, LOCAL, OF_YEAR, OF_DAY = "absolute", "local", "of year", "of day"


@dataclass(frozen=True, slots=True)
class Stamp:
    """What a stamp leaves open: nothing, the zone, the zone and the year, or the zone and the day."""

    kind: str
    match: re.Match[str]
    """Groups of `ABSOLUTE` and `LOCAL`: day, clock, fraction (and zone)."""


def find_stamp(prefix: str) -> Stamp | None:
    """Return the stamp that counts: the last, and of two forms the one that leaves less open."""
    if match := _last(_ABSOLUTE, prefix):
        return Stamp(ABSOLUTE, match)
    bracket = _last(BRACKET, prefix)
    if bracket and bracket[1]:
        return Stamp(LOCAL, bracket)
    if match := _last(_PLAIN, prefix):
        return Stamp(LOCAL, match)
    if match := _last(_SYSLOG, prefix):
        return Stamp(OF_YEAR, match)
    return Stamp(OF_DAY, bracket) if bracket else None


@dataclass(slots=True)
class Clockface:
    """Turns stamps into epoch milliseconds; remembers the last one to resolve what a stamp leaves open."""

    zone: tzinfo = UTC
    date: date | None = None
    """Day of the first stamp, for stamps without a date."""
    year: int | None = None
    last_ms: int | None = None
    _minutes: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Local minute → (epoch ms, the same after the clock was set back an hour)."""

    def read(self, prefix: str) -> int | str:
        """Return the time of the last stamp in ``prefix``, or why there is none.

        A stamp with a zone wins over the engine's own, whose zone nobody wrote down.
        """
        found = self._read(prefix)
        if isinstance(found, int):
            self.last_ms = found
        return found

    def _read(self, prefix: str) -> int | str:
        stamp = find_stamp(prefix)
        if stamp is None:
            return NO_STAMP
        match = stamp.match
        if stamp.kind == ABSOLUTE:
            return _absolute(*match.groups())
        if stamp.kind == LOCAL:
            return self._local(match[1][:10], match[2], match[3])
        if stamp.kind == OF_YEAR:
            return self._of_year(_MONTHS[match[1]], int(match[2]), match[3], match[4])
        return self._of_day(match[2], match[3])

    def _local(self, day: str, clock: str, fraction: str | None) -> int | str:
        known = self._minute(f"{day} {clock[:5]}")
        seconds = int(clock[6:])
        if known is None or seconds > 60:
            return BAD_STAMP
        first, second = known
        if (
            second > first
            and self.last_ms is not None
            and first + seconds * 1000 < self.last_ms - _SHORT_BACK_MS
        ):
            first = second  # the hour that comes twice, for the second time
        return first + seconds * 1000 + _milliseconds(fraction)

    def _minute(self, minute: str) -> tuple[int, int] | None:
        known = self._minutes.get(minute)
        if known is None:
            try:
                local = datetime.fromisoformat(minute).replace(tzinfo=self.zone)
                known = _epoch_ms(local), _epoch_ms(local.replace(fold=1))
            except (ValueError, OverflowError):
                return None
            if len(self._minutes) > 10_000:
                self._minutes.clear()
            self._minutes[minute] = known
        return known

    def only_minute(self, minute: str) -> int | None:
        """Return the epoch ms of a local minute, ``YYYY-MM-DD HH:MM``; None: not just one moment."""
        known = self._minute(minute)
        return known[0] if known is not None and known[0] >= known[1] else None

    def _of_year(self, month: int, day: int, clock: str, fraction: str | None) -> int | str:
        if self.year is None:
            return NO_YEAR
        found = self._local(f"{self.year:04}-{month:02}-{day:02}", clock, fraction)
        if self._is_before(found, _HALF_YEAR_MS):
            self.year += 1
            return self._local(f"{self.year:04}-{month:02}-{day:02}", clock, fraction)
        earlier = self._local(f"{self.year - 1:04}-{month:02}-{day:02}", clock, fraction)
        return earlier if self._is_just_before(earlier) else found

    def _of_day(self, clock: str, fraction: str | None) -> int | str:
        if self.date is None:
            return NO_DATE
        found = self._local(self.date.isoformat(), clock, fraction)
        if self._is_before(found, _DAY_MS // 2):
            self.date = date.fromordinal(min(self.date.toordinal() + 1, date.max.toordinal()))
            return self._local(self.date.isoformat(), clock, fraction)
        yesterday = date.fromordinal(max(self.date.toordinal() - 1, 1))
        earlier = self._local(yesterday.isoformat(), clock, fraction)
        return earlier if self._is_just_before(earlier) else found

    def _is_before(self, found: int | str, span_ms: int) -> bool:
        """Whether a moment is so far before the last that a new day or year must have begun."""
        return isinstance(found, int) and self.last_ms is not None and found < self.last_ms - span_ms

    def _is_just_before(self, found: int | str) -> bool:
        """Whether a moment of the day or year before is that of a line that came a little late."""
        return (
            isinstance(found, int)
            and self.last_ms is not None
            and self.last_ms - _SHORT_BACK_MS <= found <= self.last_ms
        )


def _last(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    found = None
    for found in pattern.finditer(text):  # noqa: B007 - the last one counts
        pass
    return found


def _absolute(day: str, clock: str, fraction: str | None, zone: str) -> int | str:
    offset = "+00:00" if zone == "Z" else zone
    try:
        return _epoch_ms(datetime.fromisoformat(f"{day} {clock}{offset}")) + _milliseconds(fraction)
    except (ValueError, OverflowError):
        return BAD_STAMP


def _epoch_ms(moment: datetime) -> int:
    return int(moment.timestamp()) * 1000


def _milliseconds(fraction: str | None) -> int:
    return int(fraction[:3].ljust(3, "0")) if fraction else 0
