"""Write the generated reference pages, or say which of them are stale.

    python scripts/docs.py            writes docs/reference/*.md
    python scripts/docs.py --check    writes nothing; exit status 1 names each page that is out of date

Output depends on the code alone: no time, no environment, no file order.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from docs_alerts import alerts_page
from docs_api import api_page
from docs_channels import channels_page
from docs_cli import cli_page
from docs_collect import collect_page
from docs_metrics import metrics_page
from docs_settings import settings_page

REFERENCE = Path(__file__).resolve().parent.parent / "docs" / "reference"

PAGES: dict[str, Callable[[], str]] = {
    "metrics.md": metrics_page,
    "settings.md": settings_page,
    "api.md": api_page,
    "cli.md": cli_page,
    "collect-file.md": collect_page,
    "channels.md": channels_page,
    "alert-rules.md": alerts_page,
}


def stale_pages() -> dict[str, str]:
    """Return ``file name → new text`` for each page whose file differs or is missing."""
    fresh = {name: render() for name, render in PAGES.items()}
    return {name: text for name, text in fresh.items() if _stored(name) != text}


def _stored(name: str) -> str | None:
    path = REFERENCE / name
    return path.read_text(encoding="utf-8") if path.exists() else None


def main(arguments: list[str]) -> int:
    """Write or check; return the exit status."""
    if arguments not in ([], ["--check"]):
        print("usage: python scripts/docs.py [--check]", file=sys.stderr)
        return 2
    stale = stale_pages()
    if arguments:
        for name in stale:
            print(f"docs/reference/{name} is out of date: run make docs", file=sys.stderr)
        return 1 if stale else 0
    REFERENCE.mkdir(parents=True, exist_ok=True)
    for name, text in stale.items():
        (REFERENCE / name).write_text(text, encoding="utf-8")
        print(f"wrote docs/reference/{name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
