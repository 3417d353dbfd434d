"""Finished requests: report them, list them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Query, Request, Response

from specscope_server.kit.web.bodies import JSON, NDJSON, Body
from specscope_server.kit.web.formats import respond
from specscope_server.kit.web.openapi import answers
from specscope_server.kit.web.pagination import Cursor, Limit
from specscope_server.kit.web.params import Format, FormatChoice, LaunchChoice, ServerName, Span
from specscope_server.kit.web.state import Db, State
from specscope_server.requests import examples, service
from specscope_server.requests.schemas import Receipt, RequestItem, RequestPage

router = APIRouter(tags=["requests"])

_BODY = {
    "requestBody": {
        "required": True,
        "description": "An answer of the engine, a list of them, or one a line; `labels` may stand in each.",
        "content": {
            JSON: {"schema": {"type": ["object", "array"]}, "example": examples.ANSWER},
            NDJSON: {"schema": {"type": "string"}},
        },
    }
}
Create = Annotated[
    bool, Query(description="Make the server if it is not known (one that nobody watches); else 404")
]
Labels = Annotated[
    str,
    Header(
        alias="X-Specscope-Labels", description="Labels of every answer in the body: `tenant=a,dataset=b`"
    ),
]
LabelFilter = Annotated[
    list[str] | None, Query(alias="label", description="`NAME=VALUE`; may be repeated, all must match")
]


@router.post(
    "/requests",
    summary="Report finished requests",
    response_model=Receipt,
    responses=answers(examples.RECEIPT, 404, 413, 415, 422),
    openapi_extra=_BODY,
)
def report_requests(
    request: Request, db: Db, state: State, body: Body, server: ServerName, create: Create = False,
    labels: Labels = "",
) -> Receipt:  # fmt: skip
    """Send answers of `/generate` or of the OpenAI API as the engine gave them, or lines of SGLang's export
    (`--export-metrics-to-file`). Only counts, times, the id, the model's name and labels are kept: no prompt
    and no output. Each request counts once, by its id, so sending again is harmless. Answers that cannot be
    are refused one by one, the rest is stored. A request belongs to the launch in force when it finished.
    Bodies may be gzip.
    """
    days = request.app.state.settings.retention_requests_days
    return service.receive(db, state, days, server, body, labels, create=create)


@router.get(
    "/requests",
    summary="List finished requests",
    response_model=RequestPage,
    responses=answers(
        examples.REQUESTS, 404, 422,
        csv="request_id,time,verify_calls\r\nec9bb3cd181e437992bdf3ad42ce77f3,2026-03-01T12:00:00.250Z,13\r\n",
    ),
)  # fmt: skip
def list_requests(
    request: Request, db: Db, span: Span, server: ServerName, launch: LaunchChoice = None,
    label: LabelFilter = None, limit: Limit = 100, cursor: Cursor = None, chosen: FormatChoice = Format.JSON,
) -> Response:  # fmt: skip
    """Requests of a server that finished in the range, newest first, each with its counts."""
    filters = service.parse_filters(label or [])
    page = service.list_requests(db, server, launch, span, filters, limit, cursor)
    document = page.model_dump(mode="json")
    return respond(request, chosen, document, tuple(RequestItem.model_fields), document["requests"])
