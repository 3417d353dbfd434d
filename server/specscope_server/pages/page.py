"""What a page knows about itself: its path, and what the reader chose (which all lives in the URL)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlencode

from markupsafe import Markup

RANGE_CHOICES = ("5m", "15m", "1h", "6h", "24h", "7d")
DEFAULT_RANGE = "1h"
YOUNG_RANGES = (("5m", 300_000), ("15m", 900_000))
"""Ranges shown by default while everything that was ever seen fits into them: (choice, its length)."""
REFRESH_CHOICES = (("5", "5 s"), ("10", "10 s"), ("30", "30 s"), ("60", "1 min"), ("off", "off"))
DEFAULT_REFRESH = "10"
THEMES = ("light", "dark")
STATE_KEYS = ("server", "launch", "from", "to", "refresh", "theme")
MAX_VALUE_CHARACTERS = 6_000


@dataclass(frozen=True, slots=True)
class NavigationItem:
    """One entry of the navigation."""

    path: str
    title: str


NAVIGATION = (
    NavigationItem("/", "Overview"),
    NavigationItem("/acceptance", "Acceptance"),
    NavigationItem("/time", "Time"),
    NavigationItem("/drift", "Drift"),
    NavigationItem("/requests", "Requests"),
    NavigationItem("/canary", "Canary"),
    NavigationItem("/alerts", "Alerts"),
    NavigationItem("/sources", "Sources"),
    NavigationItem("/glossary", "Glossary"),
)


@dataclass(frozen=True, slots=True)
class Page:
    """Context of one page."""

    path: str
    title: str
    query: Mapping[str, str] = field(default_factory=dict)
    """The state keys of the URL, cleaned."""
    servers: tuple[str, ...] = ()
    server: str = ""
    """The server that is shown; "" = all of them."""
    allows_all_servers: bool = False
    has_range: bool = True
    default_range: str = DEFAULT_RANGE
    """Choice that is on while none is made."""
    own_keys: tuple[str, ...] = ()
    """Keys of the URL that only this page knows; links to other pages leave them out."""
    fragment: str = ""
    """Address of the part that is fetched anew, without query."""

    @property
    def theme(self) -> str:
        """Return "light", "dark" or "" for the system's choice."""
        return self.query.get("theme", "")

    @property
    def refresh(self) -> str:
        """Return seconds between refreshes, or "off"."""
        return self.query.get("refresh", DEFAULT_REFRESH)

    @property
    def from_(self) -> str:
        """Return the start of the range as chosen."""
        return self.query.get("from", self.default_from)

    @property
    def default_from(self) -> str:
        """Return the start of the range while none is chosen."""
        return f"now-{self.default_range}"

    @property
    def to(self) -> str:
        """Return the end of the range as chosen."""
        return self.query.get("to", "now")

    @property
    def range(self) -> str:
        """Return which choice of the picker is on: "6h" …, or "custom"."""
        relative = self.from_.removeprefix("now-")
        return relative if self.to == "now" and relative in RANGE_CHOICES else "custom"

    def link(self, path: str, **changes: str) -> str:
        """Return the address of a page that keeps what was chosen; an empty value leaves its key out."""
        chosen = {**self.query, **changes}
        foreign = () if path == self.path else self.own_keys
        kept = {key: value for key, value in chosen.items() if value and key not in foreign}
        return f"{path}?{urlencode(kept)}" if kept else path

    def hidden_fields(self, *leave_out: str) -> Markup:
        """Return the state as hidden fields of a form, without the keys that the form sets itself."""
        pairs = ((key, value) for key, value in self.query.items() if key not in leave_out)
        return Markup("").join(
            Markup('<input type="hidden" name="{}" value="{}">').format(key, value) for key, value in pairs
        )


def range_for_age(watched_ms: int) -> str:
    """Return the choice that suits what has been watched for so long: new data is not shown as a sliver."""
    return next((choice for choice, length_ms in YOUNG_RANGES if watched_ms < length_ms), DEFAULT_RANGE)


def clean_query(given: Mapping[str, str], own_keys: tuple[str, ...] = ()) -> dict[str, str]:
    """Return the state keys of a query string; what a page cannot mean falls back to the default."""
    kept = {
        key: given[key]
        for key in (*STATE_KEYS, *own_keys)
        if given.get(key) and len(given[key]) <= MAX_VALUE_CHARACTERS
    }
    if kept.get("theme") not in THEMES:
        kept.pop("theme", None)
    if kept.get("refresh") not in [value for value, _ in REFRESH_CHOICES]:
        kept.pop("refresh", None)
    return kept
