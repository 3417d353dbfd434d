"""The raw names that numbers give as their source are those that the collectors read."""

from __future__ import annotations

import pytest

from specscope_collectors.sources.sglang_metrics.table import ROWS
from specscope_server.acceptance.context import RAW_NAMES
from specscope_server.acceptance.gather import COUNTERS, GAUGES


@pytest.mark.parametrize("metric", sorted(RAW_NAMES))
def test_a_source_is_named_as_the_engine_writes_it(metric: str) -> None:
    read = {
        f"sglang:{name}" + (f"{{{row.where[0]}={row.where[1]}}}" if row.where else "")
        for row in ROWS
        if row.metric == metric
        for name in row.names
    }
    assert RAW_NAMES[metric] in read


def test_every_metric_behind_a_number_has_a_raw_name() -> None:
    assert set(RAW_NAMES) == {*COUNTERS, *GAUGES}
