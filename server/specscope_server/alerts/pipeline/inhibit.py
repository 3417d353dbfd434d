"""Mute alerts that another alert explains, and those that speak of the work of an idle engine (pure)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from specscope_server.alerts.pipeline.alert import Alert
from specscope_server.alerts.rules.schema import Inhibition

IDLE = "idle"
LASTING = frozenset({"configuration", "drift", "probe", "sources"})
"""Categories of what idle time does not touch: hidden states that were not finite stay that, a configuration
that changed stays changed. They are told also while the engine does no work."""


def inhibited(alerts: Sequence[Alert], inhibitions: Mapping[str, Sequence[Inhibition]]) -> dict[str, str]:
    """Return fingerprint → why it is muted. ``inhibitions``: of the rules by name.

    An alert that is muted mutes no other: two that would mute each other cannot both fall silent, the older
    one is told.
    """
    muted = {
        alert.fingerprint: IDLE
        for alert in alerts
        if alert.is_idle and alert.labels.get("category", "") not in LASTING
    }
    reaches = {
        rule: [_Reach(inhibition, alerts) for inhibition in each] for rule, each in inhibitions.items()
    }
    for source in sorted(alerts, key=lambda alert: (alert.fired_ms, alert.fingerprint)):
        if muted.get(source.fingerprint, IDLE) != IDLE:
            continue
        for reach in reaches.get(source.rule, ()):
            for target in reach.of(source):
                muted[target.fingerprint] = f"inhibited:{source.rule}"
    return muted


class _Reach:
    """The alerts that an inhibition is about, by the labels that must be alike: looked up, not compared."""

    def __init__(self, inhibition: Inhibition, alerts: Sequence[Alert]) -> None:
        self._equal = inhibition.equal
        self._found: dict[tuple[str, ...], list[Alert]] = {}
        for alert in alerts:
            wanted = inhibition.target.items()
            if all(fnmatchcase(alert.labels.get(name, ""), pattern) for name, pattern in wanted):
                self._found.setdefault(self._key(alert), []).append(alert)

    def of(self, source: Alert) -> list[Alert]:
        """Return what the source mutes: never alerts of its own rule."""
        return [target for target in self._found.get(self._key(source), ()) if target.rule != source.rule]

    def _key(self, alert: Alert) -> tuple[str, ...]:
        return tuple(alert.labels.get(name, "") for name in self._equal)
