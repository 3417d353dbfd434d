"""Every relative link resolves, to the file and to the heading in it."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

import pytest
from tests.docs.pages import ROOT, all_pages, anchor, headings, links

EXTERNAL = ("http://", "https://", "mailto:")


def broken_links(page: Path) -> list[str]:
    """Return the links of a page that lead nowhere."""
    text = page.read_text(encoding="utf-8")
    return [link for link in links(text) if not link.startswith(EXTERNAL) and not _resolves(page, link)]


def _resolves(page: Path, link: str) -> bool:
    name, _, fragment = unquote(link).partition("#")
    target = (page.parent / name).resolve() if name else page
    if not target.exists():
        return False
    return not fragment or fragment in {
        anchor(heading) for heading in headings(target.read_text(encoding="utf-8"))
    }


@pytest.mark.parametrize("page", all_pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_resolve(page: Path) -> None:
    assert broken_links(page) == []


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Title\n[here](#title) [gone](other.md) [gone](#nothing) [web](https://example.org)\n")
    assert broken_links(page) == ["other.md", "#nothing"]
