"""Mute alerts that another alert explains, and those that speak of an idle engine (pure)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from specscope_server.alerts.pipeline.alert import Alert
from specscope_server.alerts.rules.schema import Inhibition

IDLE = "idle"


def inhibited(alerts: Sequence[Alert], inhibitions: Mapping[str, Sequence[Inhibition]]) -> dict[str, str]:
    """Return fingerprint → why it is muted. ``inhibitions``: of the rules by name.

    An alert that is muted mutes no other: two that would mute each other cannot both fall silent, the older
    one is told.
    """
    muted = {alert.fingerprint: IDLE for alert in alerts if alert.is_idle}
    for source in sorted(alerts, key=lambda alert: (alert.fired_ms, alert.fingerprint)):
        if muted.get(source.fingerprint, IDLE) != IDLE:
            continue
        for inhibition in inhibitions.get(source.rule, ()):
            for target in alerts:
                if _mutes(source, inhibition, target):
                    muted[target.fingerprint] = f"inhibited:{source.rule}"
    return muted


def _mutes(source: Alert, inhibition: Inhibition, target: Alert) -> bool:
    return (
        target.rule != source.rule
        and all(
            fnmatchcase(target.labels.get(name, ""), pattern) for name, pattern in inhibition.target.items()
        )
        and all(source.labels.get(name, "") == target.labels.get(name, "") for name in inhibition.equal)
    )
