"""Servers and launches, their time series with roll-ups, and their activity.

Revision: 0001
After: nothing
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_REAL = sa.Double().with_variant(sa.REAL(), "sqlite")
_NARROW: dict[str, Any] = {"sqlite_with_rowid": False, "sqlite_strict": True}
_DAILY: dict[str, Any] = {**_NARROW, "postgresql_partition_by": "RANGE (time_ms)"}
_RESOLUTIONS = ("1m", "10m", "1h")


def upgrade() -> None:
    """Create all tables; PostgreSQL's daily partitions are made by the writer when it meets a new day."""
    _create_servers()
    _create_series()
    _create_samples()
    _create_distributions()
    _create_activity()
    _create_requests()


def downgrade() -> None:
    """Drop all tables, those that refer to others first."""
    narrow = [f"{kind}_{resolution}" for kind in ("sample", "distribution") for resolution in _RESOLUTIONS]
    for table in (*narrow, "sample", "distribution", "latest", "bucket_layout", "series", "request", "event"):
        op.drop_table(table)
    for table in ("source_status", "collector", "launch", "server"):
        op.drop_table(table)


def _column(name: str, kind: Any, *, null: bool = False, **options: Any) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=null, **options)


def _id() -> sa.Column[Any]:
    return _column("id", _BIG, autoincrement=True)


def _belongs_to(table: str, parent: str) -> sa.ForeignKeyConstraint:
    name = f"fk_{table}_{parent}_id"
    return sa.ForeignKeyConstraint([f"{parent}_id"], [f"{parent}.id"], name=name, ondelete="CASCADE")


def _primary_key(table: str, *columns: str) -> sa.PrimaryKeyConstraint:
    return sa.PrimaryKeyConstraint(*columns, name=f"pk_{table}")


def _create_servers() -> None:
    op.create_table(
        "server",
        _id(),
        _column("name", sa.Text()),
        _column("base_url", sa.Text()),
        _column("created_ms", _BIG),
        _column("last_seen_ms", _BIG),
        _primary_key("server", "id"),
        sa.UniqueConstraint("name", name="uq_server_name"),
    )
    texts = (
        "engine_version",
        "version_source",
        "model",
        "served_model_name",
        "dtype",
        "quantization",
        "kv_cache_dtype",
    )
    sizes = ("tp_size", "dp_size", "pp_size", "ep_size", "nnodes")
    op.create_table(
        "launch",
        _id(),
        _column("server_id", _BIG),
        _column("key", sa.Text()),
        _column("first_seen_ms", _BIG),
        _column("last_seen_ms", _BIG),
        _column("reason", sa.Text()),
        _column("engine", sa.Text()),
        *(_column(name, sa.Text(), null=True) for name in texts),
        _column("algorithm", sa.Text(), null=True),
        *(_column(name, _BIG, null=True) for name in ("num_steps", "eagle_topk", "num_draft_tokens")),
        _column("draft_model", sa.Text(), null=True),
        _column("adaptive", sa.Boolean(), null=True),
        *(_column(name, _BIG, null=True) for name in sizes),
        _column("enable_dp_attention", sa.Boolean(), null=True),
        _column("environment", sa.Text()),
        _column("config", sa.Text()),
        _column("is_demo", sa.Boolean()),
        _primary_key("launch", "id"),
        _belongs_to("launch", "server"),
        sa.UniqueConstraint("server_id", "key", name="uq_launch_server_id_key"),
    )
    op.create_index("ix_launch_server_id", "launch", ["server_id"])


def _create_series() -> None:
    op.create_table(
        "series",
        _id(),
        _column("server_id", _BIG),
        _column("launch_id", _BIG, null=True),
        _column("metric", sa.Text()),
        _column("labels", sa.Text()),
        _column("identity", sa.Text()),
        _primary_key("series", "id"),
        _belongs_to("series", "server"),
        _belongs_to("series", "launch"),
        sa.UniqueConstraint("identity", name="uq_series_identity"),
    )
    op.create_index("ix_series_launch_id", "series", ["launch_id"])
    op.create_index("ix_series_server_id_metric", "series", ["server_id", "metric"])


