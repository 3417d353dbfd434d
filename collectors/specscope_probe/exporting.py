"""Handing sums to the engine's own prometheus_client, off the scheduler's thread.

The scheduler's thread only adds to plain numbers; once a second this turns their growth into ``inc`` calls.
Metric names begin with ``specscope_`` and stand on SGLang's ``/metrics`` beside its own.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

LabelValues = tuple[str, ...]


class Metrics:
    """The families of one process; label names are fixed per family, rank labels come first."""

    def __init__(self, rank_labels: Mapping[str, str], registry: Any = None) -> None:
        client = importlib.import_module("prometheus_client")
        self._client = client
        self._ranks = dict(rank_labels)
        self._registry = client.REGISTRY if registry is None else registry
        self._families: dict[str, Any] = {}
        self._children: dict[tuple[str, LabelValues], list[Any]] = {}

    def counter(self, name: str, meaning: str, labels: Mapping[str, str], value: float) -> None:
        """Bring a counter up to ``value``. A new label set begins at 0 even if nothing is to be counted."""
        child = self._child("Counter", name, meaning, labels)
        growth = value - child[1]
        if growth > 0:
            child[0].inc(growth)
            child[1] = value

    def gauge(self, name: str, meaning: str, labels: Mapping[str, str], value: float) -> None:
        """Set a gauge."""
        child = self._child("Gauge", name, meaning, labels)
        if child[1] != value:
            child[0].set(value)
            child[1] = value

    def knows(self, name: str, labels: Mapping[str, str]) -> bool:
        """Say whether this label set has been exported before."""
        return (name, tuple(labels.values())) in self._children

    def _child(self, kind: str, name: str, meaning: str, labels: Mapping[str, str]) -> list[Any]:
        """Return [child, last value], made on first use."""
        key = (name, tuple(labels.values()))
        child = self._children.get(key)
        if child is None:
            family = self._families.get(name)
            if family is None:
                more = {"multiprocess_mode": "mostrecent"} if kind == "Gauge" else {}
                names = (*self._ranks, *labels)
                make = getattr(self._client, kind)
                family = make(name, meaning, names, registry=self._registry, **more)
                self._families[name] = family
            made = family.labels(*self._ranks.values(), *labels.values())
            child = self._children[key] = [made, 0.0 if kind == "Counter" else None]
        return child
