"""Handing sums to the engine's own prometheus_client, off the scheduler's thread.

The scheduler's thread only adds to plain numbers; once a second this turns their growth into ``inc`` calls.
Metric names begin with ``specscope_`` and stand on SGLang's ``/metrics`` beside its own.

Processes share metrics through files that are mapped into memory. Growing one on a full disk ends the
process with SIGBUS, and that is the engine's. So a new label set waits until there is room; what it counted
is added then.
"""

from __future__ import annotations

import importlib
import logging
import os
from collections.abc import Mapping
from typing import Any

LabelValues = tuple[str, ...]

FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""The engine sets it when it serves metrics."""
LEAST_ROOM_BYTES = 1024 * 1024
log = logging.getLogger("specscope_probe")


class Metrics:
    """The families of one process; label names are fixed per family, rank labels come first."""

    def __init__(self, rank_labels: Mapping[str, str], registry: Any = None) -> None:
        client = importlib.import_module("prometheus_client")
        self._client = client
        self._ranks = dict(rank_labels)
        self._registry = client.REGISTRY if registry is None else registry
        self.had_room = True
        """Whether the last new label set found room."""
        self._families: dict[str, Any] = {}
        self._children: dict[tuple[str, LabelValues], list[Any]] = {}

    def counter(self, name: str, meaning: str, labels: Mapping[str, str], value: float) -> None:
        """Bring a counter up to ``value``. A new label set begins at 0 even if nothing is to be counted."""
        child = self._child("Counter", name, meaning, labels)
        if child is not None and (growth := value - child[1]) > 0:
            child[0].inc(growth)
            child[1] = value

    def gauge(self, name: str, meaning: str, labels: Mapping[str, str], value: float) -> None:
        """Set a gauge."""
        child = self._child("Gauge", name, meaning, labels)
        if child is not None and child[1] != value:
            child[0].set(value)
            child[1] = value

    def knows(self, name: str, labels: Mapping[str, str]) -> bool:
        """Say whether this label set has been exported before."""
        return (name, tuple(labels.values())) in self._children

    def _child(self, kind: str, name: str, meaning: str, labels: Mapping[str, str]) -> list[Any] | None:
        """Return [child, last value], made on first use; None while there is no room to make it."""
        key = (name, tuple(labels.values()))
        child = self._children.get(key)
        if child is None:
            if not self._has_room():
                return None
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

    def _has_room(self) -> bool:
        """Say whether a file of metrics may grow. Raises OSError when the folder is gone."""
        folder = os.environ.get(FOLDER)
        if not folder:
            return True
        disk = os.statvfs(folder)
        has_room = disk.f_bavail * disk.f_frsize >= LEAST_ROOM_BYTES
        if self.had_room and not has_room:
            log.warning("specscope: %s is full; new metrics wait until there is room", folder)
        self.had_room = has_room
        return has_room
