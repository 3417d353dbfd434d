"""The boundary table, and the calculator of totals."""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from specscope_collectors.layer_ids import System
from specscope_server.boundaries import examples
from specscope_server.boundaries.schemas import BoundaryRow, BoundaryTable, Totals
from specscope_server.boundaries.service import WhatIf, table
from specscope_server.boundaries.totals import totals
from specscope_server.kit.errors import InvalidInput
from specscope_server.kit.web.formats import respond
from specscope_server.kit.web.openapi import answers
from specscope_server.kit.web.pagination import MAX_ID
from specscope_server.kit.web.params import Format, FormatChoice, LaunchChoice
from specscope_server.kit.web.state import Db

router = APIRouter(prefix="/drift", tags=["drift"])
MAX_IDS_TEXT = 400
_IDS = re.compile(r"-?[0-9]{1,4}(\s*,\s*-?[0-9]{1,4})*", re.ASCII)

ServerOrNone = Annotated[
    str | None,
    Query(alias="server", description="Name of a watched server; without it, `ids` are read alone"),
]
ReferenceId = Annotated[
    int | None, Query(alias="reference", ge=0, le=MAX_ID, description="Id of a reference of a training dump")
]
SystemName = Annotated[System, Query(alias="system", description="Whose ids `ids` are")]
IdsText = Annotated[
    str | None,
    Query(alias="ids", max_length=MAX_IDS_TEXT, description="What if these were the ids, e.g. `2,30,58`"),
]
VersionText = Annotated[
    str | None, Query(max_length=100, description="What if the engine were of this version")
]
ClassText = Annotated[str | None, Query(max_length=100, description="What if the target were of this class")]
LayersNumber = Annotated[
    int | None, Query(ge=1, le=4_096, description="What if the target had so many layers")
]


def ids_from(text: str | None) -> tuple[int, ...] | None:
    """Return ids of a text. Raises `InvalidInput`."""
    if text is None or not text.strip():
        return None
    found = text.strip().removeprefix("[").removesuffix("]").strip()
    if not _IDS.fullmatch(found):
        raise InvalidInput(f"ids={text[:60]!r} is no list of layer ids; write 2,30,58")
    return tuple(int(each) for each in found.split(","))


@router.get(
    "/boundaries", summary="Show every layer id in play as the boundary it means",
    response_model=BoundaryTable,
    responses=answers(examples.TABLE, 404, 422,
    csv='role,source,ids,boundaries\r\nasked,configuration of the draft,"[2,30,58]","[3,31,59]"\r\n'),
)  # fmt: skip
def boundary_table(
    request: Request, db: Db, server: ServerOrNone = None, launch: LaunchChoice = None,
    reference: ReferenceId = None, system: SystemName = System.SGLANG, ids: IdsText = None,
    engine_version: VersionText = None, model_class: ClassText = None, layers: LayersNumber = None,
    chosen: FormatChoice = Format.JSON,
) -> Response:  # fmt: skip
    """What the draft was trained on, what its configuration asks this engine for, what the probe read from
    the running model, and an earlier launch: each with its ids as written, the rule and where it was read,
    and the boundaries; then where two of them disagree. It needs neither a dump nor a probe. `ids`,
    `engine_version`, `model_class` and `layers` ask what would be.
    """
    what_if = WhatIf(
        system=system, version=engine_version or None, model_class=model_class or None, layers=layers,
        ids=ids_from(ids),
    )  # fmt: skip
    document = table(db, server, launch, reference, what_if).model_dump(mode="json")
    return respond(request, chosen, document, tuple(BoundaryRow.model_fields), document["rows"])


Total = Annotated[float, Query(gt=0, description="Frobenius norm ‖X‖_F over all rows")]
Tokens = Annotated[int, Query(ge=1, description="Number of rows")]
SideName = Annotated[str, Query(max_length=60, description="What to call this side")]


@router.get(
    "/totals", summary="Say what two totals of hidden states can and cannot mean", response_model=Totals,
    responses=answers(examples.TOTALS, 422),
)  # fmt: skip
def totals_calculator(
    total_a: Total, tokens_a: Tokens, total_b: Total, tokens_b: Tokens,
    hidden_size: Annotated[int | None, Query(ge=1, description="Hidden size H of a slot")] = None,
    name_a: SideName = "a", name_b: SideName = "b",
) -> Totals:  # fmt: skip
    """Where all that is known are two totals and two numbers of tokens: RMS norms per token, what unequal
    lengths make of them, and the one long row that would explain the whole difference.
    """
    return totals(total_a, tokens_a, total_b, tokens_b, hidden_size, (name_a, name_b))
