"""The boundary table of a launch, or of a question without one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from sqlalchemy import func, select
from sqlalchemy.orm import Session, defer

from specscope_collectors.layer_ids import Question, System, resolve
from specscope_collectors.references.document import KIND_BYTES, SLOTS, DocumentError, kind_of
from specscope_server.acceptance.schemas import LaunchMarker
from specscope_server.boundaries.disagreements import disagreements_of, verdict_of
from specscope_server.boundaries.facts import Ids, LaunchFacts, facts_of
from specscope_server.boundaries.rows import earlier_row, launch_rows, row_of, trained_row, unusable_row
from specscope_server.boundaries.schemas import BoundaryRow, BoundaryTable, Disagreement, Role
from specscope_server.boundaries.statistics import as_text, difference, is_other
from specscope_server.kit.errors import InvalidInput, NotFound
from specscope_server.kit.timeparse import to_iso
from specscope_server.kit.versions import version_text
from specscope_server.models import Launch
from specscope_server.models import Reference as Row
from specscope_server.references.opening import UnusableError, asked_for, named, opened
from specscope_server.store.lookup import launch_by_id, newest_launch, previous_launch, server_by_name

MOST_EARLIER = 20
"""Launches that are looked back over for one that differs."""
MOST_REFERENCES = 32
CHOICES = (None, "", "newest", "all")


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """What a query wants instead of what is recorded."""

    system: System = System.SGLANG
    version: str | None = None
    model_class: str | None = None
    layers: int | None = None
    ids: Ids | None = None

    @property
    def is_asked(self) -> bool:
        """Whether anything is."""
        return any(each is not None for each in (self.version, self.model_class, self.layers, self.ids))


def table(
    session: Session, server: str | None, launch: str | None, reference: int | None, what_if: WhatIf
) -> BoundaryTable:
    """Return the table. Raises `NotFound`, and `InvalidInput` when neither server nor question is named."""
    if server is None:
        if not what_if.is_asked:
            raise InvalidInput("server is missing: name a watched server, or ask with ids=2,30,58")
        rows = list(_trained(session, None, reference))
        return _table(None, None, [*rows, *_asked_rows(what_if, None)], what_if)
    known = server_by_name(session, server)
    chosen = _launch(session, known.id, launch)
    if chosen is None:
        return _table(server, None, list(_trained(session, None, reference)), what_if)
    facts = facts_of(session, chosen)
    rows = [*_trained(session, facts, reference), *launch_rows(facts), *_earlier(session, facts)]
    if what_if.is_asked:
        rows += _asked_rows(what_if, facts)
    return _table(server, facts, rows, what_if)


def _launch(session: Session, server_id: int, choice: str | None) -> Launch | None:
    if choice in CHOICES:
        return newest_launch(session, server_id)
    found = launch_by_id(session, choice or "")
    if found is None or found.server_id != server_id:
        raise NotFound(
            f"this server has no launch {(choice or '')[:60]}; its launches are listed at "
            "/api/v1/servers/NAME/launches"
        )
    return found


def _table(
    server: str | None, facts: LaunchFacts | None, rows: list[BoundaryRow], what_if: WhatIf
) -> BoundaryTable:
    found = [*disagreements_of(rows, facts.model_class if facts else None), *_supposed(rows)]
    return BoundaryTable(
        server=server, is_demo=bool(facts and facts.launch.is_demo),
        launch=_marker(facts.launch) if facts else None,
        engine=facts.launch.engine if facts else None, engine_version=facts.version if facts else None,
        model_class=facts.model_class if facts else what_if.model_class,
        layers=facts.layers if facts else what_if.layers,
        verdict=verdict_of(rows, found), rows=rows, disagreements=found, missing=list(_missing(facts, rows)),
    )  # fmt: skip


def _marker(launch: Launch) -> LaunchMarker:
    depth = f"K={launch.num_steps} D={launch.num_draft_tokens}" if launch.num_draft_tokens else "launch"
    version = version_text(launch.engine_version, launch.version_source)
    return LaunchMarker(
        time=to_iso(launch.first_seen_ms), launch_id=launch.id,
        label=" · ".join(filter(None, (depth, version))), reason=launch.reason,
    )  # fmt: skip


# Rows


def _asked_rows(what_if: WhatIf, facts: LaunchFacts | None) -> list[BoundaryRow]:
    """Return what the query's ids mean; what it leaves out is as recorded."""
    ids = what_if.ids if what_if.ids is not None or facts is None else facts.ids
    asked = Question(
        system=what_if.system, ids=ids, version=what_if.version or (facts.version if facts else None),
        model_class=what_if.model_class or (facts.model_class if facts else None),
        layers=what_if.layers or (facts.layers if facts else None),
    )  # fmt: skip
    return [row_of(Role.WHAT_IF, "What if", "your question", resolve(asked), None, asked.version)]


