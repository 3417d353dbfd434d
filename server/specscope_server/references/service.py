"""List and show references."""

from __future__ import annotations

import math

from sqlalchemy import and_, func, or_, select
from sqlalchemy.orm import Session, defer

from specscope_collectors.observations import StateProfile
from specscope_collectors.references.document import (
    KIND_BYTES,
    DocumentError,
    LastState,
    Reference,
    kind_of,
)
from specscope_server.kit.errors import NotFound
from specscope_server.kit.timeparse import to_iso
from specscope_server.kit.web.pagination import decode_cursor, encode_cursor
from specscope_server.models import Reference as Row
from specscope_server.references.opening import asked_for
from specscope_server.references.schemas import (
    LastItem,
    ProfileItem,
    ReferenceDetail,
    ReferenceItem,
    ReferenceList,
)

UNREADABLE = "unreadable"


def list_references(session: Session, name: str | None, limit: int, cursor: str | None) -> ReferenceList:
    """Return references by name, the newest version first. Raises `InvalidInput` for a wrong cursor."""
    query = select(Row, func.substr(Row.body, 1, KIND_BYTES)).options(defer(Row.body))
    if name is not None:
        query = query.where(Row.name == name)
    after = decode_cursor(cursor, (str, int))
    if after is not None:
        query = query.where(or_(Row.name > after[0], and_(Row.name == after[0], Row.version < after[1])))
    rows = session.execute(query.order_by(Row.name, Row.version.desc()).limit(limit + 1)).all()
    shown = rows[:limit]
    last = shown[-1][0] if shown else None
    following = encode_cursor([last.name, last.version]) if last is not None and len(rows) > limit else None
    return ReferenceList(
        references=[item_of(row, beginning) for row, beginning in shown], next_cursor=following
    )


def item_of(row: Row, beginning: bytes | None = None) -> ReferenceItem:
    """Return one line of a list; `beginning` of the body, where the whole is not at hand."""
    return ReferenceItem(
        id=row.id, name=row.name, version=row.version,
        kind=_kind(row.body[:KIND_BYTES] if beginning is None else beginning),
        tool=row.tool, model=row.model,
        hidden_size=row.hidden_size, slots=row.slots, requests=row.requests, rows=row.rows,
        made=to_iso(row.made_ms), uploaded=to_iso(row.created_ms),
    )  # fmt: skip


def _kind(beginning: bytes) -> str:
    try:
        return kind_of(beginning)
    except DocumentError:
        return UNREADABLE


def get_row(session: Session, number: int) -> Row:
    """Return one version. Raises `NotFound`."""
    row = session.get(Row, number)
    if row is None:
        raise NotFound(f"there is no reference {number}; they are listed at /api/v1/references")
    return row


def load(session: Session, number: int) -> Reference:
    """Return one version with its profiles. Raises `NotFound`, `InvalidInput` when it cannot be used."""
    return asked_for(get_row(session, number))


def detail_of(row: Row) -> ReferenceDetail:
    """Return one version without its vectors. Raises `InvalidInput` when it cannot be used."""
    found = asked_for(row)
    return ReferenceDetail(
        **item_of(row).model_dump(), dtype=found.dtype, container=found.container,
        compression=found.compression, boundaries=list(found.boundaries), boundary_rule=found.boundary_rule,
        boundary_source=found.boundary_source, files=found.files, tokens=found.tokens,
        answer_rows=found.answer_rows, budget_rows=found.budget_rows, seed=found.seed,
        fingerprint=found.fingerprint, sink_limits=list(found.sink_limits), token_ids=list(found.token_ids),
        refused=found.refused, notes=list(found.notes), provenance=found.provenance,
        last=_last(found.last),
        profiles=[
            _profile(each, answers)
            for group, answers in ((found.profiles, False), (found.answer_profiles, True)) for each in group
        ],
        download=f"/api/v1/references/{row.id}/file",
    )  # fmt: skip


def _last(last: LastState | None) -> LastItem | None:
    if last is None:
        return None
    return LastItem(boundary=last.boundary, norm=last.norm, rule=last.rule, median_square=last.median_square)


def _profile(profile: StateProfile, answers: bool) -> ProfileItem:
    norms = profile.ln_norms
    counted = sum(norms.bins.values())
    mean = norms.sum / counted if counted else None
    spread = math.sqrt(max(norms.sum_of_squares / counted - mean * mean, 0)) if mean is not None else None
    return ProfileItem(
        slot=profile.slot, boundary=profile.boundary, row_class=profile.row_class, answers_only=answers,
        rows=profile.rows, requests=profile.requests, mean_ln_norm=mean, sd_ln_norm=spread,
        invariants=profile.invariants,
    )  # fmt: skip
