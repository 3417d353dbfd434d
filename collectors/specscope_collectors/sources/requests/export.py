"""Files that SGLang writes with ``--export-metrics-to-file``: one an hour, a JSON object for each request."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from typing import Any

import msgspec

from specscope_collectors.observations import RequestRecord
from specscope_collectors.sources.requests.answer import records_of
from specscope_collectors.sources.requests.errors import HealthCheckError, RefusedError

HOUR_MS = 3_600_000
_HOUR = re.compile(r"(\d{8}_\d{2})")


@dataclass(slots=True)
class Exported:
    """What lines of an export gave."""

    records: list[RequestRecord] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)


def hour_of(name: str, zone: tzinfo) -> int | None:
    """Return the hour in the name of an exported file, in epoch ms; None when there is none in it."""
    found = _HOUR.search(name)
    if found is None:
        return None
    try:
        hour = datetime.strptime(found[1], "%Y%m%d_%H").replace(tzinfo=zone)
    except ValueError:
        return None
    return round(hour.timestamp() * 1_000)


def read_lines(lines: Iterable[bytes], received_ms: int) -> Exported:
    """Return the records of some lines; ``received_ms`` is the time of those that do not say theirs."""
    found = Exported()
    for line in lines:
        if not line.strip():
            continue
        try:
            found.records += records_of(_parsed(line), received_ms=received_ms)
        except HealthCheckError:
            continue
        except RefusedError as error:
            found.refused[str(error)[:200]] += 1
    return found


def within_hour(now_ms: int, hour_ms: int | None) -> int:
    """Return the time at which a line of an hour's file was written, as well as it is known."""
    return now_ms if hour_ms is None else min(max(now_ms, hour_ms), hour_ms + HOUR_MS - 1)


def _parsed(line: bytes) -> Any:
    """Return what JSON says. Python writes NaN and Infinity, which are no JSON: null."""
    try:
        return msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        pass
    try:
        return json.loads(line, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        raise RefusedError("the line is not JSON; it may have been cut") from None
