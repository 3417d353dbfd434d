"""The fields of a status line, as far as they are whole."""

from __future__ import annotations

import re
from dataclasses import dataclass

_FIELD = re.compile(
    r"(?:^|, )([^:,]{1,60}): (-?(?:\d{1,3}(?:,\d{3}){1,5}|\d{1,18})(?:\.\d{1,9})?)%?"
    r"(?=$|,(?!\d)|[\s\[(\"\\][^,:]*$|\s[^,:]*,)"
)
"""A name and a number up to the next comma; after it only what wrappers put behind a line.

A comma before a digit ends no number: 1,234 is one, and what else has one in it (1,23) is none.
"""
_TWO_DECIMALS = re.compile(r"-?\d+\.\d\d%?$")
_LAST = "#queue-req"
"""The field that every version prints, and the first that may end a line."""


@dataclass(slots=True)  # not frozen: making one takes a third of the time
class Fields:
    """Names as printed → values; percentages stay percentages, what is no number is left out."""

    values: dict[str, float]
    is_cut: bool
    """The line ends before the field that every version prints."""


def read_fields(body: str, *, may_be_cut: bool) -> Fields:
    """Take a body apart.

    ``may_be_cut``: the line has no end, so its last field is kept only if it is surely whole.
    """
    found = find_fields(body, may_be_cut=may_be_cut)
    return Fields(
        {name: float(match[2].replace(",", "")) for name, match in found.items()}, _LAST not in found
    )


def find_fields(body: str, *, may_be_cut: bool) -> dict[str, re.Match[str]]:
    """Return name → where its number stands (group 2), of the fields that are whole."""
    text = body.rstrip()
    # Of two fields of one name the first counts: the second is another writer's.
    found = {match[1]: match for match in reversed(list(_FIELD.finditer(text)))}
    if not text.endswith(","):
        last = text[text.rfind(", ") + 2 :] if ", " in text else text
        name = last.rpartition(": ")[0]
        if name in found and not _is_whole(last, found, may_be_cut=may_be_cut):
            del found[name]
    return found


def _is_whole(part: str, seen: dict[str, re.Match[str]], *, may_be_cut: bool) -> bool:
    """A number with two decimals is whole; another one if it may be a line's last and the line has an end."""
    return bool(_TWO_DECIMALS.search(part)) or (_LAST in seen and not may_be_cut)
