"""Raw samples → canonical series. Pure; the table says what is what, this says what may be believed.

A counter or histogram is left out of an answer as soon as one value that belongs to its sum was refused: a
sum that is short would look like a reset, and its growth would be counted twice. What is left out now is not
lost, the next good answer carries the whole growth. For the same reason nothing at all is taken from an
answer that was cut off.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from specscope_collectors.catalogue import Kind
from specscope_collectors.exposition.histograms import RawHistogram
from specscope_collectors.exposition.labels import Labels, rank_of, sort_out, with_labels
from specscope_collectors.exposition.mapped import Mapped
from specscope_collectors.exposition.parse import Exposition
from specscope_collectors.exposition.parts import (
    ContradictionError,
    Part,
    merged,
    the_same,
    total,
    total_of_levels,
)
from specscope_collectors.exposition.table import DEMO_MARKER, RawName, Row, Table
from specscope_collectors.increments import LabelPairs, SeriesKey

Refuse = Callable[[SeriesKey, str], None]
Settle = Callable[[Mapped, Refuse], None]
"""Takes out what an engine's values say only together: zeros that are no measurement, contradictions."""

_SHOWN_CHARACTERS = 200


def map_by_table(exposition: Exposition, table: Table, settle: Settle) -> Mapped:
    """Return the canonical series of ``exposition``."""
    mapping = _Mapping(exposition, table)
    mapping.read()
    if exposition.is_truncated:
        mapping.mapped.refuse(f"line {exposition.lines}: no line end, the answer was cut off here")
    else:
        mapping.combine()
        settle(mapping.mapped, mapping.refuse)
    return mapping.mapped


class _Mapping:
    """One answer in progress."""

    def __init__(self, exposition: Exposition, table: Table) -> None:
        self.mapped = Mapped(
            engine=table.engine,
            refused=exposition.refused,
            refusals=list(exposition.refusals),
            demo=DEMO_MARKER in exposition.names,
            is_truncated=exposition.is_truncated,
        )
        self._exposition = exposition
        self._table = table
        self._scalars: dict[SeriesKey, tuple[Row, list[Part[float]]]] = {}
        self._histograms: dict[SeriesKey, dict[LabelPairs, Part[RawHistogram]]] = {}
        self._untrusted = _contradicted_keys(exposition, table)
        self._damaged = _damaged_metrics(exposition, table)

    def read(self) -> None:
        """Put every raw sample to the canonical series that it is part of."""
        doubled = _doubled_names(self._exposition, self._table.prefixes)
        for (name, labels), value in self._exposition.samples.items():
            raw = self._table.index.get(name)
            if raw is None:
                continue
            if not raw.is_guest:
                self._notice(labels)
            if name in doubled:
                first = self._table.prefixes[0]
                self.mapped.refuse(f"{name} stands beside {first}{raw.family}, which is used instead")
                continue
            for row in raw.rows:
                if row.where is None or row.where in labels:
                    self._sample(row, raw, labels, value)

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


def _contradicted_keys(exposition: Exposition, table: Table) -> set[SeriesKey]:
    """Return the canonical series of which one raw value is unknown because it stands there twice."""
    return {
        _key(row, sort_out(labels, row.sums_away))
        for name, labels in exposition.contradicted
        if name in table.index
        for row in table.index[name].rows
    }


def _damaged_metrics(exposition: Exposition, table: Table) -> set[str]:
    """Return the metrics that are sums and of which an unknown part was refused."""
    return {
        row.metric
        for name in exposition.damaged
        if name in table.index
        for row in table.index[name].rows
        if row.kind is not Kind.LEVEL or row.is_additive
    }


def _doubled_names(exposition: Exposition, prefixes: tuple[str, str]) -> set[str]:
    """Return the names under the second prefix whose family also stands there under the first."""
    first, second = prefixes
    names = {name for name, _ in exposition.samples}
    return {name for name in names if name.startswith(second) and first + name[len(second) :] in names}