def _earlier(session: Session, facts: LaunchFacts) -> Iterator[BoundaryRow]:
    """Yield the newest earlier launch whose row differs, else the one before."""
    own = earlier_row(facts)
    first: BoundaryRow | None = None
    launch = previous_launch(session, facts.launch)
    for _ in range(MOST_EARLIER):
        if launch is None:
            break
        found = earlier_row(facts_of(session, launch))
        if found is not None and (found.ids is not None or found.boundaries is not None):
            first = first or found
            if own is None or found.ids != own.ids or is_other(found.boundaries, own.boundaries):
                first = found
                break
        launch = previous_launch(session, launch)
    if first is not None:
        yield first


def _trained(session: Session, facts: LaunchFacts | None, reference: int | None) -> Iterator[BoundaryRow]:
    """Yield what the reference asked for says, or the newest that fits and can be used."""
    if reference is not None:
        row = _asked(session, reference)
        yield trained_row(asked_for(row), row.version, [])
        return
    passed_over: list[str] = []
    for row in _fitting(session, facts) if facts is not None else ():
        try:
            yield trained_row(opened(row), row.version, passed_over)
            return
        except UnusableError as error:
            passed_over.append(f"{named(row)} cannot be used: {error}")
    if passed_over:
        yield unusable_row(passed_over)


def _asked(session: Session, number: int) -> Row:
    found = session.get(Row, number)
    if found is None:
        raise NotFound(f"there is no reference {number}; they are listed at /api/v1/references")
    if not _is_of_slots(found.body[:KIND_BYTES]):
        raise InvalidInput(f"reference {number} is of all boundaries; name one of a training dump")
    return found


def _fitting(session: Session, facts: LaunchFacts) -> list[Row]:
    """Return references of training dumps of the same model, then of the same hidden size; newest first."""
    fitting = [row for row in _of_slots(session) if _fits(row, facts)]
    return sorted(fitting, key=lambda row: not is_same_model(row.model, facts.launch.model))


def _of_slots(session: Session) -> Iterator[Row]:
    query = select(Row, func.substr(Row.body, 1, KIND_BYTES)).options(defer(Row.body))
    newest = query.order_by(Row.created_ms.desc(), Row.id.desc()).limit(MOST_REFERENCES)
    yield from (row for row, beginning in session.execute(newest) if _is_of_slots(beginning))


def _is_of_slots(beginning: bytes) -> bool:
    """Say whether a version is of a training dump; one that is damaged may be."""
    try:
        return kind_of(beginning) == SLOTS
    except DocumentError:
        return True


def _fits(row: Row, facts: LaunchFacts) -> bool:
    size = facts.captured.hidden_size if facts.captured else None
    if size is not None:
        return row.hidden_size == size
    return is_same_model(row.model, facts.launch.model)


def is_same_model(one: str | None, other: str | None) -> bool:
    """Say whether two names or paths of models end alike."""
    names = [PurePosixPath(name.rstrip("/")).name.lower() if name else "" for name in (one, other)]
    return bool(names[0]) and names[0] == names[1]


# Words


def _supposed(rows: Sequence[BoundaryRow]) -> Iterator[Disagreement]:
    """Compare a question with what the draft was trained on, or with what is asked for now."""
    asked = next((place for place, row in enumerate(rows) if row.role is Role.WHAT_IF), None)
    if asked is None:
        return
    for role, words in ((Role.TRAINED, "the draft was trained on"), (Role.ASKED, "the draft asks now for")):
        place = next((place for place, row in enumerate(rows) if row.role is role), None)
        expected = rows[place].boundaries if place is not None else None
        found = rows[asked].boundaries
        if place is None or expected is None or found is None or not is_other(expected, found):
            continue
        message = (
            f"What if: {as_text(found)}, and {words} {as_text(expected)}: {difference(expected, found)}."
        )
        yield Disagreement(kind="what_if", is_fault=False, message=message, rows=[place, asked])


def _missing(facts: LaunchFacts | None, rows: Sequence[BoundaryRow]) -> Iterator[str]:
    roles = {row.role for row in rows}
    if facts is None:
        if Role.WHAT_IF not in roles:
            yield "No launch of this server is known yet: it is asked for its configuration with every start."
        return
    if Role.TRAINED not in roles:
        yield (
            "What the draft was trained on: specscope reference build DUMP, then upload the file "
            "(POST /api/v1/references); one of another model is used with reference=ID."
        )
    if Role.CAPTURED not in roles:
        yield (
            "What the running model captures: start SGLang with SPECSCOPE_PROBE=1 and SPECSCOPE_SPOOL=DIR, "
            "and let the collectors read DIR."
        )
    if facts.is_eagle3 and facts.ids is None and not facts.names_none:
        yield (
            "Which ids the draft names: run the collectors where the draft's config.json is, or ask with "
            "ids=…; specscope reference boundaries --draft-config reads it without a server."
        )
    if facts.launch.engine == "sglang" and facts.model_class is None:
        yield "Class of the target: SGLang tells it from 0.5.8 on; ask with model_class=…"
    if facts.layers is None and any(row.is_default for row in rows):
        yield "Number of decoder layers of the target: ask with layers=…"
