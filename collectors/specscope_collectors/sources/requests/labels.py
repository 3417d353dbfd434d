"""Labels that a client gives its requests (tenant, data set, …): few, short, and named like variables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from specscope_collectors.sources.requests.errors import LabelsError

MAX_LABELS, MAX_CHARACTERS = 16, 200
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]{0,63}")


def checked_labels(given: Any) -> dict[str, str]:
    """Return the labels; raise `LabelsError` for what is no small object of names and texts."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise LabelsError(f"labels is {type(given).__name__}; send an object of names and texts")
    if len(given) > MAX_LABELS:
        raise LabelsError(f"{len(given)} labels are more than {MAX_LABELS}; send those that are compared")
    for name, value in given.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise LabelsError(
                f"label name {str(name)[:40]!r} is not like a variable's; use letters, digits, _ . -"
            )
        if not isinstance(value, str) or len(value) > MAX_CHARACTERS or not _is_text(value):
            raise LabelsError(
                f"label {name} is not a text of at most {MAX_CHARACTERS} characters; shorten or quote it"
            )
    return dict(given)


def parse_labels(text: str) -> dict[str, str]:
    """Return the labels of ``tenant=a,dataset=b``; raise `LabelsError` for what is not written so."""
    pairs = [part.strip().partition("=") for part in text.split(",") if part.strip()]
    for name, equals, _ in pairs:
        if not equals:
            raise LabelsError(f"label {name[:40]!r} has no value; write NAME=VALUE,NAME=VALUE")
    return checked_labels({name.strip(): value.strip() for name, _, value in pairs})


def _is_text(value: str) -> bool:
    """Whether any database can hold it: valid Unicode without NUL."""
    return "\0" not in value and not any("\ud800" <= character <= "\udfff" for character in value)
