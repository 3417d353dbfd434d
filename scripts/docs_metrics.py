"""The metrics page: the catalogue, joined with the tables of raw names of each engine's `/metrics`."""

from __future__ import annotations

import importlib
from itertools import groupby

from docs_markdown import code, page, table

from specscope_collectors.catalogue import CATALOGUE, Across, Kind, Metric
from specscope_collectors.engine import Engine
from specscope_collectors.engines import engines
from specscope_collectors.exposition.table import Row, Table
from specscope_collectors.sources.sglang_metrics.table import OTHER_SOURCES

TABLES: list[tuple[Engine, Table]] = [
    (engine, importlib.import_module(f"specscope_collectors.sources.{engine.source}.table").TABLE)
    for engine in engines()
]
VERSIONS = "; ".join(f"{engine.title} {', '.join(found.versions)}" for engine, found in TABLES)

INTRODUCTION = f"""
Every metric that can be stored, under the name that the API uses. An *increment* is the growth of a counter
over an interval, a *level* is a gauge at a moment, a *distribution* is the growth of a histogram.

Raw names are those of the engines' `/metrics`; the spelling with `_` instead of `:` behind the engine's name
is read too. Known versions: {VERSIONS}. A version in between has the set of the newest known one that is not
newer. Series of one rank that are split by `is_streaming` are summed. vLLM's label `engine` becomes
`dp_rank`, and its `position` 0 is draft position 1.
"""

ACROSS = {
    Across.SUM: "summed",
    Across.MEAN: "averaged",
    Across.MAX: "the largest counts",
    Across.SAME: "all must agree",
}
TITLES = {Kind.INCREMENT: "Increments", Kind.LEVEL: "Levels", Kind.DISTRIBUTION: "Distributions"}


def metrics_page() -> str:
    """Return the page."""
    overview = table(
        ["metric", "unit", "meaning"],
        [[f"[`{m.name}`](#{m.name.replace('.', '')})", m.unit, m.meaning] for m in CATALOGUE.values()],
    )
    sections = [overview]
    for kind, metrics in groupby(CATALOGUE.values(), key=lambda metric: metric.kind):
        sections += [f"## {TITLES[kind]}", *map(_section, metrics)]
    return page("Metrics", INTRODUCTION, sections)


def _section(metric: Metric) -> str:
    facts = [f"unit: {unit_words(metric.unit)}", f"ranks of one server: {ACROSS[metric.across]}"]
    if metric.labels:
        facts.append("labels: " + ", ".join(code(label) for label in metric.labels))
    return f"### `{metric.name}`\n\n{metric.meaning}\n\n{'; '.join(facts)}.\n\n{_origin(metric)}"


def unit_words(unit: str) -> str:
    """Return the unit; a ratio says that it is one."""
    return "ratio, 0 … 1" if unit == "1" else unit


def _origin(metric: Metric) -> str:
    found = [
        table([engine.title, "raw name", "conversion"], lines)
        for engine, known in TABLES
        if (lines := [line for row in known.rows if row.metric == metric.name for line in _lines(row, known)])
    ]
    found += [
        f"From Specscope's probe inside {engine.title}: {_guest(row)}."
        for engine, known in TABLES
        for row in known.guests
        if row.metric == metric.name
    ]
    if found:
        return "\n\n".join(found)
    if metric.name in OTHER_SOURCES:
        return f"Not in `/metrics`: {OTHER_SOURCES[metric.name]}."
    return "Measured by the collector itself, for every source."


def _guest(row: Row) -> str:
    only = f", of which {code('='.join(row.where))}" if row.where else ""
    return f"{code(row.names[0])}{only}"


def _lines(row: Row, known: Table) -> list[list[str]]:
    """Return [versions, raw name, conversion] for each stretch of versions with one raw name."""
    named = zip(known.versions, row.raw, strict=True)
    lines = []
    for name, stretch in groupby(named, key=lambda pair: pair[1]):
        if name is not None:
            versions = [version for version, _ in stretch]
            lines.append([_range(versions, known.versions), code(known.prefixes[0] + name), _conversion(row)])
    return lines


def _range(versions: list[str], known: tuple[str, ...]) -> str:
    if versions[-1] == known[-1]:
        return "all" if versions[0] == known[0] else f"{versions[0]} and later"
    return versions[0] if len(versions) == 1 else f"{versions[0]} to {versions[-1]}"


def _conversion(row: Row) -> str:
    parts = []
    if row.divisor != 1.0:
        parts.append(f"divided by {row.divisor:g}")
    if row.where:
        parts.append(f'only `{row.where[0]}="{row.where[1]}"`')
    parts += [f'gets `{name}="{value}"`' for name, value in row.adds]
    parts += [f"summed over `{label}`" for label in sorted(row.sums_away - {"is_streaming"})]
    if row.zero_means:
        parts.append(f"left out when {row.zero_means}")
    if row.is_nan_normal:
        parts.append("left out when NaN (not measured)")
    return "; ".join(parts) or "as it is"
