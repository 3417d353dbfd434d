"""A figure as a picture: the page that stands alone, photographed by a Chromium of this machine.

No browser is part of the installation: where there is none, there is no picture. The page asks nothing of the
network, and the browser is given none.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import threading
from pathlib import Path

from specscope_server.figures.export import figure_html
from specscope_server.kit.errors import Unavailable
from specscope_server.kit.figures import Figure
from specscope_server.kit.plotly_library import plotly_library

NAMES = ("chrome-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
WIDTH, HEIGHT = 960, 480
SECONDS = 20.0
MAX_BYTES = 2 * 1024 * 1024
_turn = threading.Lock()
"""One browser at a time: each takes a core for seconds."""
PNG = b"\x89PNG\r\n\x1a\n"
FLAGS = (
    "--headless", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-sync",
    "--disable-extensions", "--disable-background-networking", "--disable-component-update", "--mute-audio",
    "--disable-dev-shm-usage",
    "--host-resolver-rules=MAP * ~NOTFOUND", "--virtual-time-budget=4000",
    f"--window-size={WIDTH},{HEIGHT}",
)  # fmt: skip


def find_browser() -> Path | None:
    """Return the first Chromium in PATH; None where there is none."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    return None if found is None else Path(found)


def figure_png(figure: Figure, library: str, browser: Path, seconds: float = SECONDS) -> bytes | None:
    """Return the picture, `WIDTH` by `HEIGHT`; None when the browser did not make one in time."""
    with tempfile.TemporaryDirectory(prefix="specscope-picture-") as name:
        folder = Path(name)
        page, picture = folder / "figure.html", folder / "figure.png"
        page.write_bytes(figure_html(figure, library, HEIGHT))
        if not _run([str(browser), *_flags(folder), f"--screenshot={picture}", page.as_uri()], seconds):
            return None
        content = picture.read_bytes() if picture.is_file() else b""
    return content if content.startswith(PNG) and len(content) <= MAX_BYTES else None


def _flags(folder: Path) -> list[str]:
    """Chromium refuses its sandbox to root; the page is our own and has no network either way."""
    rootless = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    return [*FLAGS, f"--user-data-dir={folder / 'profile'}", *rootless]


def _run(command: list[str], seconds: float) -> bool:
    """Run a browser and everything that it starts; return whether it ended by itself, and well."""
    quiet = subprocess.DEVNULL
    try:
        # The command is a fixed browser with files of our own.
        process = subprocess.Popen(  # noqa: S603
            command, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True
        )
    except OSError:
        return False
    try:
        return process.wait(seconds) == 0
    except subprocess.TimeoutExpired:
        return False
    finally:
        _end_group(process.pid)
        process.wait()


def _end_group(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return


def picture_of(figure: Figure) -> bytes:
    """Return the picture, made with the browser of this machine. Raises `Unavailable`."""
    browser = find_browser()
    if browser is None:
        raise Unavailable(
            "pictures need a Chromium in this server's PATH; install one, or ask for format=html"
        )
    if not _turn.acquire(timeout=SECONDS):
        raise Unavailable("other pictures are being made; try again")
    try:
        made = figure_png(figure, plotly_library().path.read_text("utf-8"), browser)
    finally:
        _turn.release()
    if made is None:
        raise Unavailable("the browser of this server made no picture in time; try again, or format=html")
    return made
