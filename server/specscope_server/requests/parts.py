"""Cut a population into parts: by a label's value, or by a length in classes that double (pure)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from specscope_server.kit.errors import InvalidInput
from specscope_server.kit.names import did_you_mean
from specscope_server.requests.population import Row

LABEL = "label:"
MAX_VALUES = 8
"""Values of a label that are shown; the others are one part, "other"."""
MAX_CLASSES = 12
MAX_LABELS = 20
DEFAULT = "prompt_tokens"


@dataclass(frozen=True, slots=True)
class Slice:
    """A part by the places of its requests. ``low`` and ``high`` are the bounds of a range, both inside."""

    name: str
    kind: str
    places: list[int] = field(default_factory=list)
    low: int | None = None
    high: int | None = None


def _sum(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else first + second


LENGTHS: Mapping[str, tuple[str, Callable[[Row], int | None]]] = {
    "prompt_tokens": ("prompt length", lambda row: row.prompt_tokens),
    "context_tokens": (
        "context length (prompt and output)", lambda row: _sum(row.prompt_tokens, row.completion_tokens),
    ),
    "completion_tokens": ("output length", lambda row: row.completion_tokens),
}  # fmt: skip
"""What requests can be cut by, besides labels: (words, how many tokens)."""


def title_of(by: str) -> str:
    """Return in words what requests are cut by; raise `InvalidInput` for what is neither length nor label."""
    if by.startswith(LABEL) and len(by) > len(LABEL):
        return f"label {by.removeprefix(LABEL)}"
    if by not in LENGTHS:
        hint = did_you_mean(by, LENGTHS)
        raise InvalidInput(
            f"by={by[:60]!r} is nothing that requests have.{hint} Write {', '.join(LENGTHS)} or label:NAME"
        )
    return LENGTHS[by][0]


def cut(rows: Sequence[Row], by: str) -> list[Slice]:
    """Return the parts that are not empty: lengths ascending, values by their number of requests."""
    title_of(by)
    if by.startswith(LABEL):
        return by_value(rows, by.removeprefix(LABEL))
    return by_length([LENGTHS[by][1](row) for row in rows])


def labels_of(row: Row) -> Mapping[str, Any]:
    """Return the labels of a request."""
    found: Mapping[str, Any] = orjson.loads(row.labels)
    return found


def label_names(rows: Sequence[Row]) -> list[str]:
    """Return the names of labels, the commonest first, at most `MAX_LABELS`."""
    seen = Counter(row.labels for row in rows)
    names: Counter[str] = Counter()
    for text, times in seen.items():
        for name in orjson.loads(text):
            names[name] += times
    return [name for name, _ in names.most_common(MAX_LABELS)]


def by_value(rows: Sequence[Row], name: str) -> list[Slice]:
    """Return a part for each of the commonest values, one for the others, one for those without the label."""
    places: dict[str | None, list[int]] = {}
    for place, row in enumerate(rows):
        value = labels_of(row).get(name)
        places.setdefault(None if value is None else str(value), []).append(place)
    without = places.pop(None, [])
    ranked = sorted(places, key=lambda value: (-len(places[value or ""]), value))
    found = [Slice(str(value), "value", places[value]) for value in ranked[:MAX_VALUES]]
    rest = ranked[MAX_VALUES:]
    if rest:
        others = sorted(place for value in rest for place in places[value])
        found.append(Slice(f"other ({len(rest)} values)", "other", others))
    if without:
        found.append(Slice("(without this label)", "unknown", without))
    return found


def by_length(tokens: Sequence[int | None]) -> list[Slice]:
    """Return classes from 2^a to 2^(a + s) − 1 tokens, with the least s that makes at most `MAX_CLASSES`."""
    known = [count for count in tokens if count is not None]
    unknown = [place for place, count in enumerate(tokens) if count is None]
    exponents = [max(count, 1).bit_length() - 1 for count in known]
    first, last = min(exponents, default=0), max(exponents, default=0)
    width = -(-(last - first + 1) // MAX_CLASSES)
    classes: dict[int, list[int]] = {}
    for place, count in enumerate(tokens):
        if count is not None:
            classes.setdefault((max(count, 1).bit_length() - 1 - first) // width, []).append(place)
    found = []
    for index in sorted(classes):
        low, high = 2 ** (first + index * width), 2 ** (first + (index + 1) * width) - 1
        low = 0 if low == 1 else low
        found.append(Slice(f"{low:,}–{high:,}", "range", classes[index], low, high))
    return found + ([Slice("not known", "unknown", unknown)] if unknown else [])
