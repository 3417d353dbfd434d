"""Where the time goes: summary, trend, verify-cost surface, ranks, and two launches compared."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from specscope_server.kit.web.formats import respond
from specscope_server.kit.web.openapi import answers
from specscope_server.kit.web.params import Format, FormatChoice, LaunchChoice, Range, Rank, ServerName, Span
from specscope_server.kit.web.state import Db, State
from specscope_server.timing import examples
from specscope_server.timing.compare import compare
from specscope_server.timing.ranks import ranks
from specscope_server.timing.schemas import (
    ComparedPhase,
    PhaseRow,
    PhaseTime,
    RankTime,
    SurfaceCell,
    TimingComparison,
    TimingRanks,
    TimingSummary,
    TimingSurface,
    TimingTrend,
)
from specscope_server.timing.service import Question, summary
from specscope_server.timing.surface import experts_of, surface
from specscope_server.timing.trend import trend

router = APIRouter(prefix="/timing", tags=["timing"])
_SIDE = "a launch id, or a window `FROM/TO` (`now-2h/now-1h`)"
SideA = Annotated[
    str | None, Query(description=f"What b is compared with: {_SIDE}; default: the launch before")
]
SideB = Annotated[str | None, Query(description=f"What is compared: {_SIDE}; default: the newest launch")]
ExpertCount = Annotated[int | None, Query(description="Routed experts E of a layer of the model")]
ExpertsPerToken = Annotated[int | None, Query(description="Experts k that a token uses")]


@router.get(
    "/summary", summary="Say where the time goes", response_model=TimingSummary,
    responses=answers(examples.SUMMARY, 404, 422,
    csv="phase,seconds,share_of_wall,ms_per_cycle\r\nverify,456.0,0.76,45.6\r\n"),
)  # fmt: skip
def timing_summary(
    request: Request, db: Db, state: State, span: Span, server: ServerName, launch: LaunchChoice = None,
    rank: Rank = None,
    chosen: FormatChoice = Format.JSON,
) -> Response:  # fmt: skip
    """Phases of the window as share of wall, per cycle and per token; break-even, waste, what a millisecond
    would give; the evidence used, and what the other levels of evidence say.
    """
    found = summary(db, state, Question(server, launch, span, rank))
    document = found.model_dump(mode="json", by_alias=True)
    columns = tuple(PhaseRow.model_fields)
    return respond(request, chosen, document, columns, document["phases"])


@router.get(
    "/trend", summary="Show where the time goes, over time", response_model=TimingTrend,
    responses=answers(examples.TREND, 404, 422,
    csv="time,state,phase,seconds\r\n2026-03-01T11:00:00.000Z,active,verify,22.8\r\n"),
)  # fmt: skip
def timing_trend(
    request: Request, db: Db, state: State, span: Range, server: ServerName, launch: LaunchChoice = None,
    rank: Rank = None,
    chosen: FormatChoice = Format.JSON,
) -> Response:  # fmt: skip
    """One row a bucket and phase. What no source explains is the phase `unattributed`; it is never spread."""
    document = trend(db, state, Question(server, launch, span, rank)).model_dump(mode="json", by_alias=True)
    columns = tuple(PhaseTime.model_fields)
    return respond(request, chosen, document, columns, document["points"], closed=span.is_closed)


@router.get(
    "/surface", summary="Show verify cost by D and batch size", response_model=TimingSurface,
    responses=answers(examples.SURFACE, 404, 422,
    csv="launch_id,num_draft_tokens,batch,cycles,verify_ms\r\n7,6,5-8,12000,45.6\r\n"),
)  # fmt: skip
def timing_surface(
    request: Request, db: Db, state: State, span: Span, server: ServerName, launch: LaunchChoice = None,
    experts: ExpertCount = None, experts_per_token: ExpertsPerToken = None,
    chosen: FormatChoice = Format.JSON,
) -> Response:  # fmt: skip
    """T_v(D, B) with the number of cycles behind each cell, beside a plain decode step T_ar at the same batch
    size, which is measured (its source and age are told) or missing, never assumed.
    """
    asked = Question(server, launch, span)
    found = surface(db, state, asked, experts_of(experts, experts_per_token))
    document = found.model_dump(mode="json", by_alias=True)
    return respond(request, chosen, document, tuple(SurfaceCell.model_fields), document["cells"])


@router.get(
    "/ranks", summary="Compare the ranks' times", response_model=TimingRanks,
    responses=answers(examples.RANKS, 404, 422,
    csv='rank,cycles,verify_ms\r\n"dp 0, pp 0, tp 3",12000,41.2\r\n'),
)  # fmt: skip
def timing_ranks(
    request: Request, db: Db, state: State, span: Span, server: ServerName, launch: LaunchChoice = None,
    rank: Rank = None,
    chosen: FormatChoice = Format.JSON,
) -> Response:  # fmt: skip
    """Times of each rank of the newest launch of the range: skew, the rank that the others wait for, and
    whether all ran the same cycles.
    """
    document = ranks(db, state, Question(server, launch, span, rank)).model_dump(mode="json", by_alias=True)
    columns = tuple(RankTime.model_fields)
    return respond(request, chosen, document, columns, document["ranks"], closed=span.is_closed)


@router.get(
    "/compare", summary="Compare the times of two launches", response_model=TimingComparison,
    responses=answers(examples.COMPARISON, 404, 422,
    csv="phase,a_ms,b_ms,change,low,high\r\nverify,45.6,33.3,-0.27,-0.28,-0.26\r\n"),
)  # fmt: skip
def timing_comparison(
    request: Request, db: Db, state: State, span: Span, server: ServerName, a: SideA = None, b: SideB = None,
    chosen: FormatChoice = Format.JSON,
) -> Response:  # fmt: skip
    """Phase by phase in ms per cycle, each change with its interval; verify and cycle also at the same
    mixture of batch sizes, so that another load is not taken for another engine.
    """
    document = compare(db, state, server, span, a, b).model_dump(mode="json")
    return respond(request, chosen, document, tuple(ComparedPhase.model_fields), document["phases"])
