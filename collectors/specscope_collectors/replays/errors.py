"""What ends a replay, in words."""

from __future__ import annotations


class ReplayError(ValueError):
    """A replay cannot be done; the text names what is in the way, and the remedy."""
