"""Choose the references that fit a launch; what was read of one is kept, as a version never changes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import TypeVar

from sqlalchemy import func, select
from sqlalchemy.orm import Session, defer

from specscope_collectors.references.document import (
    BOUNDARIES,
    KIND_BYTES,
    SLOTS,
    DocumentError,
    Reference,
    kind_of,
)
from specscope_collectors.states.sums import UnequalError
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
from specscope_server.references.opening import REMEDY, UnusableError, named, opened

MOST_LOOKED_AT = 32
KEPT = 4
"""References that are kept as arrays; one of 62 boundaries of 7168 channels takes about 30 MB."""

Kind = TypeVar("Kind", Training, Boundaries)


@dataclass(frozen=True, slots=True)
class Asked:
    """Ids of references that the user wants; None = the newest that fits."""

    reference: int | None = None
    boundaries: int | None = None


@dataclass(frozen=True, slots=True)
class Unusable:
    """A stored version that nothing can be compared with."""

    why: str
    """In words, with the version's name."""


def choose(session: Session, asked: Asked, hidden_size: int | None, model: str | None) -> Yardstick:
    """Return what to compare with. Raises `NotFound`, and `InvalidInput` for a reference of another kind, or
    one that is asked for and cannot be used; where none is asked for, these are passed over and named.

    A reference that is asked for is taken even when its hidden size is another one: the answer says so.
    """
    passed_over: dict[str, None] = {}
    training = (
        _asked(session, asked.reference, Training)
        if asked.reference is not None
        else _newest(session, Training, hidden_size, model, None, passed_over)
    )
    like = training.document.model if training else model
    boundaries = (
        _asked(session, asked.boundaries, Boundaries)
        if asked.boundaries is not None
        else _newest(session, Boundaries, hidden_size, like, training, passed_over)
    )
    yard = NO_YARDSTICK if training is None and boundaries is None else _put_together(training, boundaries)
    return replace(yard, unusable=tuple(passed_over))


_documents: Kept[Version, Training | Boundaries | Unusable] = Kept(KEPT)
_measured: Kept[tuple[Version | None, Version | None], Yardstick] = Kept(KEPT)
_kinds: Kept[Version, str] = Kept(1_000)
"""Known for longer than what is in a version."""
DAMAGED = "damaged"
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
    if isinstance(found, Unusable):
        raise InvalidInput(f"{found.why}; {REMEDY}")
    if found is None:
        wanted = "of all boundaries" if kind is Boundaries else "of a training dump"
        raise InvalidInput(f"reference {number}, {row.name[:100]!r}, is not one {wanted}")
    return found


def _newest(
    session: Session, kind: type[Kind], hidden_size: int | None, model: str | None, like: Training | None,
    passed_over: dict[str, None],
) -> Kind | None:  # fmt: skip
    """Return the newest that fits: of the same model if there is one, else of the same hidden size.

    What cannot be used is put into ``passed_over``, in words.
    """
    others = None
    for row in _candidates(session, hidden_size):
        found = _read(session, row, kind)
        if isinstance(found, Unusable):
            passed_over[found.why] = None
            continue
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


def _read(session: Session, row: Row, kind: type[Kind]) -> Kind | Unusable | None:
    """Return a version if it is of that kind, which is told from its first bytes."""
    version = Version(row.id, row.key, row.name, row.version, row.made_ms)
    if _kinds.made(version, lambda: _kind(session, row.id)) not in (NAMES[kind], DAMAGED):
        return None
    found = _documents.made(version, lambda: _opened(version, row))
    return found if isinstance(found, (kind, Unusable)) else None


def _kind(session: Session, number: int) -> str:
    beginning = select(func.substr(Row.body, 1, KIND_BYTES)).where(Row.id == number)
    try:
        return kind_of(session.scalars(beginning).one())
    except DocumentError:
        return DAMAGED


def _opened(version: Version, row: Row) -> Training | Boundaries | Unusable:
    try:
        return _arrays(version, opened(row))
    except (UnusableError, UnequalError) as error:
        return Unusable(f"{named(row)} cannot be used: {error}")


def _arrays(version: Version, document: Reference) -> Training | Boundaries:
    """Return a version as arrays. Raises UnequalError."""
    if document.kind == BOUNDARIES:
        return boundaries_of(version, document)
    return training_of(version, document)
