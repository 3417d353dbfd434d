"""Put a card together (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from specscope_server.alerts.card.figure import figure_of
from specscope_server.alerts.card.links import links_of
from specscope_server.alerts.card.surroundings import Surroundings
from specscope_server.alerts.channels.notification import Card, CardValue
from specscope_server.alerts.rules.reading import Reading
from specscope_server.alerts.rules.schema import Rule
from specscope_server.alerts.states.machine import AlertState

BOUNDS = ("bound", "threshold", "above", "below", "limit")
"""Names under which evidence says what the value was compared with."""


MOST_FORMER = 10


def labels_of(rule: Rule, labels: Mapping[str, str], model: str) -> dict[str, str]:
    """Return the labels by which an alert is routed, silenced and muted."""
    fixed = {"rule": rule.name, "severity": rule.severity.value, "category": rule.category.value}
    return {**({"model": model} if model else {}), **rule.labels, **labels, **fixed}


def card_of(
    rule: Rule, reading: Reading, state: AlertState, around: Surroundings, public_url: str
) -> Card:  # fmt: skip
    """Return the card of a fire that began with ``reading``."""
    assert state.alert_id is not None
    assert state.fired_ms is not None
    labels = labels_of(rule, reading.labels, around.model)
    page = rule.page or str(reading.evidence.get("page", ""))
    times = (reading.window_from_ms, reading.window_to_ms)
    return with_reading(
        Card(
            alert_id=state.alert_id,
            fingerprint=state.fingerprint,
            rule=rule.name,
            title=rule.title,
            severity=rule.severity.value,
            status="firing",
            starts_ms=state.fired_ms,
            labels=labels,
            annotations=_annotations(rule),
            changes=around.changes,
            links=links_of(public_url, page, state.alert_id, labels, *times),
            runbook=rule.runbook,
            figure=figure_of(rule.category, labels, *times),
            is_demo=around.is_demo,
        ),
        reading,
    )


def with_reading(card: Card, reading: Reading) -> Card:
    """Return the card with the numbers of this reading."""
    return msgspec.structs.replace(
        card,
        reason=reading.reason,
        values=_values(reading),
        window_from_ms=reading.window_from_ms,
        window_to_ms=reading.window_to_ms,
        n=None if reading.n is None else round(reading.n),
        requests=_whole(reading.evidence.get("requests")),
    )


def ended(card: Card, at_ms: int, reason: str) -> Card:
    """Return the card of an alert that is over; its numbers stay those of the last breach."""
    ends_ms = max(at_ms, card.starts_ms)  # the clock may have been set back
    return msgspec.structs.replace(card, status="resolved", ends_ms=ends_ms, reason=reason)


def with_rule(card: Card, rule: Rule, series: Mapping[str, str]) -> Card:
    """Return the card of an alert whose rule was changed while it fires. ``series``: labels of the series."""
    labels = labels_of(rule, series, card.labels.get("model", ""))
    known = [each for each in card.former if each != labels]
    former = known if labels == card.labels or card.labels in known else [*known, card.labels]
    return msgspec.structs.replace(
        card, title=rule.title, severity=rule.severity.value, labels=labels, former=former[-MOST_FORMER:],
        annotations=_annotations(rule), runbook=rule.runbook,
    )  # fmt: skip


def _annotations(rule: Rule) -> dict[str, str]:
    told = {"description": rule.description, "advice": rule.advice, **rule.annotations}
    return {name: text for name, text in told.items() if text}


def _values(reading: Reading) -> list[CardValue]:
    if reading.value is None:
        return []
    name = str(reading.evidence.get("signal", "value"))
    bound = next((_number(reading.evidence[key]) for key in BOUNDS if key in reading.evidence), None)
    return [CardValue(name, reading.value, reading.unit, reading.lower, reading.upper, bound)]


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _whole(value: Any) -> int | None:
    found = _number(value)
    return None if found is None or found != found else round(found)
