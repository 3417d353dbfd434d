"""Profiler captures.

Revision: 0004
After: 0003
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Create the table and its indexes."""
    op.create_table(
        "trace",
        sa.Column("id", _BIG, autoincrement=True, nullable=False),
        _number("server_id"),
        _number("launch_id", null=True),
        _text("key"),
        _number("time_ms"),
        *map(_text, ("name", "note", "basis")),
        *map(_number, ("ranks", "cycles", "created_ms")),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_trace"),
        *map(_belongs_to, ("server", "launch")),
    )
    op.create_index("ix_trace_launch_id", "trace", ["launch_id"])
    op.create_index("ix_trace_server_id_time_ms", "trace", ["server_id", "time_ms"])
    op.create_index("uq_trace_server_id_key", "trace", ["server_id", "key"], unique=True)


def downgrade() -> None:
    """Drop the table."""
    op.drop_table("trace")


def _number(name: str, *, null: bool = False) -> sa.Column[Any]:
    return sa.Column(name, _BIG, nullable=null)


def _text(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.Text(), nullable=False)


def _belongs_to(parent: str) -> sa.ForeignKeyConstraint:
    name = f"fk_trace_{parent}_id"
    return sa.ForeignKeyConstraint([f"{parent}_id"], [f"{parent}.id"], name=name, ondelete="CASCADE")
