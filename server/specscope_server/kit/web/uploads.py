"""What receiving large bodies has in common: kinds that are read, and how many are held at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from fastapi import Request

from specscope_server.kit.errors import Unavailable, UnsupportedMedia


def check_kind(request: Request, kinds: Sequence[str]) -> None:
    """Raise `UnsupportedMedia` unless the body is of one of these kinds, and not encoded beside that."""
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media not in kinds or request.headers.get("content-encoding", "identity") != "identity":
        raise UnsupportedMedia(
            f"Content-Type {media[:60]!r} is not read here; send {', '.join(kinds)}, without Content-Encoding"
        )


class Places:
    """A bounded number of bodies held at the same time; only the event loop's thread touches it."""

    def __init__(self, count: int, full: str) -> None:
        self.held = 0
        self._count = count
        self._full = full

    @contextmanager
    def place(self) -> Iterator[None]:
        """Hold a place. Raises `Unavailable` with the words ``full`` when all are taken."""
        if self.held >= self._count:
            raise Unavailable(self._full)
        self.held += 1
        try:
            yield
        finally:
            self.held -= 1


def places_of(request: Request, name: str, count: int, full: str) -> Places:
    """Return the application's places of this name, made at the first request."""
    state = request.app.state
    found: Places | None = getattr(state, name, None)
    if found is None:
        found = Places(count, full)
        setattr(state, name, found)
    return found
