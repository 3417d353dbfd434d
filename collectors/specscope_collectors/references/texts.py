"""Text of others: names of files, keys and values of a dump, what a reference says."""

from __future__ import annotations


def whole(text: str) -> str:
    """Return text that can be stored: halves of characters (surrogates), as names of files have them that are
    no UTF-8, become ``?``.
    """
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def plain(text: str) -> str:
    """Return text that does nothing to a terminal."""
    return "".join(character if character.isprintable() else "?" for character in text)
