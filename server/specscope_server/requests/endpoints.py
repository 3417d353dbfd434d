"""Finished requests: report, list, summarise, compare them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Path, Query, Request, Response

from specscope_server.kit.web.bodies import JSON, NDJSON, Body
from specscope_server.kit.web.formats import respond
from specscope_server.kit.web.openapi import answers
from specscope_server.kit.web.pagination import MAX_ID, Cursor, Limit
from specscope_server.kit.web.params import Format, FormatChoice, LaunchChoice, Range, ServerName, Span
from specscope_server.kit.web.state import Db, State
from specscope_server.requests import breakdown, detail, examples, listing, parts, service, summary
from specscope_server.requests.breakdown_schemas import Breakdown, Part
from specscope_server.requests.detail_schemas import HistogramBar, RequestDetail
from specscope_server.requests.filters import scope_of
from specscope_server.requests.schemas import Receipt, RequestItem, RequestPage
from specscope_server.requests.sorting import Sort
from specscope_server.requests.summary_schemas import RequestSummary
from specscope_server.store.lookup import server_by_name

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
Search = Annotated[
    str,
    Query(description="Beginning of an id, or a label `NAME=VALUE`, or a text anywhere in the labels"),
]
Canaries = Annotated[bool, Query(description="Also list the requests that a canary made")]
SortChoice = Annotated[Sort, Query(alias="sort", description="What to sort by; `-` puts the largest first")]
By = Annotated[
    str,
    Query(description="`prompt_tokens`, `context_tokens`, `completion_tokens`, or `label:NAME`"),
]
Number = Annotated[int, Path(ge=0, le=MAX_ID, description="`number` of a request, as listed")]


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
    settings, telemetry = request.app.state.settings, request.app.state.telemetry
    days = settings.retention_requests_days
    return service.receive(db, state, days, server, body, labels, create=create, telemetry=telemetry)


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
    label: LabelFilter = None, search: Search = "", sort: SortChoice = Sort.NEWEST, limit: Limit = 100,
    cursor: Cursor = None, canaries: Canaries = False, chosen: FormatChoice = Format.JSON,
) -> Response:  # fmt: skip
    """Requests of a server that finished in the range, each with its counts: newest first, or as `sort` says
    (what is not known comes last). Requests of canaries are left out unless asked for, or searched for by id.
    """
    scope = scope_of(db, server, launch, span, label or (), search, canaries=canaries)
    page = listing.list_requests(db, server, scope, sort, limit, cursor)
    document = page.model_dump(mode="json")
    columns = tuple(RequestItem.model_fields)
    return respond(request, chosen, document, columns, document["requests"], closed=span.is_closed)


@router.get(
    "/requests/summary",
    summary="Summarise finished requests",
    response_model=RequestSummary,
    responses=answers(
        examples.SUMMARY, 404, 422,
        csv="side,expected_accept_length,log10_chance,request_id\r\nlow,2.82,-7.1,ec9bb3cd181e437992bdf3ad42ce77f3\r\n",
    ),
)  # fmt: skip
def summarise_requests(
    request: Request, db: Db, span: Range, server: ServerName, launch: LaunchChoice = None,
    label: LabelFilter = None, search: Search = "", chosen: FormatChoice = Format.JSON,
) -> Response:  # fmt: skip
    """The requests of a range as a whole: accept length pooled and as mean of requests, identities that their
    counts must satisfy, how many of the engine's cycles they cover, and the requests that stand apart.
    CSV and NDJSON hold the latter.
    """
    scope = scope_of(db, server, launch, span, label or (), search)
    document = summary.read_summary(db, server, scope, span.window()).model_dump(mode="json", by_alias=True)
    rows = [{**each, **each["request"]} for each in document["outliers"]["requests"]]
    columns = ("side", "expected_accept_length", "log10_chance", *RequestItem.model_fields)
    return respond(request, chosen, document, columns, rows, closed=span.is_closed)


@router.get(
    "/requests/breakdown",
    summary="Compare finished requests by label or length",
    response_model=Breakdown,
    responses=answers(
        examples.BREAKDOWN, 404, 422,
        csv="name,kind,requests,cycles,accept_length\r\nsearch,value,1,13,2.3846153846153846\r\n",
    ),
)  # fmt: skip
def break_down_requests(
    request: Request, db: Db, span: Span, server: ServerName, by: By = parts.DEFAULT,
    launch: LaunchChoice = None, label: LabelFilter = None, search: Search = "",
    chosen: FormatChoice = Format.JSON,
) -> Response:  # fmt: skip
    """Accept length and acceptance by draft position for each value of a label (the eight commonest, and all
    others together), or for each class of prompt, context or output length (each class twice the one before).
    """
    scope = scope_of(db, server, launch, span, label or (), search)
    document = breakdown.read_breakdown(db, server, scope, by).model_dump(mode="json", by_alias=True)
    columns = tuple(Part.model_fields)
    return respond(request, chosen, document, columns, document["parts"], closed=span.is_closed)


@router.get(
    "/requests/{number}",
    summary="Show one finished request",
    response_model=RequestDetail,
    responses=answers(
        examples.DETAIL, 404, 422,
        csv="accepted_drafts,cycles,share,peer_cycles,peer_share\r\n0,6,0.46,6,0.46\r\n",
    ),
)  # fmt: skip
def show_request(
    request: Request, db: Db, number: Number, server: ServerName, chosen: FormatChoice = Format.JSON
) -> Response:
    """One request beside its peers: those of its launch and K that finished within half an hour of it."""
    row = server_by_name(db, server)
    document = detail.read_detail(db, server, row.id, number).model_dump(mode="json", by_alias=True)
    bars = document["peers"]["histogram"] if document["peers"] else []
    return respond(request, chosen, document, tuple(HistogramBar.model_fields), bars)
