"""What a silence reaches now, and whether that can be meant (pure)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from specscope_server.alerts.silences.matchers import Matcher, all_hold

ANY = "some value that nothing has"


@dataclass(frozen=True, slots=True)
class Reach:
    """Alerts that fire now and match, and a warning or ''."""

    matches: int
    warning: str


def reach_of(matchers: Sequence[Matcher], firing: Sequence[Mapping[str, str]]) -> Reach:
    """Return what is reached of the alerts with these labels."""
    matches = sum(all_hold(matchers, labels) for labels in firing)
    return Reach(matches, _warning(matchers, firing, matches))


def _warning(matchers: Sequence[Matcher], firing: Sequence[Mapping[str, str]], matches: int) -> str:
    if all_hold(matchers, {matcher.label: ANY for matcher in matchers}):
        return "it holds whatever value its labels have, so it mutes nearly every alert"
    if matches == len(firing) and matches > 1:
        return f"it matches everything that fires now: {matches} alerts"
    if matches or not firing:
        return ""  # a silence for what is to come is nothing odd
    known = {name for labels in firing for name in labels}
    lacking = sorted({matcher.label for matcher in matchers} - known)
    which = f"; none has a label {', '.join(lacking)}" if lacking else ""
    return f"it matches none of the alerts that fire now ({len(firing)}){which}"
