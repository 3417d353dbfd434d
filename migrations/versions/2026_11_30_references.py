"""References: profiles of training dumps.

Revision: 0005
After: 0004
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Create the table and its indexes."""
    op.create_table(
        "reference",
        sa.Column("id", _BIG, autoincrement=True, nullable=False),
        _text("name"),
        _number("version"),
        *map(_text, ("key", "tool", "model")),
        *map(_number, ("hidden_size", "slots", "requests", "rows", "made_ms", "created_ms")),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_reference"),
    )
    op.create_index("uq_reference_name_version", "reference", ["name", "version"], unique=True)
    op.create_index("uq_reference_name_key", "reference", ["name", "key"], unique=True)


def downgrade() -> None:
    """Drop the table."""
    op.drop_table("reference")


def _number(name: str) -> sa.Column[Any]:
    return sa.Column(name, _BIG, nullable=False)


def _text(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.Text(), nullable=False)
