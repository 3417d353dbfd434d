"""Which series the labels of a rule mean: exact values, or patterns as in file names (pure)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from specscope_server.alerts.rules.reading import LabelKey

Flags: TypeAlias = NDArray[np.bool_]
Match: TypeAlias = Mapping[str, str | list[str]]


class Matcher:
    """Answers for many rules about the same series: each (label, pattern) is looked at once."""

    def __init__(self, keys: Sequence[LabelKey]) -> None:
        self._labels = [dict(key) for key in keys]
        self._known: dict[tuple[str, str], Flags] = {}
        self._places: dict[str, dict[str, Flags]] = {}

    def flags(self, match: Match) -> Flags:
        """Return for each series whether all labels match."""
        found = np.ones(len(self._labels), dtype=bool)
        for label, wanted in match.items():
            patterns = [wanted] if isinstance(wanted, str) else wanted
            one = np.zeros(len(self._labels), dtype=bool)
            for pattern in patterns:
                one |= self._pattern(label, pattern)
            found &= one
        return found

    def _pattern(self, label: str, pattern: str) -> Flags:
        if not any(sign in pattern for sign in "*?["):
            return self._exact(label).get(pattern, np.zeros(len(self._labels), dtype=bool))
        key = (label, pattern)
        if key not in self._known:
            hits = [label in labels and fnmatchcase(labels[label], pattern) for labels in self._labels]
            self._known[key] = np.array(hits, dtype=bool)
        return self._known[key]

    def _exact(self, label: str) -> dict[str, Flags]:
        if label not in self._places:
            values: dict[str, Flags] = {}
            for place, labels in enumerate(self._labels):
                if label in labels:
                    values.setdefault(labels[label], np.zeros(len(self._labels), dtype=bool))[place] = True
            self._places[label] = values
        return self._places[label]
