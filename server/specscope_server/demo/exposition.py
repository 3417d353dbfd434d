"""Writes metrics as SGLang's multiprocess collector does: labels sorted, histograms as sum, buckets, count.

A `Family` knows its name, type and help and draws its rows from a `Snapshot`. A family without rows is not
written, as in the engine, where a label set appears with its first write. Every help text begins with
``(demo)``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import TypeAlias

from specscope_server.demo.histograms import Histogram
from specscope_server.demo.telemetry import Telemetry

Labels: TypeAlias = dict[str, str]
Row: TypeAlias = tuple[Labels, float]

TP_SIZE = 8


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What `Family` rows are drawn from: one launch at one moment."""

    model_name: str
    telemetry: Telemetry
    constants: dict[str, float]
    """Gauges that hold since start, by SGLang's name without prefix."""
    active_requests: int
    pid: int

    def scheduler(self, rank: int = 0, **more: str) -> Labels:
        """Return the labels of a scheduler process."""
        ranks = {"tp_rank": str(rank), "pp_rank": "0", "moe_ep_rank": "0"}
        return {"model_name": self.model_name, "engine_type": "unified", **ranks, **more}

    def gauge(self, name: str, default: float = 0.0) -> list[Row]:
        """Return one gauge of the leader: absent before the first log call, then ``default`` until set."""
        gauges = self.telemetry.gauges
        return [(self.scheduler(), gauges.get(name, default))] if gauges else []

    def per_rank(self, value: float, **more: str) -> list[Row]:
        """Return one value for each tensor-parallel rank."""
        return [(self.scheduler(rank, **more), value) for rank in range(TP_SIZE)]


@dataclass(frozen=True, slots=True)
class Family:
    """One metric family; ``rows`` yields labels and values, ``histograms`` labels and histograms."""

    name: str
    kind: str
    help: str
    rows: Callable[[Snapshot], Iterable[Row]] = lambda _: ()
    histograms: Callable[[Snapshot], Iterable[tuple[Labels, Histogram]]] = lambda _: ()

    def lines(self, snapshot: Snapshot) -> Iterator[str]:
        """Yield the lines of this family, none if nothing was written yet."""
        samples = [_line(self.name, labels, value) for labels, value in self.rows(snapshot)]
        for labels, histogram in self.histograms(snapshot):
            samples += _histogram_lines(self.name, labels, histogram)
        if samples:
            yield f"# HELP {self.name} (demo) {self.help}"
            yield f"# TYPE {self.name} {self.kind}"
            yield from samples


def _line(name: str, labels: Labels, value: float) -> str:
    return f"{name}{_body(tuple(labels.items()))} {number(value)}"


@lru_cache(maxsize=20_000)
def _body(labels: tuple[tuple[str, str], ...]) -> str:
    """Return labels in braces; the same ones are written at every reading."""
    escaped = {
        key: text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n") for key, text in labels
    }
    body = ",".join(f'{key}="{escaped[key]}"' for key in sorted(escaped))
    return f"{{{body}}}" if body else ""


def number(value: float) -> str:
    """Format a value as the exposition does (``1.0``, ``NaN``, ``+Inf``)."""
    if value != value:
        return "NaN"
    return "+Inf" if value == float("inf") else repr(float(value))


def _histogram_lines(name: str, labels: Labels, histogram: Histogram) -> Iterator[str]:
    yield _line(f"{name}_sum", labels, histogram.sum)
    edges = (*histogram.bounds, float("inf"))
    for edge, below in zip(edges, accumulate(histogram.counts), strict=True):
        yield _line(f"{name}_bucket", {**labels, "le": number(edge)}, below)
    yield _line(f"{name}_count", labels, histogram.count)


def render(families: Iterable[Family], snapshot: Snapshot) -> str:
    """Return the whole body of ``/metrics``."""
    return "\n".join(line for family in families for line in family.lines(snapshot)) + "\n"
