"""Alerts: rules, states, silences, channels, deliveries, and who changed what.

Revision: 0006
After: 0005
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_TABLES = (
    "alert_rule",
    "alert_rule_version",
    "silence",
    "audit",
    "alert_state",
    "alert_transition",
    "alert_group",
    "lease",
    "channel",
    "delivery",
    "delivery_alert",
    "delivery_attempt",
)


def upgrade() -> None:
    """Create the tables and their indexes."""
    _rules()
    _states()
    _groups()
    _deliveries()


def downgrade() -> None:
    """Drop the tables, those that refer to others first."""
    for table in reversed(_TABLES):
        op.drop_table(table)


def _rules() -> None:
    _table(
        "alert_rule",
        *_texts("name", "origin"),
        _flag("enabled"),
        _number("version"),
        _text("body"),
        _number("updated_ms"),
        unique=("name",),
    )
    versions = (*_texts("name", "body", "actor"), *_numbers("version", "made_ms"))
    _table("alert_rule_version", *versions, indexes=[("name", "version")], are_unique=True)
    _table(
        "silence",
        *_texts("matchers", "owner", "reason"),
        *_numbers("starts_ms", "ends_ms", "created_ms"),
        _text("expired_by", null=True),
        indexes=[("ends_ms",)],
    )
    _table(
        "audit",
        _number("at_ms"),
        *_texts("actor", "action", "target"),
        *(_text(name, null=True) for name in ("before", "after")),
        indexes=[("at_ms",)],
    )


def _states() -> None:
    times = ("counting_since_ms", "fired_ms", "breach_last_ms", "resolved_ms", "acked_ms")
    _table(
        "alert_state",
        *_texts("fingerprint", "rule", "labels", "state", "reading", "severity", "muted_by"),
        *_numbers("rule_version", "since_ms", "seen_ms", "revision"),
        *(_number(name, null=True) for name in times),
        *(_text(name, null=True) for name in ("alert_id", "card", "acked_by")),
        unique=("fingerprint",),
        indexes=[("state",), ("rule",), ("alert_id",)],
    )
    _table(
        "alert_transition",
        *_texts("fingerprint", "rule", "labels", "severity", "from_state", "to_state", "reason"),
        *(_text(name, null=True) for name in ("alert_id", "card")),
        _number("at_ms"),
        _number("notified_ms", null=True),
        indexes=[("at_ms",), ("alert_id",), ("rule", "at_ms")],
    )


def _groups() -> None:
    _table(
        "alert_group",
        *_texts("channel", "group_key", "labels", "last_digest", "sent_firing", "last_reason"),
        *(_number(name, null=True) for name in ("next_flush_ms", "last_sent_ms")),
        _number("revision"),
        indexes=[("channel", "group_key")],
        are_unique=True,
    )
    op.create_table(
        "lease",
        *_texts("name", "holder"),
        _number("until_ms"),
        sa.PrimaryKeyConstraint("name", name="pk_lease"),
    )


def _deliveries() -> None:
    _table(
        "channel",
        *_texts("name", "kind", "origin", "config", "disabled_reason", "breaker"),
        _flag("enabled"),
        sa.Column("secrets", sa.LargeBinary(), nullable=True),
        *_numbers("updated_ms", "revision"),
        unique=("name",),
    )
    _table(
        "delivery",
        *_texts("webhook_id", "channel", "group_key", "cause", "notification", "status", "reason"),
        *_numbers("attempts", "next_attempt_ms", "created_ms", "expires_ms"),
        *(_text(name, null=True) for name in ("claimed_by", "body_sha256")),
        *(_number(name, null=True) for name in ("claimed_until_ms", "finished_ms")),
        unique=("webhook_id",),
        indexes=[("status", "next_attempt_ms"), ("channel", "group_key"), ("created_ms",)],
    )
    op.create_table(
        "delivery_alert",
        _number("delivery_id"),
        *_texts("alert_id", "status"),
        sa.PrimaryKeyConstraint("delivery_id", "alert_id", name="pk_delivery_alert"),
        _of_delivery("delivery_alert"),
    )
    op.create_index("ix_delivery_alert_alert_id", "delivery_alert", ["alert_id"])
    _table(
        "delivery_attempt",
        *_numbers("delivery_id", "at_ms"),
        *(_number(name, null=True) for name in ("status_code", "latency_ms")),
        *_texts("outcome", "reason"),
        _of_delivery("delivery_attempt"),
        indexes=[("delivery_id",), ("at_ms",)],
    )


def _table(
    name: str,
    *columns: Any,
    unique: Sequence[str] = (),
    indexes: Sequence[tuple[str, ...]] = (),
    are_unique: bool = False,
) -> None:
    """Create a table with an ``id``, single columns that are unique, and indexes."""
    op.create_table(
        name,
        sa.Column("id", _BIG, autoincrement=True, nullable=False),
        *columns,
        sa.PrimaryKeyConstraint("id", name=f"pk_{name}"),
        *(sa.UniqueConstraint(column, name=f"uq_{name}_{column}") for column in unique),
    )
    for parts in indexes:
        kind = "uq" if are_unique else "ix"
        op.create_index(f"{kind}_{name}_{'_'.join(parts)}", name, list(parts), unique=are_unique)


def _number(name: str, *, null: bool = False) -> sa.Column[Any]:
    return sa.Column(name, _BIG, nullable=null)


def _numbers(*names: str) -> list[sa.Column[Any]]:
    return [_number(name) for name in names]


def _text(name: str, *, null: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.Text(), nullable=null)


def _texts(*names: str) -> list[sa.Column[Any]]:
    return [_text(name) for name in names]


def _flag(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.Boolean(), nullable=False)


def _of_delivery(table: str) -> sa.ForeignKeyConstraint:
    name = f"fk_{table}_delivery_id"
    return sa.ForeignKeyConstraint(["delivery_id"], ["delivery.id"], name=name, ondelete="CASCADE")
