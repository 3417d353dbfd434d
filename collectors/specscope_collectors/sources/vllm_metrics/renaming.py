"""Samples of any vLLM version → the newest spelling, with our labels."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from functools import lru_cache

from specscope_collectors.exposition.parse import Exposition, RawSeries
from specscope_collectors.exposition.table import HISTOGRAM_SUFFIXES
from specscope_collectors.increments import LabelPairs
from specscope_collectors.sources.vllm_metrics.table import (
    PREFIXES,
    STARTED,
    SUPERSEDED,
    TABLE,
    TOTALS,
    V0_FAMILIES,
)

WITHOUT_TOTAL = {
    prefix + name.removesuffix("_total"): prefix + name for prefix in PREFIXES for name in TOTALS
}
"""Spelling without ``_total`` → the one with it."""

WANTED = (
    TABLE.wanted | {STARTED, *WITHOUT_TOTAL} | {prefix + name for prefix in PREFIXES for name in V0_FAMILIES}
)
MAX_POSITION = 1_000


def renamed(exposition: Exposition) -> Exposition:
    """Return ``exposition`` as the newest version would have written it; what is impossible is refused."""
    names = {WITHOUT_TOTAL.get(name, name) for name in exposition.names}
    gone = _superseded(names) | (_v0_counters() if is_v0(names) else frozenset())
    found = replace(exposition, samples={}, refusals=list(exposition.refusals), damaged=set())
    for (raw, labels), value in exposition.samples.items():
        name = WITHOUT_TOTAL.get(raw, raw)
        if name in gone or (raw != name and raw in WITHOUT_TOTAL and name in exposition.names):
            continue
        ours = relabelled(labels)
        if ours is None:
            found.refuse(name, f"{name}: a draft position or an engine that is no number")
        else:
            found.samples[name, ours] = value
    found.contradicted = set(_renamed_series(exposition.contradicted))
    found.damaged = {WITHOUT_TOTAL.get(name, name) for name in exposition.damaged | found.damaged} - gone
    return found


def is_v0(names: Collection[str]) -> bool:
    """Tell whether the V0 engine wrote these names; its counters of drafts count nothing."""
    return any(prefix + family in names for prefix in PREFIXES for family in V0_FAMILIES)


@lru_cache(maxsize=16_384)
def relabelled(labels: LabelPairs) -> LabelPairs | None:
    """Return vLLM's labels in our words: engine n is data-parallel rank n, position 0 is draft 1.

    None if one of these is no number.
    """
    ours = dict(labels)
    position, engine = ours.pop("position", None), ours.pop("engine", None)
    if position is not None:
        if not _is_number(position):
            return None
        ours["position"] = str(int(position) + 1)
    if engine:
        if not _is_number(engine):
            return None
        ours["dp_rank"] = engine
    return tuple(sorted(ours.items()))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 6 and int(text) < MAX_POSITION


def _superseded(names: Collection[str]) -> frozenset[str]:
    """Return the sample names that newer ones beside them replace."""
    found: set[str] = set()
    for prefix in PREFIXES:
        for old, new in SUPERSEDED.items():
            if any(prefix + new + suffix in names for suffix in ("", *HISTOGRAM_SUFFIXES)):
                found.update(prefix + old + suffix for suffix in ("", *HISTOGRAM_SUFFIXES))
    return frozenset(found)


def _v0_counters() -> frozenset[str]:
    return frozenset(
        prefix + name for prefix in PREFIXES for name in TOTALS if name.startswith("spec_decode_")
    )


def _renamed_series(series: Iterable[RawSeries]) -> Iterable[RawSeries]:
    for name, labels in series:
        ours = relabelled(labels)
        if ours is not None:
            yield WITHOUT_TOTAL.get(name, name), ours
