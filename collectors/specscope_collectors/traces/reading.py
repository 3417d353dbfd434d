"""Read one file: its events in columns, by rank, and what was wrong with it."""

from __future__ import annotations

from dataclasses import dataclass

from specscope_collectors.observations import Labels, TraceFile
from specscope_collectors.traces.bounds import Bounds, TraceError
from specscope_collectors.traces.columns import Columns, Sorter
from specscope_collectors.traces.inflate import Inflated, Readable
from specscope_collectors.traces.names import rank_of_file, rank_of_header, rank_of_label, start_of_file
from specscope_collectors.traces.scan import Scan


@dataclass(frozen=True, slots=True)
class ReadFile:
    """One file, read."""

    file: TraceFile
    ranks: tuple[tuple[Labels, Columns], ...]
    time_ms: int | None
    """When its first kept event happened; None = the trace does not say."""


def read_file(stream: Readable, name: str, bounds: Bounds) -> ReadFile:
    """Read a trace from an open file. Raises `TraceError` (its text begins with the name) when unusable."""
    inflated = Inflated(stream, bounds)
    scan, sorter = Scan(inflated, bounds), Sorter(bounds.max_kept)
    try:
        for batch in scan:
            sorter.add(batch)
    except TraceError as error:
        raise TraceError(f"{name}: {inflated.trouble or error}") from None
    inflated.drain()
    file = TraceFile(
        name=name,
        sha256=inflated.digest,
        bytes=inflated.packed_bytes,
        unpacked_bytes=inflated.unpacked_bytes,
        events=sorter.events,
        trouble=_trouble(inflated, scan, sorter),
    )
    if not sorter.events:
        raise TraceError(f"{name}: {file.trouble or 'it holds no events'}; capture again, under load")
    return ReadFile(file, _ranks(name, scan, sorter), _time_ms(name, scan, sorter))


def _trouble(inflated: Inflated, scan: Scan, sorter: Sorter) -> str:
    reasons = [inflated.trouble or scan.trouble]
    if scan.undecodable:
        reasons.append(f"{scan.undecodable:,} damaged events are left out")
    if sorter.left_out:
        reasons.append(f"{sorter.left_out:,} events beyond the bound are left out; capture fewer steps")
    return "; ".join(reason for reason in reasons if reason)


def _ranks(name: str, scan: Scan, sorter: Sorter) -> tuple[tuple[Labels, Columns], ...]:
    named = rank_of_file(name) or rank_of_header(scan.header)
    found = sorter.ranks or {"": Columns()}
    if len(found) > 1:
        found.pop("", None)
    return tuple(
        (rank_of_label(label) if label else named, columns) for label, columns in sorted(found.items())
    )


def _time_ms(name: str, scan: Scan, sorter: Sorter) -> int | None:
    """Event times count from ``baseTimeNanoseconds``; older traces count from the epoch, in µs."""
    first = min((each.first_us for each in sorter.ranks.values()), default=float("inf"))
    base = scan.header.get("baseTimeNanoseconds")
    is_number = isinstance(base, int) and not isinstance(base, bool)
    time_ms = first / 1000 + (base / 1e6 if is_number and base is not None else 0.0)
    plausible = 1.4e12 < time_ms < 4.1e12  # 2014 … 2099
    return round(time_ms) if plausible else start_of_file(name)
