"""Profiler captures: upload, list, show, compare, start."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import FileResponse

from specscope_server.kit.web.formats import respond
from specscope_server.kit.web.openapi import answers
from specscope_server.kit.web.pagination import MAX_ID, Cursor, Limit
from specscope_server.kit.web.params import Format, FormatChoice, ServerName
from specscope_server.kit.web.state import Db, State
from specscope_server.traces import examples, receiving, service
from specscope_server.traces.capturing import captures_of
from specscope_server.traces.schemas import (
    CaptureOrder,
    CaptureState,
    CaptureStates,
    ChangeItem,
    TraceComparison,
    TraceDetail,
    TraceItem,
    TraceList,
    TraceReceipt,
)
from specscope_server.traces.uploading import KINDS, Uploaded
from specscope_server.traces.views import class_rows

router = APIRouter(tags=["traces"])

TraceId = Annotated[int, Path(ge=0, le=MAX_ID, description="Id of a trace, as listed")]
Side = Annotated[int, Query(ge=0, le=MAX_ID, description="Id of a trace, as listed at /traces")]
Name = Annotated[str | None, Query(description="What to call the capture; without it, its file's name")]
Note = Annotated[str, Query(description="What was different, in your words")]
FileName = Annotated[
    str, Query(alias="file", description="Name of the file: it says the rank (`…-TP-3-DP-1.trace.json.gz`)")
]
_BODY = {
    "requestBody": {
        "required": True,
        "description": "One trace (JSON, may be gzip), or a tar archive of the traces of one capture.",
        "content": {kind: {"schema": {"type": "string", "format": "binary"}} for kind in KINDS},
    }
}


@router.post(
    "/traces", summary="Upload a profiler trace", response_model=TraceReceipt,
    responses=answers(examples.RECEIPT, 408, 413, 415, 422), openapi_extra=_BODY,
)  # fmt: skip
def upload_trace(
    request: Request, db: Db, state: State, upload: Uploaded, server: ServerName,
    file: FileName = "trace.json.gz", name: Name = None, note: Note = "",
) -> TraceReceipt:  # fmt: skip
    """Send a Kineto or Chrome trace as SGLang's profiler wrote it. It is read in bounded memory and reduced
    to times by rank, phase and class of kernel; the file itself is kept where `trace_folder` is set. A trace
    that is cut off is read as far as it goes, and `notes` says so. The same files are stored once.
    """
    settings = request.app.state.settings
    told = receiving.Told(server, name, note)
    db.rollback()  # ends the read, so that on SQLite the write that follows is not behind it
    record = receiving.reduce_upload(upload.file, file, told, state.clock())
    trace_id, is_new = receiving.store(state.engine, told, record, state.clock())
    receiving.keep_upload(settings, record, upload.file)
    return TraceReceipt(
        id=trace_id, is_new=is_new, trace=service.get_trace(db, trace_id, settings.trace_folder)
    )


@router.get(
    "/traces", summary="List profiler traces", response_model=TraceList,
    responses=answers(examples.LIST, 404, 422,
    csv="id,server,name,time,cycles\r\n3,gpu1:30000,before NCCL tuning,2026-03-01T12:00:00.000Z,30\r\n"),
)  # fmt: skip
def list_traces(
    request: Request, db: Db, server: ServerName, limit: Limit = 100, cursor: Cursor = None,
    chosen: FormatChoice = Format.JSON,
) -> Response:  # fmt: skip
    """Captures of a server, newest first."""
    document = service.list_traces(db, server, limit, cursor).model_dump(mode="json")
    return respond(request, chosen, document, tuple(TraceItem.model_fields), document["traces"])


@router.get(
    "/traces/compare", summary="Compare two profiler traces", response_model=TraceComparison,
    responses=answers(examples.COMPARISON, 404, 422,
    csv="phase,kernel_class,a_ms,b_ms,change_ms,low_ms,high_ms\r\nverify,all_reduce,5.1,0.3,-4.8,-4.9,-4.7\r\n"),
)  # fmt: skip
def compare_traces(
    request: Request, db: Db, a: Side, b: Side, chosen: FormatChoice = Format.JSON
) -> Response:
    """b against a, phase by phase and class of kernel by class of kernel: means over ranks of one occurrence,
    with 95 % intervals (block bootstrap over occurrences).
    """
    document = service.compare(db, a, b).model_dump(mode="json")
    return respond(request, chosen, document, tuple(ChangeItem.model_fields), document["changes"])


@router.get(
    "/traces/{trace_id}", summary="Show a profiler trace", response_model=TraceDetail,
    responses=answers(examples.DETAIL, 404, 422,
    csv="rank,phase,kernel_class,mean_ms,share\r\nTP0,verify,all_reduce,5.1,0.24\r\n"),
)  # fmt: skip
def show_trace(request: Request, db: Db, trace_id: TraceId, chosen: FormatChoice = Format.JSON) -> Response:
    """Time of each rank by phase and class of kernel, where it waits for others, and its longest kernels. CSV
    and NDJSON hold a row for each rank, phase and class.
    """
    detail = service.get_trace(db, trace_id, request.app.state.settings.trace_folder)
    columns = ("rank", "phase", "count", "kernel_class", "mean_ms", "share", "busy_mean_ms")
    return respond(request, chosen, detail.model_dump(mode="json"), columns, class_rows(detail))


@router.get(
    "/traces/{trace_id}/files/{index}", summary="Download a trace's original file",
    response_class=FileResponse, response_model=None,
    responses=answers("(bytes)", 404, 422, media_type="application/octet-stream"),
)  # fmt: skip
def download_trace(
    request: Request, db: Db, trace_id: TraceId,
    index: Annotated[int, Path(ge=0, le=10_000, description="Number of the file, from 0")],
) -> FileResponse:  # fmt: skip
    """The file as it came, for Perfetto or chrome://tracing; only where `trace_folder` is set."""
    path, name = service.file_path(db, trace_id, index, request.app.state.settings.trace_folder)
    return FileResponse(path, media_type="application/octet-stream", filename=name)


@router.post(
    "/trace-captures", summary="Start a capture", response_model=CaptureState,
    responses=answers(examples.CAPTURES["captures"][0], 403, 404, 422),
)  # fmt: skip
def start_capture(request: Request, db: Db, state: State, order: CaptureOrder) -> CaptureState:
    """Let an SGLang server record its next steps. The engine writes the trace in its scheduler's thread: it
    generates nothing until the files are written, seconds for a few dozen steps. Where
    `trace_capture_folder` is set, they are imported from there. Needs an admin token.
    """
    return captures_of(request.app).start(db, state, request.app.state.settings, order)


@router.get(
    "/trace-captures", summary="What became of captures", response_model=CaptureStates,
    responses=answers(examples.CAPTURES),
)  # fmt: skip
def capture_states(request: Request) -> CaptureStates:
    """Captures that were started here since this process began, newest first."""
    return CaptureStates(captures=captures_of(request.app).states())
