"""References: upload, list, show, download."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response

from specscope_server.kit.web.formats import respond
from specscope_server.kit.web.openapi import answers
from specscope_server.kit.web.pagination import MAX_ID, Cursor, Limit
from specscope_server.kit.web.params import Format, FormatChoice
from specscope_server.kit.web.state import Db, State
from specscope_server.references import examples, service, storing
from specscope_server.references.receiving import KINDS, Uploaded
from specscope_server.references.schemas import (
    ProfileItem,
    ReferenceDetail,
    ReferenceItem,
    ReferenceList,
    ReferenceReceipt,
)

router = APIRouter(tags=["references"])

Number = Annotated[int, Path(ge=0, le=MAX_ID, description="Id of a version, as listed")]
OnlyName = Annotated[str | None, Query(alias="name", description="Only versions of this name")]
NewName = Annotated[
    str | None, Query(alias="name", description="What to call it; without it, as the file says")
]
_BODY = {
    "requestBody": {
        "required": True,
        "description": "The file that `specscope reference build` wrote.",
        "content": {kind: {"schema": {"type": "string", "format": "binary"}} for kind in KINDS},
    }
}


@router.post(
    "/references", summary="Upload a reference", response_model=ReferenceReceipt,
    responses=answers(examples.RECEIPT, 408, 413, 415, 422), openapi_extra=_BODY,
)  # fmt: skip
def upload_reference(db: Db, state: State, content: Uploaded, name: NewName = None) -> ReferenceReceipt:
    """Send the profile of a training dump. The same content under a name is stored once; another one is its
    next version.
    """
    db.rollback()  # ends the read, so that on SQLite the write that follows is not behind it
    reference = storing.read_upload(content, name, state.clock())
    number, is_new = storing.store(state.engine, reference, state.clock())
    item = service.item_of(service.get_row(db, number))
    return ReferenceReceipt(id=number, is_new=is_new, reference=item)


@router.get(
    "/references", summary="List references", response_model=ReferenceList,
    responses=answers(examples.LIST, 422,
    csv="id,name,version,tool,hidden_size,rows\r\n2,synth-100k,2,speculators 0.4.0,7168,65536\r\n"),
)  # fmt: skip
def list_references(
    request: Request, db: Db, name: OnlyName = None, limit: Limit = 100, cursor: Cursor = None,
    chosen: FormatChoice = Format.JSON,
) -> Response:  # fmt: skip
    """References by name, the newest version first."""
    document = service.list_references(db, name, limit, cursor).model_dump(mode="json")
    return respond(request, chosen, document, tuple(ReferenceItem.model_fields), document["references"])


@router.get(
    "/references/{number}", summary="Show a reference", response_model=ReferenceDetail,
    responses=answers(examples.DETAIL, 404, 422,
    csv="slot,boundary,row_class,answers_only,rows,mean_ln_norm\r\n1,31,other,false,61440,3.44\r\n"),
)  # fmt: skip
def show_reference(request: Request, db: Db, number: Number, chosen: FormatChoice = Format.JSON) -> Response:
    """Where it comes from, by which rule its layers were turned into boundaries, what was left out, and how
    many rows there are of each place and class. CSV and NDJSON hold a row for each place and class.
    """
    document = service.detail_of(service.get_row(db, number)).model_dump(mode="json")
    return respond(request, chosen, document, tuple(ProfileItem.model_fields), document["profiles"])


@router.get(
    "/references/{number}/file", summary="Download a reference", response_class=Response,
    response_model=None, responses=answers("(bytes)", 404, 422, media_type="application/gzip"),
)  # fmt: skip
def download_reference(db: Db, number: Number) -> Response:
    """The file, with all vectors."""
    row = service.get_row(db, number)
    headers = {"content-disposition": f'attachment; filename="reference-{row.id}.reference.json.gz"'}
    return Response(row.body, media_type="application/gzip", headers=headers)


@router.get(
    "/references/{number}/token-ids", summary="Token ids of a reference", response_model=list[int],
    responses=answers([11, 13, 198], 404, 422),
)  # fmt: skip
def token_ids(db: Db, number: Number) -> list[int]:
    """The ids that it keeps directions of, as the file for SPECSCOPE_PROBE_TOKEN_IDS."""
    return list(service.load(db, number).token_ids)
