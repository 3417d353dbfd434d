"""The table of raw names against the catalogue and against the captured answers."""

from __future__ import annotations

import pytest
from tests.collectors.sglang_metrics.captured import (
    MAX_SERIES,
    NAMES,
    body_of,
    map_body,
    mapped_fixture,
    version_of_fixture,
)

from specscope_collectors.catalogue import CATALOGUE, Kind
from specscope_collectors.exposition.parse import parse_exposition
from specscope_collectors.sources.sglang_metrics.table import (
    ENGINE_VERSIONS,
    HISTOGRAM_SUFFIXES,
    OTHER_SOURCES,
    PREFIXES,
    RAW_INDEX,
    ROWS,
    TABLE,
    WANTED,
    Row,
)
from specscope_collectors.sources.sglang_metrics.unmapped import NOT_MAPPED
from specscope_collectors.sources.sglang_metrics.version import CAME_WITH
from specscope_collectors.sources.vllm_metrics import table as vllm


def families(version: str) -> set[str]:
    """Raw families, without prefix and histogram suffix, in all fixtures of a version."""
    found = set()
    for fixture in NAMES:
        if version_of_fixture(fixture) == version:
            names = parse_exposition(body_of(fixture), max_series=MAX_SERIES, wanted=WANTED).names
            found |= {family_of(name, names) for name in names}
    return found


def family_of(name: str, names: frozenset[str]) -> str:
    bare = name.removeprefix(PREFIXES[0])
    for suffix in HISTOGRAM_SUFFIXES:
        base = name.removesuffix(suffix)
        if name.endswith(suffix) and base + "_bucket" in names:
            return bare.removesuffix(suffix)
    return bare


FAMILIES = {version: families(version) for version in ENGINE_VERSIONS}
CELLS = [
    pytest.param(row, version, name, id=f"{version} {row.metric} {name}")
    for row in ROWS
    for version, name in zip(ENGINE_VERSIONS, row.raw, strict=True)
]


@pytest.mark.parametrize(("row", "version", "name"), CELLS)
def test_a_raw_name_occurs_in_a_fixture_of_its_version_or_says_why_not(
    row: Row, version: str, name: str | None
) -> None:
    is_seen = name in FAMILIES[version]
    assert is_seen == (name is not None and version not in row.not_in_fixture)


@pytest.mark.parametrize(("row", "version", "name"), CELLS)
def test_a_raw_name_yields_its_metric(row: Row, version: str, name: str | None) -> None:
    if name is None:
        assert version not in row.not_in_fixture
        return
    mapped = map_body(synthetic(row, name))
    by_kind = {
        Kind.INCREMENT: mapped.counters,
        Kind.LEVEL: mapped.levels,
        Kind.DISTRIBUTION: mapped.histograms,
    }
    ((metric, labels),) = [key for key in by_kind[row.kind] if key[0] == row.metric]
    assert dict(labels) == {"model_name": "m", **dict(row.adds)}
    assert (mapped.refused, metric) == (0, row.metric)
    if row.kind is Kind.LEVEL:
        assert mapped.levels[metric, labels] == 1.0


def synthetic(row: Row, name: str) -> str:
    """A body with one series of a family; a level has the canonical value 1."""
    labels = ",".join(
        f'{label}="{value}"' for label, value in (("model_name", "m"), *([row.where] if row.where else []))
    )
    full = PREFIXES[0] + name
    if row.kind is Kind.DISTRIBUTION:
        return (
            f'{full}_sum{{{labels}}} 1.5\n{full}_bucket{{{labels},le="2.0"}} 1\n'
            f'{full}_bucket{{{labels},le="+Inf"}} 1\n{full}_count{{{labels}}} 1\n'
        )
    return f"{full}{{{labels}}} {row.divisor}\n"


def test_rows_speak_of_catalogued_metrics_and_known_versions() -> None:
    for row in ROWS:
        assert row.metric in CATALOGUE
        assert len(row.raw) == len(ENGINE_VERSIONS)
        assert row.names
        assert set(row.not_in_fixture) <= set(ENGINE_VERSIONS)
        assert all(reason for reason in row.not_in_fixture.values())


def test_every_catalogued_metric_is_produced_or_says_who_does() -> None:
    mapped_here = {row.metric for row in ROWS}
    own = {name for name in CATALOGUE if name.startswith("scrape.")}
    by_others = {row.metric for row in vllm.TABLE.rows}
    by_the_probe = {row.metric for row in TABLE.guests}
    assert mapped_here | by_others | by_the_probe | own | set(OTHER_SOURCES) == set(CATALOGUE)
    assert not mapped_here & set(OTHER_SOURCES)


def test_every_mapped_metric_comes_out_of_a_fixture_or_says_why_not() -> None:
    produced = {
        metric
        for name in NAMES
        for series in (
            mapped_fixture(name).counters,
            mapped_fixture(name).levels,
            mapped_fixture(name).histograms,
        )
        for metric, _ in series
    }
    explained = {row.metric for row in ROWS if row.zero_means or row.not_in_fixture}
    assert {row.metric for row in ROWS} - produced <= explained
    assert {row.metric for row in ROWS} - produced == {
        "requests.aborted",
        "spec.cap_length",
        "spec.block_accept_length",
    }


@pytest.mark.parametrize("version", ENGINE_VERSIONS)
def test_every_captured_name_is_mapped_or_deliberately_not(version: str) -> None:
    mapped = {name for row in ROWS for name in row.names}
    assert FAMILIES[version] - mapped - set(NOT_MAPPED) == set()
    assert not mapped & set(NOT_MAPPED)


def test_what_is_deliberately_not_read_exists() -> None:
    """A name that no fixture holds would be a leftover; this one old engines declare and never write."""
    never_written = {"avg_request_queue_latency"}
    assert set(NOT_MAPPED) - set().union(*FAMILIES.values()) == never_written


def test_both_spellings_are_read() -> None:
    assert {name.replace("sglang:", "sglang_") for name in RAW_INDEX} <= set(RAW_INDEX)
    assert set(RAW_INDEX) < WANTED


@pytest.mark.parametrize("version", CAME_WITH)
def test_the_names_that_tell_a_version_came_with_it(version: str) -> None:
    at = ENGINE_VERSIONS.index(version)
    older = set().union(*(FAMILIES[other] for other in ENGINE_VERSIONS[:at]))
    for name in CAME_WITH[version]:
        assert name not in older
        assert name.removesuffix("_count") in FAMILIES[version] | FAMILIES[ENGINE_VERSIONS[-1]]
