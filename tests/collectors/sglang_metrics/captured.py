"""The captured answers and short ways to look into what they map to."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from specscope_collectors.exposition.mapped import Mapped
from specscope_collectors.exposition.parse import parse_exposition
from specscope_collectors.increments import SeriesKey
from specscope_collectors.sources.sglang_metrics.mapping import map_exposition
from specscope_collectors.sources.sglang_metrics.table import WANTED

FIXTURES = Path(__file__).parent / "fixtures"
NAMES = sorted(path.parent.name for path in FIXTURES.glob("*/metrics.txt"))
MAX_SERIES = 100_000


def body_of(name: str) -> bytes:
    """Return the captured answer in a fixture folder."""
    return (FIXTURES / name / "metrics.txt").read_bytes()


def version_of_fixture(name: str) -> str:
    """Return the engine version (as in the table) of a fixture folder."""
    return name.partition("-")[0]


@cache
def mapped_fixture(name: str) -> Mapped:
    """Return what a captured answer maps to. Do not change it."""
    return map_body(body_of(name))


def map_body(body: bytes | str, *, adaptive: bool = False, max_series: int = MAX_SERIES) -> Mapped:
    """Parse and map one answer."""
    raw = body.encode() if isinstance(body, str) else body
    return map_exposition(parse_exposition(raw, max_series=max_series, wanted=WANTED), adaptive=adaptive)


def values(series: Mapping[SeriesKey, float], metric: str, label: str = "") -> dict[str, float]:
    """Return the series of one metric by the value of ``label`` (all of them must differ in it)."""
    found = [
        (dict(labels).get(label, ""), value) for (name, labels), value in series.items() if name == metric
    ]
    assert len(dict(found)) == len(found), f"{metric} has several series per {label!r}"
    return dict(found)


def the_value(series: Mapping[SeriesKey, float], metric: str) -> float | None:
    """Return the value of a metric with one series; None if it has none."""
    return values(series, metric).get("")
