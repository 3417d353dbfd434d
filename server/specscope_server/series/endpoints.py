"""Generic access to time series, newest values, events and the metric catalogue."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response

from specscope_server.kit.web.formats import respond
from specscope_server.kit.web.openapi import answers
from specscope_server.kit.web.pagination import Cursor, Limit
from specscope_server.kit.web.params import (
    Format,
    FormatChoice,
    LaunchChoice,
    OptionalServer,
    Range,
    Rank,
    Span,
)
from specscope_server.kit.web.state import Db, State
from specscope_server.series import examples, query, schemas, service

router = APIRouter(tags=["series"])
Metrics = Annotated[
    list[str],
    Query(
        alias="metric",
        min_length=1,
        max_length=50,
        description="Canonical metric name; may be repeated",
        examples=[["requests.running"]],
    ),
]
Labels = Annotated[
    list[str] | None, Query(alias="label", description="`NAME=VALUE`; may be repeated, all must match")
]
Aggregate = Annotated[
    Literal["ranks", "none", "server"],
    Query(
        description="`ranks`: drop mirrors and draft engines, combine data-parallel ranks; "
        "`none`: each series; `server`: one line a metric"
    ),
]
Stat = Annotated[
    str | None,
    Query(
        description="`rate`, `sum` (growth) · `mean`, `min`, `max`, `last` (levels) · `p50`, `p90`, "
        "`p95`, `p99`, `mean`, `count`, `sum` (histograms)"
    ),
]


@router.get(
    "/metrics-catalogue",
    summary="List all metrics",
    response_model=schemas.MetricCatalogue,
    responses=answers(
        examples.CATALOGUE, 422, csv="name,kind,unit\r\nspec.verify_calls,increment,cycles\r\n"
    ),
)
def metrics_catalogue(request: Request, chosen: FormatChoice = Format.JSON) -> Response:
    """Every canonical metric with its kind, unit and meaning, and how ranks combine."""
    rows = service.catalogue_rows()
    return respond(request, chosen, {"metrics": rows}, tuple(schemas.MetricRow.model_fields), rows)


@router.get(
    "/series",
    summary="List stored series",
    response_model=schemas.SeriesPage,
    responses=answers(
        examples.SERIES, 404, 422, csv="id,server,metric\r\n12,gpu1:30000,requests.running\r\n"
    ),
)
def series(
    request: Request,
    db: Db,
    metric: Annotated[str | None, Query(description="Only this metric")] = None,
    server: OptionalServer = None,
    limit: Limit = 100,
    cursor: Cursor = None,
    chosen: FormatChoice = Format.JSON,
) -> Response:
    """The stored series with their labels, by id."""
    if metric is not None:
        query.check_metric(metric)
    page = service.list_series(db, metric, server, limit, cursor)
    return respond(request, chosen, page, tuple(schemas.SeriesItem.model_fields), page["series"])


@router.get(
    "/series/query",
    summary="Query time series",
    response_model=schemas.QueryResult,
    responses=answers(
        examples.QUERY,
        404,
        422,
        csv="time,server,metric,value\r\n2026-03-01T11:00:00.000Z,gpu1:30000,throughput.generated,88.8\r\n",
    ),
)
def series_query(
    request: Request,
    db: Db,
    span: Range,
    metric: Metrics,
    server: OptionalServer = None,
    launch: LaunchChoice = None,
    rank: Rank = None,
    label: Labels = None,
    aggregate: Aggregate = "ranks",
    stat: Stat = None,
    chosen: FormatChoice = Format.JSON,
) -> Response:
    """Any metrics in equal buckets as columns; null marks a bucket in which nothing was observed."""
    for name in metric:
        query.check_metric(name)
        query.check_stat(name, stat)
    window = span.window()
    found = service.select_series(db, metric, server, launch, rank, service.parse_labels(label or []), window)
    lines = query.run(db, found, window, aggregate, stat)
    names = service.server_names(db)
    rows = service.rows(lines, window, names)
    return respond(
        request,
        chosen,
        service.document(lines, window, names),
        service.ROW_COLUMNS,
        rows,
        closed=span.is_closed,
    )


@router.get(
    "/latest",
    summary="Show the newest values",
    response_model=schemas.LatestList,
    responses=answers(
        examples.LATEST, 404, 422, csv="server,metric,value\r\ngpu1:30000,requests.running,8.0\r\n"
    ),
)
def latest(
    request: Request,
    db: Db,
    state: State,
    server: OptionalServer = None,
    metric: Annotated[list[str] | None, Query(description="Only these metrics; may be repeated")] = None,
    chosen: FormatChoice = Format.JSON,
) -> Response:
    """The newest sample of each series of the newest launch, with its age."""
    for name in metric or []:
        query.check_metric(name)
    rows = service.latest(db, metric or [], server, state.clock())
    return respond(request, chosen, {"latest": rows}, tuple(schemas.LatestRow.model_fields), rows)


@router.get(
    "/events",
    summary="List events",
    response_model=schemas.EventPage,
    responses=answers(examples.EVENTS, 404, 422, csv="id,server,kind\r\n3,gpu1:30000,launch\r\n"),
)
def events(
    request: Request,
    db: Db,
    span: Span,
    server: OptionalServer = None,
    kind: Annotated[str | None, Query(description="Only this kind, e.g. `launch`")] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
    chosen: FormatChoice = Format.JSON,
) -> Response:
    """What happened once: launches, restarts, configuration changes, notes; newest first."""
    page = service.list_events(db, server, kind, span.from_ms, span.to_ms, limit, cursor)
    return respond(
        request, chosen, page, tuple(schemas.EventItem.model_fields), page["events"], closed=span.is_closed
    )
