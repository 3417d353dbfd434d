"""Take the pictures of the documentation from a running demo.

    make demo                                             in one terminal; wait five minutes: all of the story
    python scripts/docs_images.py http://127.0.0.1:8200   in another

Writes docs/images/<page>-<theme>.png. The browser is $CHROMIUM, else the system's.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import Browser, sync_playwright

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
PAGES = {"overview": "/", "acceptance": "/acceptance", "requests": "/requests", "sources": "/sources"}
THEMES = ("light", "dark")
SERVER = {
    "overview": "story-0.5.8 (demo)",
    "acceptance": "story-0.5.8 (demo)",
    "requests": "story-0.5.23 (demo)",
}
"""Whose numbers are shown: the old formula where it surprises, histograms where there are some; else all."""
SPAN = "now-5m"
SIZE = {"width": 1280, "height": 1080}
MAX_BYTES = 300_000


def take(browser: Browser, base_url: str, name: str, theme: str) -> Path:
    """Write one picture and return its path; raise when it is too large."""
    query = {"from": SPAN, "theme": theme} | ({"server": SERVER[name]} if name in SERVER else {})
    context = browser.new_context(viewport=SIZE, color_scheme=theme)  # type: ignore[arg-type]
    page = context.new_page()
    page.goto(f"{base_url}{PAGES[name]}?{urlencode(query)}")
    page.wait_for_load_state("networkidle")
    path = IMAGES / f"{name}-{theme}.png"
    page.screenshot(path=path)
    context.close()
    if path.stat().st_size > MAX_BYTES:
        raise ValueError(f"{path} has {path.stat().st_size} bytes, over {MAX_BYTES}; take a smaller picture")
    return path


def main(arguments: list[str]) -> int:
    """Take all pictures; return the exit status."""
    if len(arguments) != 1:
        print("usage: python scripts/docs_images.py URL-OF-A-RUNNING-DEMO", file=sys.stderr)
        return 2
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    IMAGES.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for name in PAGES:
            for theme in THEMES:
                print(take(browser, arguments[0].rstrip("/"), name, theme))
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
