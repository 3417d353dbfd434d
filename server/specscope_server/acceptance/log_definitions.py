"""What a log's own reading decided about its printed rate: line by line, where buckets are too coarse."""

from __future__ import annotations

from collections.abc import Sequence

import orjson
from sqlalchemy import select
from sqlalchemy.orm import Session

from specscope_server.acceptance.engine_rates import Decision, Formula
from specscope_server.models import Event
from specscope_server.store.chunks import chunks
from specscope_server.store.lookup import recent_ids
from specscope_server.store.one_pass import remembered_each

KIND = "rate_definition"
DECIDED = {formula.value: formula for formula in (Formula.WITH_BONUS, Formula.STRICT)}


def log_definitions(session: Session, launch_ids: Sequence[int]) -> dict[int, Decision]:
    """Return launch id → what reading its log decided last; launches of which no log decided are left out."""
    return remembered_each(
        session, "log definitions", launch_ids, lambda ids: _decided(session, ids), recent_ids(session)
    )


def _decided(session: Session, launch_ids: Sequence[int]) -> dict[int, Decision]:
    found: dict[int, Decision] = {}
    for part in chunks(sorted(launch_ids)):
        query = (
            select(Event.launch_id, Event.detail)
            .where(Event.launch_id.in_(part), Event.kind == KIND)
            .order_by(Event.time_ms, Event.id)
        )
        for launch_id, text in session.execute(query):
            decision = _decision(orjson.loads(text))
            if launch_id is not None and decision is not None:
                found[launch_id] = decision
    return found


def _decision(detail: dict[str, object]) -> Decision | None:
    formula = DECIDED.get(str(detail.get("definition")))
    pairs, draft_tokens = detail.get("pairs"), detail.get("draft_tokens")
    if formula is None or not isinstance(pairs, int):
        return None
    depth = draft_tokens if isinstance(draft_tokens, int) and draft_tokens > 1 else None
    return Decision(formula, f"{pairs} pairs printed in its log fit {formula} only", draft_tokens=depth)
