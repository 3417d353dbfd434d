"""Time series: what is measured, the samples, their roll-ups and the newest value."""

from __future__ import annotations

from sqlalchemy import ForeignKey, Index
from sqlalchemy.orm import Mapped, mapped_column

from specscope_server.models.base import Base, BigInt, Bytes, Id, Ms, Real, Str

# Clustered by primary key on SQLite; STRICT refuses values of another type instead of storing them.
_NARROW = {"sqlite_with_rowid": False, "sqlite_strict": True}
# These grow with every scrape: on PostgreSQL one partition per UTC day, so that retention drops a table.
_DAILY = {**_NARROW, "postgresql_partition_by": "RANGE (time_ms)"}


class Series(Base):
    """One metric with one label set of one launch (NULL: of the server itself, e.g. scrape health)."""

    __tablename__ = "series"
    __table_args__ = (Index("ix_series_server_id_metric", "server_id", "metric"),)

    id: Mapped[Id]
    server_id: Mapped[int] = mapped_column(BigInt, ForeignKey("server.id", ondelete="CASCADE"))
    launch_id: Mapped[int | None] = mapped_column(
        BigInt, ForeignKey("launch.id", ondelete="CASCADE"), index=True
    )
    metric: Mapped[Str]
    """Canonical name from the catalogue."""
    labels: Mapped[Str]
    """JSON object with sorted keys."""
    identity: Mapped[Str] = mapped_column(unique=True)
    """Hash of server, launch, metric and labels: makes the tuple unique although launch_id may be NULL."""


class Sample(Base):
    """One value. Increments: growth over (time_ms - span_ms, time_ms]. Levels: span_ms is 0."""

    __tablename__ = "sample"
    __table_args__ = _DAILY

    series_id: Mapped[int] = mapped_column(BigInt, primary_key=True)
    time_ms: Mapped[int] = mapped_column(BigInt, primary_key=True)
    value: Mapped[float] = mapped_column(Real)
    span_ms: Mapped[int] = mapped_column(BigInt)


class _Rollup:
    """Summary of the samples of one series with bucket_start <= time_ms < bucket_start + resolution."""

    series_id: Mapped[int] = mapped_column(BigInt, primary_key=True)
    time_ms: Mapped[int] = mapped_column(BigInt, primary_key=True)
    """Start of the bucket."""
    n: Mapped[int] = mapped_column(BigInt)
    sum: Mapped[float] = mapped_column(Real)
    min: Mapped[float] = mapped_column(Real)
    max: Mapped[float] = mapped_column(Real)
    last: Mapped[float] = mapped_column(Real)
    last_ms: Mapped[Ms]
    span_ms: Mapped[int] = mapped_column(BigInt)
    """Sum of the samples' spans: which part of the bucket was observed."""


class SampleMinute(_Rollup, Base):
    """1-minute roll-up."""

    __tablename__ = "sample_1m"
    __table_args__ = _NARROW


class SampleTenMinutes(_Rollup, Base):
    """10-minute roll-up."""

    __tablename__ = "sample_10m"
    __table_args__ = _NARROW


class SampleHour(_Rollup, Base):
    """1-hour roll-up."""

    __tablename__ = "sample_1h"
    __table_args__ = _NARROW


class BucketLayout(Base):
    """Finite upper bounds of a histogram, shared by all its distributions."""

    __tablename__ = "bucket_layout"

    id: Mapped[Id]
    bounds: Mapped[Str] = mapped_column(unique=True)
    """JSON array, ascending."""


class _DistributionColumns:
    series_id: Mapped[int] = mapped_column(BigInt, primary_key=True)
    time_ms: Mapped[int] = mapped_column(BigInt, primary_key=True)
    layout_id: Mapped[int] = mapped_column(BigInt, primary_key=True)
    span_ms: Mapped[int] = mapped_column(BigInt)
    count: Mapped[float] = mapped_column(Real)
    sum: Mapped[float] = mapped_column(Real)
    buckets: Mapped[Bytes]
    """Per-bucket counts, little-endian float64, one more than the layout's bounds (overflow last)."""


class Distribution(_DistributionColumns, Base):
    """Growth of a histogram over (time_ms - span_ms, time_ms]."""

    __tablename__ = "distribution"
    __table_args__ = _DAILY


class DistributionMinute(_DistributionColumns, Base):
    """1-minute roll-up of distributions, by addition."""

    __tablename__ = "distribution_1m"
    __table_args__ = _NARROW


class DistributionTenMinutes(_DistributionColumns, Base):
    """10-minute roll-up of distributions, by addition."""

    __tablename__ = "distribution_10m"
    __table_args__ = _NARROW


class DistributionHour(_DistributionColumns, Base):
    """1-hour roll-up of distributions, by addition."""

    __tablename__ = "distribution_1h"
    __table_args__ = _NARROW


class Latest(Base):
    """Newest sample of each series, upserted with each batch (never moved back by a late one)."""

    __tablename__ = "latest"
    __table_args__ = _NARROW

    series_id: Mapped[int] = mapped_column(BigInt, primary_key=True, autoincrement=False)
    time_ms: Mapped[int] = mapped_column(BigInt)
    value: Mapped[float] = mapped_column(Real)
    span_ms: Mapped[int] = mapped_column(BigInt)
