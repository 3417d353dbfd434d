"""Fixtures shared by all tests; each kind of real thing has its own module in `tests/support`."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

pytest_plugins = [
    "tests.support.databases",
    "tests.support.browser",
    "tests.support.rig",
    "tests.support.probe",
    "tests.support.real_model",
    "tests.support.versions",
]


@pytest.fixture(autouse=True)
def _level_of_logs() -> Iterator[None]:
    """Take back the level that a command under test gave to all logs: later tests listen, too."""
    root = logging.getLogger()
    level = root.level
    yield
    root.setLevel(level)
