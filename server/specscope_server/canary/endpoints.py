"""The canary: its runs, and two of them or two launches compared prompt by prompt."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from specscope_server.canary import examples, service
from specscope_server.canary.schemas import CanaryComparison, CanaryPair, CanaryRun, CanaryRuns
from specscope_server.kit.web.formats import respond
from specscope_server.kit.web.openapi import answers
from specscope_server.kit.web.params import Format, FormatChoice, ServerName, Span
from specscope_server.kit.web.state import Db

router = APIRouter(prefix="/canary", tags=["canary"])
_SIDE = "a launch id, or a run (epoch milliseconds); without a and b the newest two launches"
SideA = Annotated[str | None, Query(description=f"What b is compared with: {_SIDE}")]
SideB = Annotated[str | None, Query(description=f"What is compared: {_SIDE}")]


@router.get(
    "/runs", summary="List runs of the canary", response_model=CanaryRuns,
    responses=answers(examples.RUNS, 404, 422,
    csv="run,time,launch_id,accept_length\r\n1772366400000,2026-03-01T12:00:00.000Z,7,2.4\r\n"),
)  # fmt: skip
def canary_runs(
    request: Request, db: Db, span: Span, server: ServerName, chosen: FormatChoice = Format.JSON
) -> Response:
    """Runs of the fixed prompts, newest first: the same work every time, so that their trend is clean."""
    document = service.runs(db, server, span).model_dump(mode="json")
    return respond(
        request, chosen, document, tuple(CanaryRun.model_fields), document["runs"], closed=span.is_closed
    )


@router.get(
    "/compare", summary="Compare the canary prompt by prompt", response_model=CanaryComparison,
    responses=answers(examples.COMPARISON, 404, 422,
    csv="prompt,a_accept_length,b_accept_length\r\ncode-lru,2.91,2.78\r\n"),
)  # fmt: skip
def canary_comparison(
    request: Request, db: Db, span: Span, server: ServerName, a: SideA = None, b: SideB = None,
    chosen: FormatChoice = Format.JSON,
) -> Response:  # fmt: skip
    """Each prompt against itself, so that what prompts differ by cancels out: this shows a loss of 3 to 5 %
    of the accept length, which two means over different requests do not.
    """
    document = service.compare(db, server, span, a, b).model_dump(mode="json")
    return respond(
        request, chosen, document, tuple(CanaryPair.model_fields), document["pairs"], closed=span.is_closed
    )
