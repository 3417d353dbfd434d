"""Suggest the name that was probably meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """Return ``" Did you mean 'x'?"`` (leading space), or an empty string when nothing is near."""
    near = get_close_matches(given, list(known), n=1, cutoff=0.6)
    return f" Did you mean {near[0]!r}?" if near else ""
