"""Colours: the style sheet and the figures agree, and text can be read."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path

import pytest

from specscope_server.kit.figures_theme import THEMES, Theme

TOKENS = (Path(__file__).resolve().parents[2] / "frontend" / "static" / "css" / "tokens.css").read_text()
TEXT, GRAPHIC = 4.5, 3.0
"""Least contrast of WCAG 2.2 AA for text, and for what must be seen to understand a picture."""


def declarations(block: str) -> dict[str, str]:
    """Return the colours declared in a block, as Python field names."""
    found = re.findall(r"--([a-z-]+): (#[0-9a-f]{6});", block)
    return {name.replace("-", "_"): value for name, value in found}


def block(selector: str) -> str:
    """Return the body of the first rule with this selector."""
    return TOKENS.split(selector + " {", 1)[1].split("}", 1)[0]


def luminance(color: str) -> float:
    """Return the relative luminance of "#rrggbb" (WCAG 2.2)."""
    channels = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two colours, 1 to 21."""
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def test_light_tokens_are_the_same_in_the_style_sheet_and_in_figures() -> None:
    assert declarations(block(":root")) == asdict(THEMES["light"])


@pytest.mark.parametrize("selector", [':root:not([data-theme="light"])', ':root[data-theme="dark"]'])
def test_dark_tokens_are_the_same_in_the_style_sheet_and_in_figures(selector: str) -> None:
    assert {**declarations(block(":root")), **declarations(block(selector))} == asdict(THEMES["dark"])


def test_contrast_of_black_on_white_is_21() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES.keys())
@pytest.mark.parametrize("field", ["ink", "ink_soft", "accent", "ok", "warn", "bad"])
def test_text_can_be_read_on_both_backgrounds(theme: Theme, field: str) -> None:
    color = getattr(theme, field)
    assert contrast(color, theme.paper) >= TEXT
    assert contrast(color, theme.surface) >= TEXT


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES.keys())
@pytest.mark.parametrize(
    "field", ["draft", "verify", "draft_extend", "host", "accepted", "accent", "ink_soft"]
)
def test_lines_of_charts_can_be_seen(theme: Theme, field: str) -> None:
    assert contrast(getattr(theme, field), theme.paper) >= GRAPHIC
