"""Tokens with a scope.

Revision: 0002
After: 0001
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "api_token",
        sa.Column("id", _BIG, autoincrement=True, nullable=False),
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("name", "digest", "scope")),
        sa.Column("created_ms", _BIG, nullable=False),
        *(sa.Column(name, _BIG, nullable=True) for name in ("last_used_ms", "revoked_ms")),
        sa.PrimaryKeyConstraint("id", name="pk_api_token"),
        sa.UniqueConstraint("name", name="uq_api_token_name"),
        sa.UniqueConstraint("digest", name="uq_api_token_digest"),
    )


def downgrade() -> None:
    """Drop the table: all tokens but the one in the settings end."""
    op.drop_table("api_token")
