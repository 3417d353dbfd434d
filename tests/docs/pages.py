"""The documentation as data: pages, headings, links and fenced blocks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)|(?:src|srcset|href)=\"([^\"]+)\"")


@dataclass(frozen=True)
class Block:
    """One fenced block: its language ('' = none) and text."""

    language: str
    text: str


def all_pages() -> list[Path]:
    """Return every Markdown page that users read."""
    top = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    return [*top, *sorted((ROOT / "docs").rglob("*.md"))]


def read(name: str) -> str:
    """Return the text of a page given by its path from the root."""
    return (ROOT / name).read_text(encoding="utf-8")


def blocks(text: str) -> list[Block]:
    """Return the fenced blocks of a page."""
    return [Block(language, body) for language, body in _FENCE.findall(text)]


def prose(text: str) -> str:
    """Return the page without its fenced blocks."""
    return _FENCE.sub("", text)


def headings(text: str) -> list[str]:
    """Return the headings outside fenced blocks, without code marks."""
    return [heading.replace("`", "").strip() for heading in _HEADING.findall(prose(text))]


def links(text: str) -> list[str]:
    """Return link and picture addresses outside fenced blocks."""
    return [first or second for first, second in _LINK.findall(prose(text))]


def anchor(heading: str) -> str:
    """Return the anchor that GitHub makes of a heading."""
    kept = re.sub(r"[^\w\- ]", "", heading.replace("`", "").strip().lower())
    return kept.replace(" ", "-")


def commands(text: str) -> list[str]:
    """Return the commands of `console` and `bash` blocks, continuation lines joined, prompts removed."""
    found: list[str] = []
    for block in blocks(text):
        joined = block.text.replace("\\\n", " ")
        if block.language == "console":
            found += [line[2:] for line in joined.splitlines() if line.startswith("$ ")]
        elif block.language == "bash":
            found += [line for line in joined.splitlines() if line.strip() and not line.startswith("#")]
    return found
