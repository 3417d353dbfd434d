"""Hidden-state drift: the verdict, the trend, and what they are made of."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from specscope_server.drift import examples
from specscope_server.drift.choosing import Asked
from specscope_server.drift.profiles import profiles
from specscope_server.drift.schemas import Cell, Drift, DriftPoint, DriftProfiles, DriftTrend, ProfileRow
from specscope_server.drift.service import Question, drift
from specscope_server.drift.trend import trend
from specscope_server.kit.web.formats import respond
from specscope_server.kit.web.openapi import answers
from specscope_server.kit.web.pagination import MAX_ID
from specscope_server.kit.web.params import Format, FormatChoice, LaunchChoice, ServerName, Span
from specscope_server.kit.web.state import Db, State

router = APIRouter(prefix="/drift", tags=["drift"])
ReferenceId = Annotated[
    int | None,
    Query(
        alias="reference", ge=0, le=MAX_ID,
        description="Id of the training reference; default: the newest that fits",
    ),
]  # fmt: skip
BoundariesId = Annotated[
    int | None,
    Query(
        alias="boundaries", ge=0, le=MAX_ID,
        description="Id of the reference of all boundaries; default: the newest that fits",
    ),
]  # fmt: skip


@router.get(
    "", summary="Say whether the draft sees what it was trained on", response_model=Drift,
    responses=answers(examples.DRIFT, 404, 422,
    csv="slot,phase,state,fault\r\n0,prefill,wrong,wrong_boundary\r\n"),
)  # fmt: skip
def hidden_state_drift(
    request: Request, db: Db, span: Span, server: ServerName, launch: LaunchChoice = None,
    reference: ReferenceId = None, boundaries: BoundariesId = None, chosen: FormatChoice = Format.JSON,
) -> Response:  # fmt: skip
    """The verdict in words; each slot in each phase with both statistics, gross limits and votes; which slots
    of training they are; what is missing to say more. Judged is the launch of the newest profile in the
    range, or the one asked for. CSV and NDJSON hold the slots by phase.
    """
    found = drift(db, Question(server, launch, span, Asked(reference, boundaries)))
    document = found.model_dump(mode="json", by_alias=True)
    return respond(request, chosen, document, tuple(Cell.model_fields), document["cells"])


@router.get(
    "/trend", summary="Show distances to training over time", response_model=DriftTrend,
    responses=answers(examples.TREND, 404, 422,
    csv="time,slot,phase,rows,w1\r\n2026-03-01T12:10:00.000Z,0,prefill,412,0.021\r\n"),
)  # fmt: skip
def drift_trend(
    request: Request, db: Db, state: State, span: Span, server: ServerName, launch: LaunchChoice = None,
    reference: ReferenceId = None, boundaries: BoundariesId = None, chosen: FormatChoice = Format.JSON,
) -> Response:  # fmt: skip
    """A row for each window of each slot and phase, of all launches in the range, with the noise floor of
    each distance. They follow the text served, too: nothing is alarmed on.
    """
    found = trend(db, state, Question(server, launch, span, Asked(reference, boundaries)))
    document = found.model_dump(mode="json", by_alias=True)
    columns = tuple(field.alias or name for name, field in DriftPoint.model_fields.items())
    return respond(request, chosen, document, columns, document["points"])


@router.get(
    "/profiles", summary="Inspect profiles of hidden states", response_model=DriftProfiles,
    responses=answers(examples.PROFILES, 404, 422,
    csv="side,slot,boundary,phase,row_class,rows\r\nserving,0,2,prefill,other,412\r\n"),
)  # fmt: skip
def drift_profiles(
    request: Request, db: Db, span: Span, server: ServerName, launch: LaunchChoice = None,
    reference: ReferenceId = None, boundaries: BoundariesId = None, chosen: FormatChoice = Format.JSON,
) -> Response:  # fmt: skip
    """The newest window of each slot, phase and class of rows beside the references' profiles; a few rows as
    the probe saw them; what the running model says it captures.
    """
    found = profiles(db, Question(server, launch, span, Asked(reference, boundaries)))
    document = found.model_dump(mode="json", by_alias=True)
    return respond(
        request, chosen, document, tuple(ProfileRow.model_fields), document["profiles"]
    )  # fmt: skip
