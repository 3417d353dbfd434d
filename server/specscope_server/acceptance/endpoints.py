"""Acceptance of a server: summary and trend."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from specscope_server.acceptance import examples, position_examples, position_trend_examples, service
from specscope_server.acceptance.position_schemas import AcceptancePositions, PositionPoint
from specscope_server.acceptance.position_trend import position_trend
from specscope_server.acceptance.position_trend_schemas import PositionCell, PositionTrend
from specscope_server.acceptance.positions import positions
from specscope_server.acceptance.schemas import AcceptanceSummary, AcceptanceTrend, Number, TrendPoint
from specscope_server.kit.web.formats import respond
from specscope_server.kit.web.openapi import answers
from specscope_server.kit.web.params import Format, FormatChoice, LaunchChoice, Range, Rank, ServerName, Span
from specscope_server.kit.web.state import Db, State

router = APIRouter(prefix="/acceptance", tags=["acceptance"])
_NUMBER_COLUMNS = ("number", *Number.model_fields)


@router.get(
    "/summary", summary="Summarise acceptance", response_model=AcceptanceSummary,
    responses=answers(examples.SUMMARY, 404, 422,
    csv="number,value,unit\r\naccept_length,2.41,tokens/cycle\r\n"),
)  # fmt: skip
def summary(
    request: Request, db: Db, state: State, span: Range, server: ServerName, launch: LaunchChoice = None,
    rank: Rank = None,
    chosen: FormatChoice = Format.JSON,
) -> Response:  # fmt: skip
    """Accept length, strict acceptance and the engine's own rate, each with counts, evidence, checks and a
    verdict.
    """
    found = service.summary(db, state, server, launch, span, rank)
    document = found.model_dump(mode="json", by_alias=True)
    rows = [{"number": name, **_number(value)} for name, value in document.items() if _number(value)]
    return respond(request, chosen, document, _NUMBER_COLUMNS, rows)


@router.get(
    "/trend", summary="Show acceptance over time", response_model=AcceptanceTrend,
    responses=answers(examples.TREND, 404, 422,
    csv="time,state,accept_length\r\n2026-03-01T11:00:00.000Z,active,2.41\r\n"),
)  # fmt: skip
def acceptance_trend(
    request: Request, db: Db, state: State, span: Range, server: ServerName, launch: LaunchChoice = None,
    rank: Rank = None,
    chosen: FormatChoice = Format.JSON,
) -> Response:  # fmt: skip
    """One point a bucket: active, idle (gauges freeze, so nothing is shown) or gap (nothing was observed)."""
    document = service.trend(db, state, server, launch, span, rank).model_dump(mode="json", by_alias=True)
    columns = tuple(TrendPoint.model_fields)
    return respond(request, chosen, document, columns, document["points"], closed=span.is_closed)


_POSITION_COLUMNS = ("launch_id", "num_steps", *PositionPoint.model_fields)


@router.get(
    "/positions", summary="Show acceptance by draft position", response_model=AcceptancePositions,
    responses=answers(position_examples.POSITIONS, 404, 422,
    csv="launch_id,num_steps,position,offered,accepted,survival\r\n7,3,1,13,7,0.5384615384615384\r\n"),
)  # fmt: skip
def acceptance_positions(
    request: Request, db: Db, span: Span, server: ServerName, launch: LaunchChoice = None,
    chosen: FormatChoice = Format.JSON,
) -> Response:  # fmt: skip
    """Survival and conditional acceptance of each draft position, from histograms that finished requests
    reported; one group for each launch and depth K.
    """
    document = positions(db, server, launch, span).model_dump(mode="json", by_alias=True)
    rows = [
        {"launch_id": group["launch"]["id"], "num_steps": group["num_steps"], **point}
        for group in document["groups"]
        for point in group["positions"]
    ]
    return respond(request, chosen, document, _POSITION_COLUMNS, rows, closed=span.is_closed)


@router.get(
    "/positions/trend", summary="Show acceptance by draft position over time", response_model=PositionTrend,
    responses=answers(position_trend_examples.TREND, 404, 422,
    csv="time,position,cycles,offered,accepted,survival\r\n2026-03-01T11:59:00.000Z,1,13,13,7,0.5384615384615384\r\n"),
)  # fmt: skip
def acceptance_positions_trend(
    request: Request, db: Db, span: Range, server: ServerName, launch: LaunchChoice = None,
    chosen: FormatChoice = Format.JSON,
) -> Response:  # fmt: skip
    """Survival and conditional acceptance of each draft position in each bucket of time, with the counts.
    Without `step` there are at most 72 buckets: narrower ones hold too few cycles to say anything.
    """
    document = position_trend(db, server, launch, span).model_dump(mode="json", by_alias=True)
    columns = tuple(PositionCell.model_fields)
    return respond(request, chosen, document, columns, document["cells"], closed=span.is_closed)


def _number(value: object) -> dict[str, object]:
    if isinstance(value, dict) and "definition" in value:
        return value
    if isinstance(value, dict) and isinstance(value.get("number"), dict):
        return dict(value["number"])
    return {}
