"""Alerts, rules and channels as the pages show them (pure)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from specscope_server.alerts.channels.schemas import ChannelItem
from specscope_server.alerts.schemas import AlertItem
from specscope_server.kit.timeparse import to_iso
from specscope_server.kit.web.health import DEGRADED
from specscope_server.pages.views import VerdictView
from specscope_server.pages.wording import moment_text, span_text

SEVERITY_KINDS = {"critical": "bad", "warning": "warn", "info": "unknown"}
STATE_KINDS = {
    "pending": "unknown", "recovering": "warn", "no_data": "unknown", "error": "bad", "resolved": "ok",
    "normal": "ok",
}  # fmt: skip
STATE_WORDS = {
    "firing": "fires", "recovering": "recovers", "pending": "pending", "no_data": "nothing is known",
    "error": "cannot be judged", "resolved": "over", "normal": "fine",
}  # fmt: skip
DELIVERY_KINDS = {"sent": "ok", "pending": "unknown", "claimed": "unknown", "failed": "bad"}
OUTCOME_KINDS = {"delivered": "ok", "retry": "warn", "unknown": "warn"}
LOUD = ("firing", "recovering")
SAID = ("server", "rule", "category", "severity")
"""Labels that a row says elsewhere."""


@dataclass(frozen=True, slots=True)
class AlertRow:
    """One alert. Texts are untrusted."""

    item: AlertItem
    kind: str
    words: str
    """State, severity and for how long."""
    labels: tuple[tuple[str, str], ...]
    server: str
    muted: str

    @property
    def can_be_taken(self) -> bool:
        """Tell whether it fires, so that somebody can take it on."""
        return self.item.state in LOUD and not self.item.is_heartbeat


def alert_row(item: AlertItem, now_ms: int) -> AlertRow:
    """Return an alert as a row."""
    state = item.state.value
    is_loud = state in LOUD
    kind = SEVERITY_KINDS.get(item.severity, "warn") if state == "firing" else STATE_KINDS.get(state, "warn")
    since = item.fired if is_loud and item.fired else item.since
    words = f"{STATE_WORDS.get(state, state)} for {span_text(_seconds(since, now_ms))}"
    if item.is_heartbeat and state == "firing":
        kind, words = "ok", f"heartbeat for {span_text(_seconds(since, now_ms))}"
    return AlertRow(
        item=item,
        kind=kind,
        words=words if item.is_heartbeat else f"{item.severity}, {words}",
        labels=tuple((name, value) for name, value in sorted(item.labels.items()) if name not in SAID),
        server=item.labels.get("server", ""),
        muted=muted_words(item.muted_by),
    )


def muted_words(muted_by: str) -> str:
    """Return why nobody is told, in words; "" = somebody is."""
    kind, _, what = muted_by.partition(":")
    return {
        "": "",
        "silence": f"silence {what}",
        "inhibited": f"muted while {what} fires",
        "idle": "muted while idle",
    }.get(kind, muted_by)


def headline(rows: Sequence[AlertRow], health: str, rules_on: int) -> VerdictView:
    """Return in one sentence how it stands."""
    if health != "ok" and not health.startswith(DEGRADED):
        return VerdictView("bad", f"Alerting does not work: {health}", ("What is shown below may be old.",))
    rows = [row for row in rows if not row.item.is_heartbeat]
    firing = [row for row in rows if row.item.state == "firing"]
    told = [row for row in firing if not row.muted]
    reasons = tuple(
        f"{len(found)} {words}"
        for words, found in (
            ("muted", [row for row in firing if row.muted]),
            ("acknowledged", [row for row in firing if row.item.acked_by]),
            ("that recover", [row for row in rows if row.item.state == "recovering"]),
            ("pending", [row for row in rows if row.item.state == "pending"]),
            ("of which nothing is known", [row for row in rows if row.item.state == "no_data"]),
            ("that cannot be judged", [row for row in rows if row.item.state == "error"]),
        )
        if found
    )
    if not rules_on:
        return VerdictView("warn", "No rule is on", ("Turn on rules under Rules.",))
    if not firing:
        return VerdictView("ok", f"Nothing fires; {rules_on} rules are on", reasons)
    worst = min((row.kind for row in told or firing), key=("bad", "warn", "unknown").index, default="warn")
    return VerdictView(worst, f"{len(firing)} alert{'s fire' if len(firing) > 1 else ' fires'}", reasons)


def channel_state(channel: ChannelItem) -> tuple[str, str]:
    """Return (kind, words) of a channel."""
    if not channel.enabled:
        return "idle", f"off: {channel.disabled_reason}" if channel.disabled_reason else "off"
    if channel.breaker.state == "open":
        return "bad", "fails; nothing is tried for a while"
    if channel.breaker.failures:
        return "warn", f"failed {channel.breaker.failures} times in a row"
    if channel.breaker.failing_since:
        return "warn", "refuses what it is told"
    return ("ok", "works") if channel.last_sent else ("unknown", "not used yet")


def settings_text(settings: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the settings of a channel as texts; secrets came without their values."""
    return [
        (name, ", ".join(map(str, value)) if isinstance(value, list) else str(value))
        for name, value in settings.items()
        if value not in (None, "", [], {})
    ]


def moment_of(at_ms: int) -> str:
    """Return a time in epoch milliseconds as the pages write it (UTC)."""
    return moment_text(to_iso(at_ms))


def _seconds(iso: str, now_ms: int) -> float:
    return now_ms / 1_000 - datetime.fromisoformat(iso).timestamp()
