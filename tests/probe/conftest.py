"""What the probe logs is heard, whatever other tests of the process did to logging."""

from __future__ import annotations

import logging

import pytest


@pytest.fixture(autouse=True)
def _heard(monkeypatch: pytest.MonkeyPatch) -> None:
    """Undo what setting up the product's logs does to loggers that exist already."""
    logger = logging.getLogger("specscope_probe")
    monkeypatch.setattr(logger, "disabled", False)
    monkeypatch.setattr(logger, "propagate", True)
    monkeypatch.setattr(logger, "level", logging.NOTSET)
    logging.getLogger().setLevel(logging.WARNING)
