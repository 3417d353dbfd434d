"""The generic query: series → one array a line, one value a bucket. Hot path: NumPy and orjson only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from specscope_collectors.catalogue import CATALOGUE, Kind
from specscope_server.kit.errors import InvalidInput
from specscope_server.kit.names import did_you_mean
from specscope_server.kit.ranks import RANK_LABELS, leaders, mirror_group
from specscope_server.kit.targets import of_target
from specscope_server.kit.timerange import Window
from specscope_server.series.statistics import Floats, combine, histogram_quantile
from specscope_server.store.lookup import names_of_launches
from specscope_server.store.series_reader import (
    Buckets,
    DistributionBuckets,
    SeriesRef,
    read_buckets,
    read_distributions,
)

STATS: dict[Kind, tuple[str, ...]] = {
    Kind.INCREMENT: ("rate", "sum"),
    Kind.LEVEL: ("mean", "min", "max", "last"),
    Kind.DISTRIBUTION: ("p50", "p90", "p95", "p99", "mean", "count", "sum"),
}
"""What a bucket can be summarised to; the first is the default.

``rate`` = growth per second of observed time.
"""


@dataclass(slots=True)
class Line:
    """One line of the answer."""

    metric: str
    unit: str
    stat: str
    server_id: int
    launch_id: int | None
    labels: Mapping[str, str]
    values: Floats
    n: NDArray[np.int64]
    members: int = 1
    """How many stored series were combined."""


def check_metric(name: str) -> None:
    """Refuse a metric that is not in the catalogue, with the nearest name."""
    if name not in CATALOGUE:
        hint = did_you_mean(name, CATALOGUE)
        raise InvalidInput(
            f"metric={name[:100]!r} is not in the catalogue.{hint} See /api/v1/metrics-catalogue"
        )


def check_stat(metric: str, stat: str | None) -> str:
    """Return the summary to use for this metric; refuse one that its kind does not have."""
    possible = STATS[CATALOGUE[metric].kind]
    if stat is None:
        return possible[0]
    if stat not in possible:
        raise InvalidInput(
            f"stat={stat[:40]!r} does not fit {metric} ({CATALOGUE[metric].kind}); use one of "
            f"{', '.join(possible)}"
        )
    return stat


def run(
    session: Session, series: Sequence[SeriesRef], window: Window, aggregate: str, stat: str | None
) -> list[Line]:
    """Return the lines for ``series`` over ``window``; added up is only what is of a launch's own model."""
    if aggregate != "none":
        series = _of_targets(session, series)
    histograms = [ref for ref in series if CATALOGUE[ref.metric].kind is Kind.DISTRIBUTION]
    others = [ref for ref in series if CATALOGUE[ref.metric].kind is not Kind.DISTRIBUTION]
    buckets = read_buckets(session, others, window) if others else {}
    read = read_distributions(session, histograms, window) if histograms else {}
    lines: list[Line] = []
    for group in _groups([ref for ref in series if ref.id in buckets or ref.id in read], aggregate):
        chosen = check_stat(group[0].metric, stat)
        if CATALOGUE[group[0].metric].kind is Kind.DISTRIBUTION:
            lines.append(_histogram_line(group, read, chosen, aggregate))
        else:
            lines.append(_line(group, buckets, chosen, aggregate))
    return lines


def _of_targets(session: Session, series: Sequence[SeriesRef]) -> list[SeriesRef]:
    """Leave out the series of a draft engine beside the target, metric by metric."""
    names = names_of_launches(session, {ref.launch_id for ref in series if ref.launch_id is not None})
    groups: dict[tuple[int, str], list[SeriesRef]] = {}
    for ref in series:
        if ref.launch_id in names:
            groups.setdefault((ref.launch_id, ref.metric), []).append(ref)
    kept = {
        key
        for (launch_id, _), group in groups.items()
        for key in of_target([(ref.id, ref.labels) for ref in group], names[launch_id]).kept
    }
    return [ref for ref in series if ref.launch_id not in names or ref.id in kept]


