"""Take one row in n, spread evenly over ids and blind to patterns in them."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, cast
from sqlalchemy.sql import ColumnElement

CIRCLE = 2**24
STEP = 10_368_889
"""Odd, and `CIRCLE` divided by the golden ratio: multiples of it fall evenly on the circle (Weyl), and so do
every second, third … of them. Rows taken by ``id % n`` would be of one tenant where tenants alternate.
"""


def one_in(column: Any, n: int) -> ColumnElement[bool]:
    """Return the condition that holds for about one id in ``n``, always for the same ones."""
    condition: ColumnElement[bool] = (cast(column, BigInteger) % CIRCLE) * STEP % CIRCLE < CIRCLE // n
    return condition
