"""Why an answer gives no record; the words name the input, the reason and the remedy."""

from __future__ import annotations


class RefusedError(ValueError):
    """The answer cannot be a finished request, or its counts contradict each other."""


class HealthCheckError(ValueError):
    """The engine asked itself (`/health` runs a generation): nobody's request, so not a record."""