def _groups(series: Iterable[SeriesRef], aggregate: str) -> list[list[SeriesRef]]:
    groups: dict[Any, list[SeriesRef]] = {}
    key = _KEYS[aggregate]
    for ref in series:
        groups.setdefault((ref.metric, ref.server_id, key(ref)), []).append(ref)
    if aggregate == "none":
        return list(groups.values())
    return [_without_mirrors(group) for group in groups.values()]


_KEYS: dict[str, Callable[[SeriesRef], Any]] = {
    "none": lambda ref: ref.id,
    "ranks": lambda ref: (
        ref.launch_id,
        tuple(pair for pair in mirror_group(ref.labels) if pair[0] != "dp_rank"),
    ),
    "server": lambda ref: None,
}


def _without_mirrors(group: list[SeriesRef]) -> list[SeriesRef]:
    by_launch: dict[int | None, list[SeriesRef]] = {}
    for ref in group:
        by_launch.setdefault(ref.launch_id, []).append(ref)
    return [ref for refs in by_launch.values() for ref in leaders((ref, ref.labels) for ref in refs)]


def _line(group: list[SeriesRef], buckets: Mapping[int, Buckets], stat: str, aggregate: str) -> Line:
    how = CATALOGUE[group[0].metric].across
    by_launch: dict[int | None, list[Floats]] = {}
    for ref in group:
        by_launch.setdefault(ref.launch_id, []).append(_value(buckets[ref.id], stat))
    per_launch = [combine(values, how) for values in by_launch.values()]
    # Two launches share a bucket only around a restart: their growth adds up, their levels and rates do not.
    values = combine(per_launch, "sum" if stat == "sum" else "mean")
    counts = np.sum([buckets[ref.id].n for ref in group], axis=0)
    return _described(group, stat, values, counts, aggregate)


def _value(buckets: Buckets, stat: str) -> Floats:
    if stat == "mean":
        return np.where(buckets.n > 0, buckets.sum / np.maximum(buckets.n, 1), np.nan)
    if stat == "rate":
        seconds = buckets.span_ms / 1_000
        return np.where(buckets.span_ms > 0, buckets.sum / np.maximum(seconds, 1e-3), np.nan)
    if stat == "sum":
        return np.where(buckets.n > 0, buckets.sum, np.nan)
    return np.asarray({"min": buckets.min, "max": buckets.max, "last": buckets.last}[stat])


def _histogram_line(
    group: list[SeriesRef], read: Mapping[int, list[DistributionBuckets]], stat: str, aggregate: str
) -> Line:
    parts = [part for ref in group for part in read[ref.id]]
    layouts = {part.bounds for part in parts}
    count = np.sum([part.count for part in parts], axis=0)
    total = np.sum([part.sum for part in parts], axis=0)
    if stat == "count":
        values = count
    elif stat == "sum":
        values = total
    elif stat == "mean":
        values = np.where(count > 0, total / np.maximum(count, 1e-12), np.nan)
    elif len(layouts) == 1:
        summed = np.sum([part.counts for part in parts], axis=0)
        values = histogram_quantile(float(stat[1:]) / 100, parts[0].bounds, summed)
    else:
        raise InvalidInput(
            f"stat={stat} of {group[0].metric}: the series have different bucket bounds, which do not "
            f"add up; "
            "ask for aggregate=none, one launch, or stat=mean"
        )
    return _described(group, stat, np.asarray(values, dtype=np.float64), count.astype(np.int64), aggregate)


def _described(
    group: list[SeriesRef], stat: str, values: Floats, counts: NDArray[np.int64], aggregate: str
) -> Line:
    first = group[0]
    row = CATALOGUE[first.metric]
    unit = f"{row.unit}/s" if stat == "rate" else row.unit
    common = dict(first.labels) if aggregate == "none" else _common_labels(group)
    launches = {ref.launch_id for ref in group}
    launch_id = first.launch_id if len(launches) == 1 else None
    return Line(first.metric, unit, stat, first.server_id, launch_id, common, values, counts, len(group))


def _common_labels(group: list[SeriesRef]) -> dict[str, str]:
    shared = set(group[0].labels.items()).intersection(*(ref.labels.items() for ref in group[1:]))
    return {name: value for name, value in sorted(shared) if name not in RANK_LABELS}
