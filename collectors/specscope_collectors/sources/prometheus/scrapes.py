"""Series of an API's answer → the scrapes that they came from.

All samples of one scrape carry its time, so what one target wrote at one time is what it answered then.
Labels that Prometheus adds (instance, job, pod, …) are taken off the series and kept as the scrape's
*witness*: two jobs, or two replicas, that scrape one server are two witnesses of one truth.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from specscope_collectors.exposition.parse import Exposition, RawSeries
from specscope_collectors.increments import LabelPairs
from specscope_collectors.sources.prometheus.answers import RawSeries as AnswerSeries
from specscope_collectors.sources.prometheus.engines import ENGINE_LABELS, STARTED, UP

COMMON_TARGET_LABELS = frozenset({
    "instance", "job", "pod", "namespace", "cluster", "container", "node", "service", "endpoint",
    "prometheus", "prometheus_replica", "replica", "monitor", "receive", "tenant_id",
})  # fmt: skip
"""Labels that scrapers add everywhere; what else they add here stands on ``up``."""

_LAST_SECONDS = 1e11
"""No time is later; an answer may claim any number."""

EXPORTED = "exported_"
"""Prometheus puts this in front of a target's own label that clashes with one that it adds."""


@dataclass(slots=True)
class Scrape:
    """What one witness knows of one server at one time."""

    time_ms: int
    witness: LabelPairs
    samples: dict[RawSeries, float] = field(default_factory=dict)
    up: float | None = None
    started: float | None = None
    """``process_start_time_seconds``."""

    @property
    def is_good(self) -> bool:
        """Whether the engine answered."""
        return bool(self.samples)


@dataclass(frozen=True, slots=True)
class Together:
    """Scrapes in order of time, and what was noticed on the way."""

    scrapes: list[Scrape]
    samples: int
    doubled: frozenset[str] = frozenset()
    """Metric names of which two series cannot be told apart; they are left out."""


def target_labels(series: Iterable[AnswerSeries]) -> frozenset[str]:
    """Return the names of the labels that the scraper added, as far as ``up`` shows them."""
    found: set[str] = set()
    for each in series:
        if each.metric.get("__name__") == UP:
            found.update(each.metric.keys() - {"__name__"})
    return frozenset(found)


def put_together(series: Iterable[AnswerSeries], added: frozenset[str], after_ms: int) -> Together:
    """Return the scrapes later than ``after_ms``; ``added`` names the labels that the scraper added."""
    found: dict[tuple[int, LabelPairs], Scrape] = {}
    seen: dict[tuple[LabelPairs, RawSeries], None] = {}
    doubled: set[str] = set()
    samples = 0
    for each in series:
        name = each.metric.get("__name__", "")
        own, witness = _sorted_out(each.metric, added)
        key = (name, own)
        if (witness, key) in seen:
            doubled.add(name)
        seen[witness, key] = None
        for seconds, text in each.values:
            time_ms = round(seconds * 1000) if seconds < _LAST_SECONDS else 0
            if time_ms <= after_ms:
                continue
            samples += 1
            scrape = found.get((time_ms, witness))
            if scrape is None:
                scrape = found[time_ms, witness] = Scrape(time_ms, witness)
            _put(scrape, key, _number(text))
    for scrape in found.values() if doubled else ():
        scrape.samples = {key: value for key, value in scrape.samples.items() if key[0] not in doubled}
    ordered = sorted(found.values(), key=lambda scrape: (scrape.time_ms, scrape.witness))
    return Together(ordered, samples, frozenset(doubled))


def _number(text: str) -> float:
    """Return the value; NaN, which is refused and counted later, for what is none."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def _put(scrape: Scrape, key: RawSeries, value: float) -> None:
    if key[0] == UP:
        scrape.up = value
    elif key[0] == STARTED:
        scrape.started = value
    else:
        scrape.samples[key] = value


def _sorted_out(metric: dict[str, str], added: frozenset[str]) -> tuple[LabelPairs, LabelPairs]:
    """Return (the engine's own labels, the scraper's), each sorted."""
    own, witness = [], []
    for name, value in metric.items():
        if name == "__name__":
            continue
        if name.startswith(EXPORTED) and name[len(EXPORTED) :] in metric:
            own.append((name[len(EXPORTED) :], value))
        elif EXPORTED + name in metric or _is_added(name, added):
            witness.append((name, value))
        else:
            own.append((name, value))
    return tuple(sorted(own)), tuple(sorted(witness))


def _is_added(name: str, added: frozenset[str]) -> bool:
    return name not in ENGINE_LABELS and (name in added or name in COMMON_TARGET_LABELS)


def exposition(scrape: Scrape, max_series: int, doubled: frozenset[str]) -> Exposition:
    """Return what the engine answered, at most ``max_series`` of it, as the parser would have read it."""
    samples = dict(scrape.samples)
    if scrape.started is not None:
        samples[STARTED, ()] = scrape.started
    found = Exposition(lines=len(samples), samples=samples)
    found.names = frozenset(name for name, _ in scrape.samples)
    for name in sorted(doubled):
        found.refuse(name, f"{name}: two series that cannot be told apart")
    if len(samples) > max_series:
        kept = list(samples.items())
        found.samples = dict(kept[:max_series])
        found.over_limit = len(kept) - max_series
        for (name, _), _ in kept[max_series:]:
            found.refuse(name, f"{name}: more than {max_series} series")
    return found
