"""Mute alerts that somebody silenced (pure)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from specscope_server.alerts.pipeline.alert import Alert
from specscope_server.alerts.silences.matchers import Matcher, all_hold


@dataclass(frozen=True, slots=True)
class ActiveSilence:
    """One silence that holds now."""

    id: int
    matchers: Sequence[Matcher]


def silenced(alerts: Sequence[Alert], silences: Sequence[ActiveSilence]) -> dict[str, str]:
    """Return fingerprint → ``silence:ID`` of the first silence that matches."""
    muted = {}
    for alert in alerts:
        for silence in silences:
            if all_hold(silence.matchers, alert.labels):
                muted[alert.fingerprint] = f"silence:{silence.id}"
                break
    return muted
