"""Cards in words, shared by the kinds: one way to write a number, a time and a cut (pure)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import TypeVar

from specscope_server.alerts.channels.notification import Card, CardValue, Notification
from specscope_server.alerts.numbers import bare_unit, interval, number

Item = TypeVar("Item")
Shape = TypeVar("Shape")
Written = TypeVar("Written")

MARK = "… [cut]"
"""Ends a text that was shortened."""
LABELS_SHOWN = 12
ROWS_SHOWN = 40
MAX_LINE = 1_000
SAID_ELSEWHERE = frozenset({"rule", "severity", "category"})
"""Labels that title and state say already."""


def shorten(text: str, limit: int, mark: str = MARK) -> str:
    """Return the text in at most ``limit`` characters, with the mark where something was cut off."""
    if len(text) <= limit:
        return text
    return text[: limit - len(mark)] + mark if limit > len(mark) else text[:limit]


def one_line(text: str) -> str:
    """Return the text without line breaks, control and direction characters: names may hold anything.

    At most `MAX_LINE` characters, with the mark.
    """
    text = shorten(text, MAX_LINE)
    if not text.isprintable():
        text = "".join(char if char.isprintable() else " " for char in text)
    return " ".join(text.split())


def when(at_ms: int) -> str:
    """Return UTC as RFC 3339, which every target reads."""
    at = datetime.fromtimestamp(at_ms / 1_000, UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def when_short(at_ms: int) -> str:
    """Return UTC for people, to the second."""
    return datetime.fromtimestamp(at_ms / 1_000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def value_words(value: CardValue) -> str:
    """Return e.g. ``1.21 tokens per cycle (95 % interval 1.18 to 1.24), limit 1.5``."""
    text = number(value.value, value.unit) + interval(value.lower, value.upper, value.unit)
    if value.bound is not None:
        text += f", limit {number(value.bound, bare_unit(value.unit))}"
    return text


def window_words(card: Card) -> str:
    """Return the window and what it rests on; "" when unknown."""
    parts = []
    if card.window_from_ms is not None and card.window_to_ms is not None:
        parts.append(f"{when_short(card.window_from_ms)} to {when_short(card.window_to_ms)}")
    if card.n is not None:
        parts.append(f"n = {card.n:,}")
    if card.requests is not None:
        parts.append(f"{card.requests:,} requests")
    return ", ".join(parts)


def title(card: Card) -> str:
    """Return the title with what is simulated said."""
    return one_line(f"[demo] {card.title}" if card.is_demo else card.title)


def state_words(card: Card) -> str:
    """Return e.g. ``FIRING critical``."""
    return f"FIRING {card.severity}" if card.status == "firing" else "RESOLVED"


def headline(notification: Notification) -> str:
    """Return one line: state, how many, the first title, which part, and what the group has in common."""
    firing, cards = notification.firing, notification.alerts
    state = f"FIRING {notification.severity}" if firing else "RESOLVED"
    if notification.cause == "test":
        state = f"TEST {state}"
    if notification.cause == "acknowledged":
        state = f"ACKNOWLEDGED {state}"
    more = len(cards) - 1 + notification.truncated_alerts
    text = f"[{state}] {title((firing or cards)[0])}" + (f" and {more} more" if more else "")
    text += f", part {notification.part} of {notification.parts}" if notification.parts > 1 else ""
    group = label_words(notification.group_labels)
    return f"{text} ({group})" if group else text


def label_words(labels: dict[str, str]) -> str:
    """Return ``name=value`` of the first labels by name, on one line."""
    shown = sorted(labels.items())[:LABELS_SHOWN]
    hidden = len(labels) - len(shown)
    text = ", ".join(f"{one_line(name)}={one_line(value)}" for name, value in shown)
    return text + (f" and {hidden} more" if hidden else "")


def where_words(card: Card) -> str:
    """Return ``name=value`` of the labels that say which one of its kind it is, on one line."""
    return label_words({name: value for name, value in card.labels.items() if name not in SAID_ELSEWHERE})


def time_words(card: Card) -> str:
    """Return since when, and until when it fired."""
    text = f"since {when_short(card.starts_ms)}"
    return text + (f", over at {when_short(card.ends_ms)}" if card.ends_ms is not None else "")


def rows(card: Card) -> list[tuple[str, str]]:
    """Return (what, text) for each fact of a card, in the order in which somebody who was woken reads."""
    found = [(one_line(value.name), value_words(value)) for value in card.values[:ROWS_SHOWN]]
    found += [
        ("Window", window_words(card)),
        ("Time", time_words(card)),
        ("Just before", "\n".join(_changes(card))),
        ("Labels", label_words(card.labels)),
        ("Acknowledged by", one_line(card.acked_by)),
        ("Runbook", one_line(card.runbook)),
    ]
    found += [(one_line(name), text) for name, text in list(card.annotations.items())[:ROWS_SHOWN]]
    return [(name or "value", text) for name, text in found if text][:ROWS_SHOWN]


def _changes(card: Card) -> Iterable[str]:
    return (
        f"{when_short(change.at_ms)} {one_line(change.kind)}: {one_line(change.text)}"
        for change in card.changes[:ROWS_SHOWN]
    )


def plain(card: Card) -> str:
    """Return a card as lines of plain text."""
    lines = [f"[{state_words(card)}] {title(card)}", card.reason]
    lines += [f"{name}: {text}" for name, text in rows(card)]
    lines += [f"{one_line(link.title)}: {link.url}" for link in card.links]
    return "\n".join(line for line in lines if line)


def within(items: list[Item], fits: Callable[[list[Item], int], bool]) -> tuple[list[Item], int]:
    """Return (first items, number left out): as many as ``fits(items, left out)`` takes, at least one."""
    low, high = 1, max(len(items), 1)
    while low < high:  # what fits with more fits with fewer
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(items[:middle], len(items) - middle) else (low, middle - 1)
    return items[:low], max(len(items) - low, 0)


def roomiest(
    cards: list[Card], shapes: Sequence[Shape], write: Callable[[list[Card], Shape, int], Written],
    fits: Callable[[Written], bool],
) -> Written:  # fmt: skip
    """Return ``write(cards, shape, left out)`` in the first shape in which all cards fit.

    If they fit in none: in the last shape with as many as do, at least one.
    """
    for shape in shapes:
        written = write(cards, shape, 0)
        if fits(written):
            return written
    shown, left_out = within(cards, lambda some, left: fits(write(some, shapes[-1], left)))
    return write(shown, shapes[-1], left_out)
