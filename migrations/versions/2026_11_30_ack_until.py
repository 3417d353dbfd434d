"""Until when an acknowledgement holds.

Revision: 0008
After: 0007
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

_BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add the column: acknowledgements that there are hold until their alerts are over."""
    op.add_column("alert_state", sa.Column("ack_until_ms", _BIG, nullable=True))


def downgrade() -> None:
    """Drop the column: acknowledgements hold until their alerts are over."""
    op.drop_column("alert_state", "ack_until_ms")
