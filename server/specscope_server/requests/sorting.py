"""In which order requests are listed, and how a page says where the next one starts."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Any

from sqlalchemy import Float, case, cast, tuple_
from sqlalchemy.sql import ColumnElement

from specscope_server.kit.errors import InvalidInput
from specscope_server.kit.web.pagination import decode_cursor, encode_cursor
from specscope_server.models import Request


class Sort(StrEnum):
    """What requests are sorted by; a leading minus puts the largest first. What is not known comes last."""

    NEWEST = "-time"
    OLDEST = "time"
    LONGEST = "-accept_length"
    SHORTEST = "accept_length"
    MOST_ACCEPTED = "-draft_acceptance"
    LEAST_ACCEPTED = "draft_acceptance"
    MOST_CYCLES = "-verify_calls"
    FEWEST_CYCLES = "verify_calls"
    LARGEST_PROMPT = "-prompt_tokens"
    SMALLEST_PROMPT = "prompt_tokens"
    LARGEST_OUTPUT = "-completion_tokens"
    SMALLEST_OUTPUT = "completion_tokens"
    MOST_CACHED = "-cached_tokens"
    LEAST_CACHED = "cached_tokens"
    SLOWEST = "-e2e_seconds"
    FASTEST = "e2e_seconds"


_BEYOND = 9e18
"""Sorts what is not known behind every value: counts end at 2^63."""


def key_of(sort: Sort) -> ColumnElement[Any]:
    """Return what is sorted by, as a number that is never NULL."""
    name = sort.removeprefix("-")
    if name == "time":
        return Request.time_ms.expression
    value = _ratio(name) if name in _RATIOS else cast(getattr(Request, name), Float)
    return case((value.is_(None), -_BEYOND if sort.startswith("-") else _BEYOND), else_=value)


_RATIOS = {"accept_length": Request.verify_calls, "draft_acceptance": Request.proposed_drafts}
"""Ratio of accepted drafts → what they are divided by; τ is one more, which does not change the order."""


def _ratio(name: str) -> ColumnElement[Any]:
    below = _RATIOS[name]
    return cast(Request.accepted_drafts, Float) / cast(case((below > 0, below)), Float)


def order_of(sort: Sort) -> tuple[ColumnElement[Any], ColumnElement[Any]]:
    """Return the order: the key, then the number, so that no two are equal."""
    key, number = key_of(sort), Request.id.expression
    return (key.desc(), number.desc()) if sort.startswith("-") else (key.asc(), number.asc())


def after(sort: Sort, cursor: str | None) -> list[ColumnElement[bool]]:
    """Return the condition for what comes after a cursor; raise `InvalidInput` for one of another order."""
    found = decode_cursor(cursor, (str, str, int))
    if found is None:
        return []
    order, text, number = found
    try:
        key: float = int(text) if sort in _BY_TIME else float(text)
    except ValueError:
        key = math.nan
    if order != sort.value or not abs(key) <= _BEYOND:
        raise InvalidInput("cursor belongs to another order; leave it out to start at the first page")
    here, place = tuple_(key_of(sort), Request.id), tuple_(key, number)
    return [here < place if sort.startswith("-") else here > place]


def cursor_of(sort: Sort, key: float, number: int) -> str:
    """Return the cursor that stands after a request."""
    return encode_cursor([sort.value, repr(int(key) if sort in _BY_TIME else float(key)), number])


_BY_TIME = (Sort.NEWEST, Sort.OLDEST)
