"""Programs of the distribution that tests run against."""

from __future__ import annotations

import os
import shutil

import pytest


def need(package: str, *commands: str) -> None:
    """Skip (fail in CI) where not all of these commands of a package are installed."""
    if all(shutil.which(command) for command in commands):
        return
    reason = f"no {commands[0]} for the tests: install the package {package} (Debian, Ubuntu)"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)
