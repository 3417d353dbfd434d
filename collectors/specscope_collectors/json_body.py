"""JSON answers: decoding, and why a body is not what was asked for."""

from __future__ import annotations

from typing import Any

import msgspec


class WrongBodyError(Exception):
    """The body is not the answer that was asked for. ``garbled``: it looks like one, but cannot be read."""

    def __init__(self, reason: str, *, garbled: bool = False) -> None:
        super().__init__(reason)
        self.garbled = garbled


def decode_json(body: bytes, wrong: type[WrongBodyError]) -> Any:
    """Return the JSON value of ``body``; raise ``wrong`` if it is none."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        looks_right = body.lstrip()[:1] == b"{"
        reason = f"cut off or garbled JSON ({error})" if looks_right else "not JSON"
        raise wrong(reason, garbled=looks_right) from error
