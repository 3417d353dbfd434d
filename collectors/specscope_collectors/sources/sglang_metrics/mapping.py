"""Raw samples → canonical series. Pure; the table says what is what, this says what may be believed.

A counter or histogram is left out of an answer as soon as one value that belongs to its sum was refused: a
sum that is short would look like a reset, and its growth would be counted twice. What is left out now is not
lost, the next good answer carries the whole growth. For the same reason nothing at all is taken from an
answer that was cut off.
"""

from __future__ import annotations

import math

from specscope_collectors.catalogue import Kind
from specscope_collectors.increments import HistogramState, LabelPairs, SeriesKey
from specscope_collectors.sources.sglang_metrics import spec_gauges
from specscope_collectors.sources.sglang_metrics.exposition import Exposition
from specscope_collectors.sources.sglang_metrics.histograms import RawHistogram
from specscope_collectors.sources.sglang_metrics.labels import Labels, rank_of, sort_out, with_labels
from specscope_collectors.sources.sglang_metrics.mapped import Mapped
from specscope_collectors.sources.sglang_metrics.parts import (
    ContradictionError,
    Part,
    merged,
    the_same,
    total,
    total_of_levels,
)
from specscope_collectors.sources.sglang_metrics.table import DEMO_MARKER, PREFIXES, RAW_INDEX, RawName, Row
from specscope_collectors.sources.sglang_metrics.version import version_of

__all__ = ["HistogramState", "Mapped", "SeriesKey", "map_exposition"]

_SHOWN_CHARACTERS = 200


def map_exposition(exposition: Exposition, *, adaptive: bool = False) -> Mapped:
    """Return the canonical series of ``exposition``.

    ``adaptive``: the engine is known to change its draft depth, so gauges of one window may speak of two
    depths (see `spec_gauges`).
    """
    mapping = _Mapping(exposition)
    mapping.read()
    if exposition.is_truncated:
        mapping.mapped.refuse(f"line {exposition.lines}: no line end, the answer was cut off here")
    else:
        mapping.combine()
        spec_gauges.settle(mapping.mapped.levels, is_adaptive=adaptive, refuse=mapping.refuse)
    return mapping.mapped


