"""Colours of figures: the tokens of `frontend/static/css/tokens.css` with the same values (a test compares).

Hues are Okabe-Ito based and carry a fixed meaning; no figure relies on colour alone.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Theme:
    """Colours of one theme, as CSS hex strings. Field ``ink_soft`` is the CSS token ``--ink-soft``."""

    paper: str
    """Background of charts and cards."""
    surface: str
    """Background of the page."""
    line: str
    """Hairlines and grid."""
    ink: str
    ink_soft: str
    """Secondary text; readable (4.5:1) on paper and surface."""
    accent: str
    ok: str
    warn: str
    bad: str
    draft: str = "#0072b2"
    verify: str = "#d55e00"
    draft_extend: str = "#009e73"
    sampling: str = "#e69f00"
    host: str = "#7a7a7a"
    idle: str = "#c9cdd3"
    accepted: str = "#009e73"
    rejected: str = "#cc79a7"
    reference: str = "#56b4e9"
    serving: str = "#e69f00"


LIGHT = Theme(
    paper="#ffffff",
    surface="#f5f6f8",
    line="#dde1e6",
    ink="#1a1d21",
    ink_soft="#555d68",
    accent="#0b5cad",
    ok="#00714f",
    warn="#8a5300",
    bad="#b3261e",
)
DARK = Theme(
    paper="#16191d",
    surface="#0f1114",
    line="#2c3138",
    ink="#e8eaed",
    ink_soft="#a3abb6",
    accent="#6cb2f2",
    ok="#3ecf9a",
    warn="#f0b244",
    bad="#ff8a7a",
    idle="#4a515b",
    draft="#3d9fdb",
    host="#9a9a9a",
)
THEMES: dict[str, Theme] = {"light": LIGHT, "dark": DARK}
"""Name in URLs → theme."""
