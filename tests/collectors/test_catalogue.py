"""The catalogue is a table that code, store and documentation rely on: it must be well formed."""

from __future__ import annotations

import re

import pytest

from specscope_collectors.catalogue import CATALOGUE, Across, Kind, Metric

ROWS = [pytest.param(metric, id=name) for name, metric in CATALOGUE.items()]
UNITS = {
    Kind.INCREMENT: {
        *("cycles", "drafts", "tokens", "requests", "seconds", "passes", "errors", "values"),
        *("forwards", "rows", "windows", "findings"),
    },
    Kind.DISTRIBUTION: {"seconds"},
}


@pytest.mark.parametrize("metric", ROWS)
def test_a_row_is_complete(metric: Metric) -> None:
    assert CATALOGUE[metric.name] is metric
    assert re.fullmatch(r"[a-z]+(\.[a-z_]+)+", metric.name)
    assert metric.unit
    assert metric.meaning.endswith(".")
    assert metric.meaning == " ".join(metric.meaning.split())
    assert len(set(metric.labels)) == len(metric.labels)
    assert all(re.fullmatch(r"[a-z_]+", label) for label in metric.labels)


@pytest.mark.parametrize("metric", ROWS)
def test_a_unit_fits_its_kind(metric: Metric) -> None:
    assert metric.unit in UNITS.get(metric.kind, {metric.unit})
    if metric.unit in {"1", "tokens/cycle"}:
        assert metric.across is not Across.SUM


def test_every_kind_is_used_and_names_are_unique() -> None:
    assert {metric.kind for metric in CATALOGUE.values()} == set(Kind)
    assert len({metric.meaning for metric in CATALOGUE.values()}) == len(CATALOGUE)
