"""What the generic series endpoints return (described here; the hot path writes it without pydantic)."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field


class MetricRow(BaseModel):
    """One row of the metric catalogue."""

    name: str
    kind: str = Field(description="increment, level or distribution")
    unit: str
    meaning: str
    across: str = Field(description="How ranks combine at one instant: sum, mean, max or same")
    labels: list[str]


class MetricCatalogue(BaseModel):
    """Every metric that can be stored."""

    metrics: list[MetricRow]


class SeriesItem(BaseModel):
    """One stored series."""

    id: int
    server: str
    launch_id: int | None = Field(description="None = about the server itself, e.g. scrape health")
    metric: str
    labels: dict[str, str]


class SeriesPage(BaseModel):
    """One page of stored series, by id."""

    series: list[SeriesItem]
    next_cursor: str | None


class QueryLine(BaseModel):
    """One line; ``values[i]`` belongs to the bucket that starts at ``time_ms[i]``."""

    metric: str
    unit: str
    stat: str
    server: str | None
    launch_id: int | None
    labels: dict[str, str] = Field(description="Labels that all combined series share")
    members: int = Field(description="How many stored series were combined")
    values: list[float | None] = Field(description="null = nothing was observed (a gap, not zero)")
    n: list[int] = Field(description="Samples in the bucket (for histograms: observations)")


class QueryResult(BaseModel):
    """Columnar answer of a series query."""

    from_: str = Field(alias="from")
    to: str
    step_seconds: float
    time_ms: list[int] = Field(description="Start of each bucket, UTC epoch milliseconds")
    series: list[QueryLine]


class LatestRow(BaseModel):
    """Newest sample of one series."""

    server: str
    launch_id: int | None
    metric: str
    kind: str | None
    unit: str | None
    labels: dict[str, str]
    time: str
    age_seconds: float
    value: float
    span_seconds: float | None = Field(description="For growth: the time it covers; None for a level")


class LatestList(BaseModel):
    """Newest samples."""

    latest: list[LatestRow]


class EventItem(BaseModel):
    """Something that happened once."""

    id: int
    server: str
    launch_id: int | None
    time: str
    kind: str
    message: str
    detail: dict[str, Any]


class EventPage(BaseModel):
    """One page of events, newest first."""

    events: list[EventItem]
    next_cursor: str | None
