"""Fixtures shared by all tests; each kind of real thing has its own module in `tests/support`."""

from __future__ import annotations

pytest_plugins = [
    "tests.support.databases",
    "tests.support.browser",
    "tests.support.rig",
    "tests.support.probe",
]
