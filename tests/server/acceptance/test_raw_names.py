"""The raw names that numbers give as their source are those that the collectors read."""

from __future__ import annotations

import importlib

import pytest

from specscope_collectors.engines import engine_named
from specscope_collectors.exposition.table import Table
from specscope_server.acceptance.gather import COUNTERS, GAUGES
from specscope_server.acceptance.raw_names import DERIVED, RAW_NAMES, raw_name
from specscope_server.kit.engines import TITLES

NAMED = [(engine, metric) for engine, names in RAW_NAMES.items() for metric in names]


def table_of(engine: str) -> Table:
    module = importlib.import_module(f"specscope_collectors.sources.{engine_named(engine).source}.table")
    found: Table = module.TABLE
    return found


@pytest.mark.parametrize(("engine", "metric"), NAMED)
def test_a_source_is_named_as_the_engine_writes_it(engine: str, metric: str) -> None:
    known = table_of(engine)
    read = {
        known.prefixes[0] + name + (f"{{{row.where[0]}={row.where[1]}}}" if row.where else "")
        for row in known.rows
        if row.metric == metric
        for name in row.names
    }
    assert RAW_NAMES[engine][metric] in read


@pytest.mark.parametrize("engine", sorted(RAW_NAMES))
def test_every_metric_behind_a_number_has_a_raw_name_if_the_engine_writes_it(engine: str) -> None:
    written = {row.metric for row in table_of(engine).rows} & {*COUNTERS, *GAUGES}
    assert written == set(RAW_NAMES[engine])


def test_every_metric_behind_a_number_is_written_by_some_engine() -> None:
    assert {metric for names in RAW_NAMES.values() for metric in names} == {*COUNTERS, *GAUGES}


def test_what_no_name_says_has_its_origin() -> None:
    assert raw_name("vllm", "spec.num_steps") == DERIVED["vllm"]["spec.num_steps"]
    assert raw_name("vllm", "spec.accept_length") == "spec.accept_length"
    assert raw_name("another", "spec.cycles") == "spec.cycles"


def test_engines_are_titled_alike_on_both_sides() -> None:
    assert {name: engine_named(name).title for name in TITLES} == TITLES
