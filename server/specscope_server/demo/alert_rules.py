"""The alerts' file of the demo: the shipped rules, hurried as the story is. Pure.

The story runs ``speed`` times faster than told, so a rule that waits ten minutes would miss a dead draft that
is told in twenty and played in forty seconds. The times of the rules that the story is about are therefore
divided by ``speed``. The others keep theirs: collectors run by the clock, and so do the requests whose number
an identity or a drop of the accept length needs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

HURRIED = frozenset(
    {
        "configuration-changed", "dead-draft", "first-position-low", "norm-drift", "speculation-losing",
        "suffix-collapse", "verify-slower",
    }
)  # fmt: skip
WINDOWS, WAITS = ("window", "baseline_window"), ("for", "keep_firing_for")
LEAST_WINDOW_MS = 15_000
"""Shorter ones hold too few scrapes …"""
LEAST_SAMPLE_MS = 30_000
"""… and, where a whole interval decides, too few requests: those come by the clock, not by the story."""
INTERVAL_SECONDS = 3
"""Between two evaluations: less than the shortest window."""
UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}


def alerts_file(rules: Iterable[Mapping[str, Any]], speed: float) -> str:
    """Return what ``serve --alerts`` reads, of rules with their defaults written out; JSON is YAML, too."""
    hurried = [
        _hurried(rule, speed) if speed > 1 and rule["name"] in HURRIED else dict(rule) for rule in rules
    ]
    return json.dumps({"rules": hurried}, indent=1)


def _hurried(rule: Mapping[str, Any], speed: float) -> dict[str, Any]:
    said = f"(Demo: the story runs {speed:g} times faster than told, and so do this rule's times.)"
    return {
        **_divided(rule, speed),
        "condition": _condition(rule["condition"], speed),
        "description": f"{rule.get('description', '')} {said}".strip(),
    }


def _condition(condition: Mapping[str, Any], speed: float) -> dict[str, Any]:
    changed = _divided(
        condition, speed, LEAST_SAMPLE_MS if condition.get("on") == "interval" else LEAST_WINDOW_MS
    )
    if "conditions" in condition:
        changed["conditions"] = [_condition(inner, speed) for inner in condition["conditions"]]
    return changed


def _divided(values: Mapping[str, Any], speed: float, least_ms: int = 0) -> dict[str, Any]:
    """Return it with its times divided; windows are at least so long."""
    windows = {name: _sooner(values[name], speed, least_ms) for name in WINDOWS if name in values}
    return {**values, **windows, **{name: _sooner(values[name], speed) for name in WAITS if name in values}}


def _sooner(text: str, speed: float, least_ms: int = 0) -> str:
    number = text.rstrip("abcdefghijklmnopqrstuvwxyz")
    length_ms = max(round(float(number) * UNITS_MS[text[len(number) :]] / speed), least_ms)
    return f"{length_ms}ms" if length_ms else "0s"
