"""Compare configurations (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def flatten(value: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested mappings as one level with dotted keys; an empty mapping stays a value."""
    flat: dict[str, Any] = {}
    for key, inner in value.items():
        name = f"{prefix}{key}"
        if isinstance(inner, Mapping) and inner:
            flat.update(flatten(inner, f"{name}."))
        else:
            flat[name] = inner
    return flat


def config_diff(
    before: Mapping[str, Any], after: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any], dict[str, tuple[Any, Any]]]:
    """Return (added, removed, changed) by dotted key; `1` and `true` and `1.0` are different values."""
    old, new = flatten(before), flatten(after)
    added = {key: new[key] for key in sorted(new.keys() - old.keys())}
    removed = {key: old[key] for key in sorted(old.keys() - new.keys())}
    common = sorted(old.keys() & new.keys())
    changed = {key: (old[key], new[key]) for key in common if repr(old[key]) != repr(new[key])}
    return added, removed, changed
