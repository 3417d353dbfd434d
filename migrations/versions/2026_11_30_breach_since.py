"""When an alert began to breach: baselines stand still from then on.

Revision: 0007
After: 0006
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add the column; of alerts that are on, it is not earlier than what is known of them."""
    op.add_column("alert_state", sa.Column("breach_since_ms", _BIG, nullable=True))
    op.execute(
        "UPDATE alert_state SET breach_since_ms = COALESCE(fired_ms, since_ms) "
        "WHERE state IN ('firing', 'recovering')"
    )
    op.execute("UPDATE alert_state SET breach_since_ms = since_ms WHERE state = 'pending'")


def downgrade() -> None:
    """Drop the column: baselines move on while alerts fire."""
    op.drop_column("alert_state", "breach_since_ms")
