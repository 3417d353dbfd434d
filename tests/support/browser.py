"""A real Chromium for the tests.

Taken from `$CHROMIUM`, else the system's, else (as root, where apt is) installed by apt, else Playwright's
own download. Where none can be had the tests are skipped with the reason, and fail in CI (variable `CI`).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
INSTALL_SECONDS = 600
QUIET = (
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--disable-quic",
)
"""A browser under test speaks to nobody but the server under test."""


class BrowserMissingError(Exception):
    """No Chromium here; the message says what was tried."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A Chromium for one test module; tests open their own contexts.

    Not for the session: while Playwright runs, its event loop counts as running in the main thread, and other
    modules' tests could not use `asyncio.run`.
    """
    try:
        from playwright.sync_api import sync_playwright
    except ModuleNotFoundError:
        _unavailable("the Python package playwright is not installed")
    with sync_playwright() as playwright:
        try:
            started = start(playwright)
        except BrowserMissingError as error:
            _unavailable(str(error))
        yield started
        started.close()


def start(playwright: Playwright) -> Browser:
    """Start the first Chromium that there is; raise `BrowserMissingError` when there is none."""
    arguments = [*QUIET, *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    path = system_browser() or installed_by_apt()
    if path is not None:
        return playwright.chromium.launch(executable_path=path, args=arguments)
    if not Path(playwright.chromium.executable_path).is_file():
        _download()
    return playwright.chromium.launch(args=arguments)


def system_browser() -> str | None:
    """Return the path of `$CHROMIUM` or of the system's; a `$CHROMIUM` that is not there is an error."""
    given = os.environ.get("CHROMIUM")
    if given:
        if not Path(given).is_file():
            raise BrowserMissingError(f"CHROMIUM={given} is not a file")
        return given
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def installed_by_apt() -> str | None:
    """Install Chromium as root, where apt is; None where that is not possible."""
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return None
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update"], ["install", "--yes", "--no-install-recommends", "chromium"]):
        with suppress(subprocess.TimeoutExpired):
            subprocess.run(
                ["apt-get", "-qq", *command], env=environment, check=False, timeout=INSTALL_SECONDS
            )
    return shutil.which("chromium")


def _download() -> None:
    command = [*playwright_command(), "install", "chromium"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=INSTALL_SECONDS)
    except subprocess.TimeoutExpired:
        raise BrowserMissingError(f"{' '.join(command)} took over {INSTALL_SECONDS} s") from None
    if done.returncode != 0:
        reason = (done.stderr or done.stdout).strip()[-300:]
        raise BrowserMissingError(f"no system Chromium, and Playwright's download failed: {reason}")


def playwright_command() -> list[str]:
    """Return the command line of Playwright in this environment."""
    return [sys.executable, "-m", "playwright"]


def _unavailable(reason: str) -> None:
    message = f"no Chromium for the tests: {reason} (set CHROMIUM to the path of one)"
    if os.environ.get("CI"):
        pytest.fail(message)
    pytest.skip(message)