class _Mapping:
    """One answer in progress."""

    def __init__(self, exposition: Exposition) -> None:
        self.mapped = Mapped(
            refused=exposition.refused,
            refusals=list(exposition.refusals),
            demo=DEMO_MARKER in exposition.names,
            is_truncated=exposition.is_truncated,
        )
        self._exposition = exposition
        self._scalars: dict[SeriesKey, tuple[Row, list[Part[float]]]] = {}
        self._histograms: dict[SeriesKey, dict[LabelPairs, Part[RawHistogram]]] = {}
        self._untrusted = _contradicted_keys(exposition)
        self._damaged = _damaged_metrics(exposition)

    def read(self) -> None:
        """Put every raw sample to the canonical series that it is part of."""
        doubled = _doubled_names(exposition=self._exposition)
        for (name, labels), value in self._exposition.samples.items():
            raw = RAW_INDEX.get(name)
            if raw is None:
                continue
            self._notice(labels)
            if name in doubled:
                self.mapped.refuse(f"{name} stands beside {PREFIXES[0]}{raw.family}, which is used instead")
                continue
            for row in raw.rows:
                if row.where is None or row.where in labels:
                    self._sample(row, raw, labels, value)
        has_ranks = bool(self.mapped.ranks)
        self.mapped.version_from_metric_set = version_of(self._exposition.names, has_ranks=has_ranks)

    def combine(self) -> None:
        """Make one value of the parts of each series."""
        for key, (row, parts) in self._scalars.items():
            if row.metric not in self._damaged and key not in self._untrusted:
                self._store_scalar(row, key, parts)
        for key, splits in self._histograms.items():
            if key[0] not in self._damaged and key not in self._untrusted:
                self._store_histogram(key, splits)

    def refuse(self, key: SeriesKey, reason: str) -> None:
        """Count a refused canonical value."""
        labels = ",".join(f"{name}={value}" for name, value in key[1])
        self.mapped.refuse(f"{key[0]}{{{labels}}}"[:_SHOWN_CHARACTERS] + f": {reason}")

    def _notice(self, labels: LabelPairs) -> None:
        model, rank = rank_of(labels)
        if model is not None:
            self.mapped.models.add(model)
        if rank:
            self.mapped.ranks.add(rank)

    def _sample(self, row: Row, raw: RawName, labels: LabelPairs, value: float) -> None:
        sorted_labels = sort_out(labels, row.sums_away)
        key = _key(row, sorted_labels)
        if not self._is_possible(row, key, value):
            return
        if row.kind is Kind.DISTRIBUTION:
            self._add_to_histogram(key, raw.suffix, sorted_labels, value)
        elif not (value == 0 and row.zero_means):
            part = Part(value / row.divisor, sorted_labels.priority)
            self._scalars.setdefault(key, (row, []))[1].append(part)

    def _is_possible(self, row: Row, key: SeriesKey, value: float) -> bool:
        if math.isnan(value) and row.is_nan_normal:
            return False
        if not math.isfinite(value):
            reason = f"{value} is no measurement"
        elif value < 0:
            reason = f"{value:g} is negative"
        elif row.at_most is not None and value > row.at_most:
            reason = f"{value:g} is above {row.at_most:g}"
        else:
            return True
        self._untrusted.add(key)
        self.refuse(key, reason)
        return False

    def _add_to_histogram(self, key: SeriesKey, suffix: str, labels: Labels, value: float) -> None:
        splits = self._histograms.setdefault(key, {})
        part = splits.get(labels.split)
        if part is None:
            part = splits[labels.split] = Part(RawHistogram(), labels.priority)
        try:
            part.value.add(suffix, labels.bound, value)
        except ContradictionError as problem:
            self._untrusted.add(key)
            self.refuse(key, str(problem))

    def _store_scalar(self, row: Row, key: SeriesKey, parts: list[Part[float]]) -> None:
        if row.kind is not Kind.LEVEL:
            self.mapped.counters[key] = total(parts)
            return
        try:
            self.mapped.levels[key] = total_of_levels(parts) if row.is_additive else the_same(parts)
        except ContradictionError as problem:
            self.refuse(key, str(problem))

    def _store_histogram(self, key: SeriesKey, splits: dict[LabelPairs, Part[RawHistogram]]) -> None:
        try:
            parts = [Part(split.value.state(), split.priority) for split in splits.values()]
            self.mapped.histograms[key] = merged(parts)
        except ContradictionError as problem:
            self.refuse(key, str(problem))


def _key(row: Row, labels: Labels) -> SeriesKey:
    return row.metric, with_labels(labels.kept, row.adds)


def _contradicted_keys(exposition: Exposition) -> set[SeriesKey]:
    """Return the canonical series of which one raw value is unknown because it stands there twice."""
    return {
        _key(row, sort_out(labels, row.sums_away))
        for name, labels in exposition.contradicted
        if name in RAW_INDEX
        for row in RAW_INDEX[name].rows
    }


def _damaged_metrics(exposition: Exposition) -> set[str]:
    """Return the metrics that are sums and of which an unknown part was refused."""
    return {
        row.metric
        for name in exposition.damaged
        if name in RAW_INDEX
        for row in RAW_INDEX[name].rows
        if row.kind is not Kind.LEVEL or row.is_additive
    }


def _doubled_names(exposition: Exposition) -> set[str]:
    """Return the names under the second prefix whose family also stands there under the first."""
    first, second = PREFIXES
    names = {name for name, _ in exposition.samples}
    return {name for name in names if name.startswith(second) and first + name[len(second) :] in names}
