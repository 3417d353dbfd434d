"""All rules at one instant."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from specscope_server.alerts.rules.evaluation import Evaluation
from specscope_server.alerts.rules.judge_rules import views
from specscope_server.alerts.rules.judging import ABSENT, BREACH, GONE, UNKNOWN
from specscope_server.alerts.rules.reading import Cause, LabelKey, Reading, Status
from specscope_server.alerts.rules.reads import Frame
from specscope_server.alerts.rules.schema import NoData, StoredRule
from specscope_server.alerts.rules.views import LeafView, RuleView
from specscope_server.kit.signal import Target
from specscope_server.kit.web.state import AppState
from specscope_server.models import Server
from specscope_server.models.server import is_collector
from specscope_server.store.one_pass import one_pass

INSTANT_STEP_MS = 1_000


def watched(session: Session) -> tuple[Target, ...]:
    """Return every watched server by name; collectors report of themselves and are none."""
    query = select(Server.id, Server.name).where(~is_collector()).order_by(Server.name)
    return tuple(Target(row.id, row.name) for row in session.execute(query))


def evaluate(session: Session, state: AppState, rules: Sequence[StoredRule], now_ms: int) -> Evaluation:
    """Return what enabled rules say at ``now_ms``. Never raises for one rule: its readings are errors."""
    began = time.perf_counter()
    frame = Frame(
        watched(session), np.array([now_ms], dtype=np.int64), INSTANT_STEP_MS, now_ms, state
    )  # fmt: skip
    lost = {each.rule.name: _lost(each, now_ms) for each in rules if each.enabled and each.unreadable}
    readable = [stored for stored in rules if stored.enabled and not stored.unreadable]
    with one_pass(session, [server.id for server in frame.servers], now_ms):
        found, reads = views(session, frame, readable)
    by_rule = {view.stored.rule.name: view for view in found}
    problems = sorted({text for errors in reads.errors.values() for text in errors.values()})
    problems += [f"rule {name!r} {reading.reason}" for name, reading in lost.items()]
    return Evaluation(
        now_ms=now_ms,
        notable=[*lost.values(), *(reading for view in found for reading in _notable(view))],
        keys_ok=lambda: _keys(found),
        make_ok=lambda rule, key: (
            replace(lost[rule], labels=dict(key)) if rule in lost else _reading(by_rule.get(rule), key)
        ),
        seconds=time.perf_counter() - began,
        reads=len(reads.grids),
        problems=problems,
    )


def _lost(stored: StoredRule, now_ms: int) -> Reading:
    """Return what is said of a rule that this version cannot read: of the whole rule, so without labels."""
    return Reading(
        rule=stored.rule.name, rule_version=stored.version, labels={}, status=Status.ERROR,
        window_from_ms=now_ms, window_to_ms=now_ms, cause=Cause.NO_DATA,
        reason=f"cannot be read by this version, and none of its alerts ends: {stored.unreadable}",
    )  # fmt: skip


def _notable(view: RuleView) -> Iterator[Reading]:
    """Yield breaches, errors, and, where the rule wants to hear of it, what is not known."""
    yield from (_error(view, {"server": server}, text) for server, text in view.errors.items())
    wants_unknown = view.stored.rule.no_data is NoData.ALERT
    if isinstance(view.view, LeafView) and not wants_unknown and not view.view.is_breaching:
        return  # of many rules nearly all are fine
    codes = view.view.codes[:, -1]
    wanted = codes == BREACH
    if wants_unknown:
        wanted |= (codes >= UNKNOWN) & (codes != GONE) & (codes != ABSENT)
    for row in np.flatnonzero(wanted).tolist():
        yield view.reading(row)


def _keys(found: Sequence[RuleView]) -> Iterator[tuple[str, LabelKey]]:
    for view in found:
        wanted = view.view.codes[:, -1] != BREACH
        for row in view.rows():
            if wanted[row]:
                yield view.stored.rule.name, view.view.keys[row]


def _reading(view: RuleView | None, key: LabelKey) -> Reading | None:
    """Return the reading of one label set; None = there is no such series now."""
    if view is None:
        return None
    labels = dict(key)
    failed = view.errors.get(labels.get("server", ""))
    if failed is not None:
        return _error(view, labels, failed)
    row = _row(view, key)
    if row is None or view.view.codes[row, -1] == ABSENT:
        return None
    return view.reading(row)


def _row(view: RuleView, key: LabelKey) -> int | None:
    places = view.view.group.places if isinstance(view.view, LeafView) else view.places
    return places.get(key)


def _error(view: RuleView, labels: dict[str, str], text: str) -> Reading:
    now_ms = int(view.frame.times_ms[-1])
    return Reading(
        rule=view.stored.rule.name, rule_version=view.stored.version, labels=labels, status=Status.ERROR,
        window_from_ms=now_ms, window_to_ms=now_ms, cause=Cause.NO_DATA, reason=text,
    )  # fmt: skip
