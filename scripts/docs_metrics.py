"""The metrics page: the catalogue, joined with the table of raw names of SGLang's `/metrics`."""

from __future__ import annotations

from itertools import groupby

from docs_markdown import code, page, table

from specscope_collectors.catalogue import CATALOGUE, Across, Kind, Metric
from specscope_collectors.sources.sglang_metrics.table import ENGINE_VERSIONS, OTHER_SOURCES, ROWS, Row

INTRODUCTION = f"""
Every metric that can be stored, under the name that the API uses. An *increment* is the growth of a counter
over an interval, a *level* is a gauge at a moment, a *distribution* is the growth of a histogram.

Raw names are those of SGLang's `/metrics`; the spelling with `sglang_` instead of `sglang:` is read too.
Known versions: {", ".join(ENGINE_VERSIONS)}. A version in between has the set of the newest known one that is
not newer. Series of one rank that are split by `is_streaming` are summed.
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
    rows = [row for row in ROWS if row.metric == metric.name]
    if rows:
        found = [line for row in rows for line in _versions(row)]
        return table(["SGLang", "raw name", "conversion"], found)
    if metric.name in OTHER_SOURCES:
        return f"Not in `/metrics`: {OTHER_SOURCES[metric.name]}."
    return "Measured by the collector itself, for every source."


def _versions(row: Row) -> list[list[str]]:
    """Return [versions, raw name, conversion] for each stretch of versions with one raw name."""
    named = zip(ENGINE_VERSIONS, row.raw, strict=True)
    lines = []
    for name, stretch in groupby(named, key=lambda pair: pair[1]):
        if name is not None:
            lines.append(
                [_range([version for version, _ in stretch]), code(f"sglang:{name}"), _conversion(row)]
            )
    return lines


def _range(versions: list[str]) -> str:
    if versions[-1] == ENGINE_VERSIONS[-1]:
        return "all" if versions[0] == ENGINE_VERSIONS[0] else f"{versions[0]} and later"
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
