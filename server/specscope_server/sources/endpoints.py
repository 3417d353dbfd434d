"""Health of what is read from the watched servers."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from specscope_server.kit.web.formats import respond
from specscope_server.kit.web.openapi import answers
from specscope_server.kit.web.params import Format, FormatChoice, OptionalServer
from specscope_server.kit.web.state import Db, State
from specscope_server.sources import examples, service
from specscope_server.sources.schemas import SourceItem, SourceList

router = APIRouter(tags=["sources"])


@router.get(
    "/sources",
    summary="Show the health of all sources",
    response_model=SourceList,
    responses=answers(
        examples.SOURCES, 404, 422, csv="server,source,state\r\ngpu1:30000,sglang_metrics,ok\r\n"
    ),
)
def sources(
    request: Request, db: Db, state: State, server: OptionalServer = None, chosen: FormatChoice = Format.JSON
) -> Response:
    """Each source of each server: state and since when, last good read, HTTP status, size, and what is
    missing.
    """
    document = service.list_sources(db, server, state.clock(), state.stale_after_ms).model_dump(mode="json")
    rows = [source for entry in document["servers"] for source in entry["sources"]]
    return respond(request, chosen, document, tuple(SourceItem.model_fields), rows)
