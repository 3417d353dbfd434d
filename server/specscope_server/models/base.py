"""Declarative base and the column types that mean the same on SQLite and PostgreSQL."""

from __future__ import annotations

from typing import Annotated, ClassVar

from sqlalchemy import REAL, BigInteger, Double, Integer, LargeBinary, MetaData, Text
from sqlalchemy.orm import DeclarativeBase, mapped_column

BigInt = BigInteger().with_variant(Integer, "sqlite")
"""64-bit integer; SQLite's INTEGER is 64-bit and the only spelling that STRICT tables and row ids accept."""
Real: Double[float] = Double().with_variant(REAL(), "sqlite")
"""64-bit float (REAL is the spelling that STRICT tables accept; it is 64 bits wide on SQLite)."""

Id = Annotated[int, mapped_column(BigInt, primary_key=True, autoincrement=True)]
Ms = Annotated[int, mapped_column(BigInt)]
"""UTC epoch milliseconds."""
Str = Annotated[str, mapped_column(Text)]
Bytes = Annotated[bytes, mapped_column(LargeBinary)]


class Base(DeclarativeBase):
    """All tables; constraint names are fixed so that migrations can name them on both engines.

    Every integer is 64 bits wide: engines report counts beyond 2^31, which would fail on PostgreSQL.
    """

    type_annotation_map: ClassVar = {int: BigInt}

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
