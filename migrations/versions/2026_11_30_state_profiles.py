"""Profiles of hidden states.

Revision: 0003
After: 0002
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Create the table and its indexes."""
    op.create_table(
        "state_profile",
        sa.Column("id", _BIG, autoincrement=True, nullable=False),
        _number("server_id"),
        _number("launch_id", null=True),
        _text("identity"),
        *map(_number, ("time_ms", "span_ms")),
        *map(_text, ("phase", "row_class")),
        *(_number(name, null=True) for name in ("slot", "boundary")),
        _text("labels"),
        *map(_number, ("hidden_size", "rows", "requests")),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_state_profile"),
        *map(_belongs_to, ("server", "launch")),
    )
    op.create_index("ix_state_profile_launch_id", "state_profile", ["launch_id"])
    op.create_index("ix_state_profile_server_id_time_ms", "state_profile", ["server_id", "time_ms"])
    op.create_index(
        "uq_state_profile_identity_time_ms", "state_profile", ["identity", "time_ms"], unique=True
    )


def downgrade() -> None:
    """Drop the table."""
    op.drop_table("state_profile")


def _number(name: str, *, null: bool = False) -> sa.Column[Any]:
    return sa.Column(name, _BIG, nullable=null)


def _text(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.Text(), nullable=False)


def _belongs_to(parent: str) -> sa.ForeignKeyConstraint:
    name = f"fk_state_profile_{parent}_id"
    return sa.ForeignKeyConstraint([f"{parent}_id"], [f"{parent}.id"], name=name, ondelete="CASCADE")
