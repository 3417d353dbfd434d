"""Choose the references that fit a launch; what was read of one is kept, as a version never changes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TypeVar

from sqlalchemy import func, select
from sqlalchemy.orm import Session, defer

from specscope_collectors.references.document import BOUNDARIES, KIND_BYTES, SLOTS, kind_of, unpacked
from specscope_server.drift.kept import Kept
from specscope_server.drift.threads import one_thread
from specscope_server.drift.yardsticks import (
    NO_YARDSTICK,
    Boundaries,
    Training,
    Version,
    Yardstick,
    boundaries_of,
    training_of,
    yardstick_of,
)
from specscope_server.kit.errors import InvalidInput, NotFound
from specscope_server.models import Reference as Row

MOST_LOOKED_AT = 32
KEPT = 4
"""References that are kept as arrays; one of 62 boundaries of 7168 channels takes about 30 MB."""

Kind = TypeVar("Kind", Training, Boundaries)


@dataclass(frozen=True, slots=True)
class Asked:
    """Ids of references that the user wants; None = the newest that fits."""

    reference: int | None = None
    boundaries: int | None = None


def choose(session: Session, asked: Asked, hidden_size: int | None, model: str | None) -> Yardstick:
    """Return what to compare with. Raises `NotFound`, and `InvalidInput` for a reference of another kind.

    A reference that is asked for is taken even when its hidden size is another one: the answer says so.
    """
    training = (
        _asked(session, asked.reference, Training)
        if asked.reference is not None
        else _newest(session, Training, hidden_size, model, None)
    )
    like = training.document.model if training else model
    boundaries = (
        _asked(session, asked.boundaries, Boundaries)
        if asked.boundaries is not None
        else _newest(session, Boundaries, hidden_size, like, training)
    )
    if training is None and boundaries is None:
        return NO_YARDSTICK
    return _put_together(training, boundaries)


_documents: Kept[Version, Training | Boundaries] = Kept(KEPT)
_measured: Kept[tuple[Version | None, Version | None], Yardstick] = Kept(KEPT)
_kinds: Kept[Version, str] = Kept(1_000)
"""Known for longer than what is in a version."""
NAMES: dict[type[Training] | type[Boundaries], str] = {Training: SLOTS, Boundaries: BOUNDARIES}


def _put_together(training: Training | None, boundaries: Boundaries | None) -> Yardstick:
    key = (training.version if training else None, boundaries.version if boundaries else None)
    with one_thread():
        return _measured.made(key, lambda: yardstick_of(training, boundaries))


def _asked(session: Session, number: int, kind: type[Kind]) -> Kind:
    row = session.get(Row, number)
    if row is None:
        raise NotFound(f"there is no reference {number}; they are listed at /api/v1/references")
    found = _read(session, row, kind)
    if found is None:
        wanted = "of all boundaries" if kind is Boundaries else "of a training dump"
        raise InvalidInput(f"reference {number}, {row.name[:100]!r}, is not one {wanted}")
    return found


def _newest(
    session: Session, kind: type[Kind], hidden_size: int | None, model: str | None, like: Training | None
) -> Kind | None:
    """Return the newest that fits: of the same model if there is one, else of the same hidden size."""
    others = None
    for row in _candidates(session, hidden_size):
        found = _read(session, row, kind)
        if found is None or not _shares_ids(found, like):
            continue
        if is_same_model(row.model, model):
            return found
        others = others or found
    return others


def _candidates(session: Session, hidden_size: int | None) -> Iterator[Row]:
    query = select(Row).options(defer(Row.body)).order_by(Row.created_ms.desc(), Row.id.desc())
    if hidden_size is not None:
        query = query.where(Row.hidden_size == hidden_size)
    yield from session.scalars(query.limit(MOST_LOOKED_AT)).all()


def _shares_ids(found: Training | Boundaries, like: Training | None) -> bool:
    """Say whether directions were kept of token ids that the training reference has too."""
    if like is None or not isinstance(found, Boundaries):
        return True
    mine, theirs = set(found.document.token_ids), set(like.document.token_ids)
    return not mine or not theirs or bool(mine & theirs)


def is_same_model(one: str | None, other: str | None) -> bool:
    """Say whether two names or paths of models end alike."""
    names = [PurePosixPath(name.rstrip("/")).name.lower() if name else "" for name in (one, other)]
    return bool(names[0]) and names[0] == names[1]


def _read(session: Session, row: Row, kind: type[Kind]) -> Kind | None:
    """Return a version if it is of that kind, which is told from its first bytes."""
    version = Version(row.id, row.key, row.name, row.version, row.made_ms)
    if _kinds.made(version, lambda: _kind(session, row.id)) != NAMES[kind]:
        return None
    found = _documents.made(version, lambda: _opened(version, row.body))
    return found if isinstance(found, kind) else None


def _kind(session: Session, number: int) -> str:
    beginning = select(func.substr(Row.body, 1, KIND_BYTES)).where(Row.id == number)
    return kind_of(session.scalars(beginning).one())


def _opened(version: Version, body: bytes) -> Training | Boundaries:
    document = unpacked(body)
    if document.kind == BOUNDARIES:
        return boundaries_of(version, document)
    return training_of(version, document)