def _create_samples() -> None:
    op.create_table(
        "sample",
        _column("series_id", _BIG),
        _column("time_ms", _BIG),
        _column("value", _REAL),
        _column("span_ms", _BIG),
        _primary_key("sample", "series_id", "time_ms"),
        **_DAILY,
    )
    op.create_table(
        "latest",
        _column("series_id", _BIG, autoincrement=False),
        _column("time_ms", _BIG),
        _column("value", _REAL),
        _column("span_ms", _BIG),
        _primary_key("latest", "series_id"),
        **_NARROW,
    )
    for resolution in _RESOLUTIONS:
        table = f"sample_{resolution}"
        op.create_table(
            table,
            _column("series_id", _BIG),
            _column("time_ms", _BIG),
            _column("n", _BIG),
            *(_column(name, _REAL) for name in ("sum", "min", "max", "last")),
            _column("last_ms", _BIG),
            _column("span_ms", _BIG),
            _primary_key(table, "series_id", "time_ms"),
            **_NARROW,
        )


def _create_distributions() -> None:
    op.create_table(
        "bucket_layout",
        _id(),
        _column("bounds", sa.Text()),
        _primary_key("bucket_layout", "id"),
        sa.UniqueConstraint("bounds", name="uq_bucket_layout_bounds"),
    )
    for table, options in [("distribution", _DAILY), *((f"distribution_{r}", _NARROW) for r in _RESOLUTIONS)]:
        op.create_table(
            table,
            *(_column(name, _BIG) for name in ("series_id", "time_ms", "layout_id", "span_ms")),
            _column("count", _REAL),
            _column("sum", _REAL),
            _column("buckets", sa.LargeBinary()),
            _primary_key(table, "series_id", "time_ms", "layout_id"),
            **options,
        )


def _create_activity() -> None:
    op.create_table(
        "collector",
        _column("id", sa.Text()),
        _column("sequence", _BIG),
        _column("launch_key", sa.Text(), null=True),
        _column("checkpoint", sa.LargeBinary(), null=True),
        _column("updated_ms", _BIG),
        _primary_key("collector", "id"),
    )
    op.create_table(
        "source_status",
        _column("server_id", _BIG, autoincrement=False),
        _column("source", sa.Text()),
        _column("time_ms", _BIG),
        _column("state", sa.Text()),
        _column("since_ms", _BIG),
        _column("last_good_ms", _BIG, null=True),
        _column("url", sa.Text()),
        _column("duration_seconds", _REAL),
        *(_column(name, _BIG, null=True) for name in ("http_status", "body_bytes", "series")),
        _column("refused", _BIG),
        *(_column(name, sa.Text()) for name in ("detail", "remedy", "missing")),
        _primary_key("source_status", "server_id", "source"),
        _belongs_to("source_status", "server"),
    )
    op.create_table(
        "event",
        _id(),
        _column("server_id", _BIG),
        _column("launch_id", _BIG, null=True),
        _column("time_ms", _BIG),
        *(_column(name, sa.Text()) for name in ("kind", "message", "detail")),
        _primary_key("event", "id"),
        _belongs_to("event", "server"),
        _belongs_to("event", "launch"),
    )
    op.create_index("ix_event_server_id_time_ms", "event", ["server_id", "time_ms"])


def _create_requests() -> None:
    tokens = ("prompt_tokens", "completion_tokens", "cached_tokens")
    speculation = ("verify_calls", "accepted_drafts", "proposed_drafts")
    op.create_table(
        "request",
        _id(),
        _column("server_id", _BIG),
        _column("launch_id", _BIG, null=True),
        _column("request_id", sa.Text()),
        _column("time_ms", _BIG),
        *(_column(name, _BIG, null=True) for name in (*tokens, *speculation)),
        _column("accepted_histogram", sa.Text(), null=True),
        _column("e2e_seconds", _REAL, null=True),
        _column("labels", sa.Text()),
        _primary_key("request", "id"),
        _belongs_to("request", "server"),
        _belongs_to("request", "launch"),
    )
    op.create_index("ix_request_launch_id", "request", ["launch_id"])
    op.create_index("ix_request_server_id_time_ms", "request", ["server_id", "time_ms"])
    op.create_index("uq_request_server_id_request_id", "request", ["server_id", "request_id"], unique=True)
