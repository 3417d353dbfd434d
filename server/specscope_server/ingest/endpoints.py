"""Collectors on other hosts push their batches here."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from specscope_server.ingest import examples
from specscope_server.ingest.decoding import JSON, MSGPACK, NDJSON
from specscope_server.ingest.launches import watched_launch
from specscope_server.ingest.receiving import Body, Ingesting
from specscope_server.ingest.schemas import LaunchItem, Position, Receipt
from specscope_server.ingest.service import take_in
from specscope_server.kit.web.openapi import answers
from specscope_server.kit.web.state import Db

router = APIRouter(tags=["ingest"])

_BODY = {
    "requestBody": {
        "required": True,
        "description": "One batch or a list of them. Content-Encoding: zstd or gzip, or none.",
        "content": {
            MSGPACK: {"schema": {"type": "string", "format": "binary"}},
            JSON: {"schema": {"type": ["object", "array"]}, "example": examples.BATCH},
            NDJSON: {"schema": {"type": "string"}},
        },
    }
}
ServerName = Annotated[str, Query(description="Name of a watched server", min_length=1, max_length=300)]
Collector = Annotated[str, Query(description="Id of a collector, as in its batches", min_length=1)]


@router.post(
    "/ingest",
    summary="Push batches of observations",
    response_model=Receipt,
    responses=answers(examples.RECEIPT, 403, 408, 413, 415, 422),
    openapi_extra=_BODY,
)
def push(body: Body, ingest: Ingesting) -> Receipt:
    """Batches are applied in the order sent, each as a whole and once: one whose sequence was applied before
    changes nothing, so sending again is harmless. Observations that cannot be are refused and counted, the
    rest of their batch is stored. A batch that cannot be applied at all ends the request with 422; `errors`
    names it (`batches.3`), and all before it are applied. After 503 (the database is busy or away, or too
    many send at once) the same may be sent again after `Retry-After` seconds. Needs an ingest token.
    """
    return take_in(ingest.sink, ingest.sharing, body.batches())


@router.get(
    "/ingest",
    summary="How far a collector got",
    response_model=Position,
    responses=answers(examples.POSITION, 422),
)
def position(ingest: Ingesting, collector_id: Collector) -> Position:
    """The last sequence that was applied: a sender goes on with the next one."""
    return Position(collector_id=collector_id, sequence=ingest.sink.resume(collector_id).sequence)


@router.get(
    "/ingest/launch",
    summary="Which launch of a server is being watched",
    response_model=LaunchItem,
    responses=answers(examples.LAUNCH, 404, 422),
)
def launch(db: Db, server: ServerName) -> LaunchItem:
    """The launch that began last: whoever sends from inside the engine compares the seed with its own, and
    sends under this `launch_key`. 404 while no launch of the server has been seen.
    """
    return watched_launch(db, server)
