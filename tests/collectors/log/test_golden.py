"""One file per form of log and what it says, line by line, read both ways.

``NAME.expected`` holds ``# OPTION=VALUE`` for what the log does not say, then what is found, in order: values
by line (times in UTC), launches, events, and what was refused. It was checked against the log by eye: it is
no output to be copied when it differs.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import date
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.collectors.log.reading import Read, read

from specscope_collectors.observations import Event, Launch, Level, Observation
from specscope_collectors.sources.sglang_log import runs
from specscope_collectors.sources.sglang_log.report import iso

GOLDEN = Path(__file__).parent / "golden"
NAMES = sorted(path.stem for path in GOLDEN.glob("*.log"))
SHORT = {"tp_rank": "TP", "pp_rank": "PP", "dp_rank": "DP", "moe_ep_rank": "EP", "model_name": "model "}


def shown(found: Read) -> Iterator[str]:
    """Yield what was found, one line of text each."""
    for _, group in groupby(found.observations, _line_of):
        yield _shown(list(group))
    yield from (f"refused {count} × {reason}" for reason, count in sorted(found.summary.refused.items()))
    yield from (f"written as {form}: {count}" for form, count in sorted(found.summary.forms.items()))


def _line_of(record: Observation) -> object:
    return (record.time_ms, record.labels) if isinstance(record, Level) else id(record)


def _shown(records: list[Any]) -> str:
    first = records[0]
    if isinstance(first, Level):
        rank = " ".join(f"{SHORT[name]}{value}" for name, value in first.labels.items())
        values = ", ".join(f"{record.metric} {record.value:g}" for record in reversed(records))
        return f"{iso(first.time_ms)} {rank}: {values}"
    if isinstance(first, Launch):
        return f"{iso(first.time_ms)} launch: {', '.join(_told(first))}"
    assert isinstance(first, Event)
    detail = msgspec.json.encode(first.detail).decode()
    return f"{iso(first.time_ms)} event {first.kind}: {first.message!r} {detail}"


def _told(launch: Launch) -> Iterator[str]:
    names = ("reason", "engine_version", "version_source", "model", "served_model_name", "dtype")
    parts = (
        {name: getattr(launch, name) for name in names},
        msgspec.structs.asdict(launch.speculative),
        msgspec.structs.asdict(launch.parallelism),
    )
    for part in parts:
        yield from (f"{name} {value}" for name, value in part.items() if value is not None)


def options(expected: str) -> dict[str, Any]:
    """Return what the log does not say."""
    pairs = [line[2:].split("=") for line in expected.splitlines() if line.startswith("# ")]
    make = {"date": date.fromisoformat, "year": int}
    return {name: make[name](value) for name, value in pairs}


@pytest.mark.parametrize("together", [True, False], ids=["together", "one by one"])
@pytest.mark.parametrize("name", NAMES)
def test_a_log_says_what_was_written_beside_it(
    name: str, together: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "MIN_RUN", 1)
    expected = (GOLDEN / f"{name}.expected").read_text(encoding="utf-8")
    log = (GOLDEN / f"{name}.log").read_bytes()
    found = read(log, together_from_bytes=0 if together else sys.maxsize, **options(expected))
    assert list(shown(found)) == [line for line in expected.splitlines() if not line.startswith("#")]


@pytest.mark.parametrize("name", NAMES)
def test_every_value_stands_in_the_log(name: str) -> None:
    """A check of the expectations themselves: no value comes from nowhere."""
    log = (GOLDEN / f"{name}.log").read_text(encoding="utf-8")
    for line in (GOLDEN / f"{name}.expected").read_text(encoding="utf-8").splitlines():
        if ": requests" in line or ": kv." in line:
            for metric, value in (part.rsplit(" ", 1) for part in line.partition("Z ")[2].split(", ")):
                number = float(value) * (100 if metric.endswith("occupancy") else 1)
                assert any(text in log for text in (f" {number:.0f}", f" {number:.2f}")), (metric, value)
