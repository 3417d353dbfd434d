"""Cards as Alertmanager's labels and annotations (pure)."""

from __future__ import annotations

import re

from specscope_server.alerts.channels.notification import Card
from specscope_server.alerts.channels.words import plain, rows, shorten, title

MAX_VALUE = 1_000
MAX_ANNOTATION = 4_000
_NOT_NAME = re.compile(r"[^a-zA-Z0-9_]")


def label_name(name: str) -> str:
    """Return a name that Prometheus takes: letters, digits and underscores."""
    cleaned = _NOT_NAME.sub("_", name)[:200] or "_"
    return f"_{cleaned}" if cleaned[0].isdigit() else cleaned


def labels_of(card: Card) -> dict[str, str]:
    """Return the labels that name the alert: the same from fire to resolve. Empty ones are left out."""
    own = {label_name(name): shorten(value, MAX_VALUE) for name, value in sorted(card.labels.items())}
    fixed = {"alertname": card.rule, "severity": card.severity, "source": "specscope"}
    return {name: value for name, value in {**own, **fixed}.items() if value}


def annotations_of(card: Card) -> dict[str, str]:
    """Return what people read; each number and fact of the card has an annotation of its own."""
    found = {
        "summary": title(card),
        "description": shorten(plain(card), MAX_ANNOTATION),
        "reason": shorten(card.reason, MAX_ANNOTATION),
        "runbook_url": card.runbook,
    }
    for name, text in rows(card):
        found.setdefault(label_name(name.lower()), shorten(text, MAX_ANNOTATION))
    return {name: text for name, text in found.items() if text}


def link_of(card: Card, external_url: str) -> str:
    """Return where the alert opens; "" when nobody knows."""
    return card.links[0].url if card.links else external_url
