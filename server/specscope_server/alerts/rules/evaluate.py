"""All rules at one instant."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from specscope_server.alerts.rules.evaluation import Evaluation
from specscope_server.alerts.rules.holding import Holds, held_views
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
NOTHING_HELD: Holds = {}
Key: TypeAlias = tuple[str, LabelKey]


def watched(session: Session) -> tuple[Target, ...]:
    """Return every watched server by name; collectors report of themselves and are none."""
    query = select(Server.id, Server.name).where(~is_collector()).order_by(Server.name)
    return tuple(Target(row.id, row.name) for row in session.execute(query))


def evaluate(
    session: Session, state: AppState, rules: Sequence[StoredRule], now_ms: int, holds: Holds = NOTHING_HELD
) -> Evaluation:
    """Return what enabled rules say at ``now_ms``. Never raises for one rule: its readings are errors.

    ``holds``: alerts that are pending or fire, and as of when their baselines stand still.
    """
    began = time.perf_counter()
    frame = Frame(
        watched(session), np.array([now_ms], dtype=np.int64), INSTANT_STEP_MS, now_ms, state
    )  # fmt: skip
    lost = {each.rule.name: _lost(each, now_ms) for each in rules if each.enabled and each.unreadable}
    readable = [stored for stored in rules if stored.enabled and not stored.unreadable]
    with one_pass(session, [server.id for server in frame.servers], now_ms):
        found, reads = views(session, frame, readable)
        held = {(view.stored.rule.name, key): view for key, view in held_views(found, reads, holds)}
    by_rule = {view.stored.rule.name: view for view in found}
    problems = sorted(set(reads.problems))
    problems += [f"rule {name!r} {reading.reason}" for name, reading in lost.items()]
    return Evaluation(
        now_ms=now_ms,
        notable=[*lost.values(), *_all_notable(found, held)],
        keys_ok=lambda: _all_keys(found, held),
        make_ok=lambda rule, key: (
            replace(lost[rule], labels=dict(key))
            if rule in lost
            else _reading(held.get((rule, key), by_rule.get(rule)), key)
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


def _all_notable(found: Sequence[RuleView], held: Mapping[Key, RuleView]) -> Iterator[Reading]:
    """Yield the notable readings of all rules; of alerts whose baselines stand still, those alone."""
    for view in found:
        yield from (reading for reading in _notable(view) if reading.key not in held)
    for key, view in held.items():
        yield from (reading for reading in _notable(view) if reading.key == key)


def _all_keys(found: Sequence[RuleView], held: Mapping[Key, RuleView]) -> Iterator[Key]:
    yield from (key for key in _keys(found) if key not in held)
    yield from (key for view in held.values() for key in _keys([view]))


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


def _keys(found: Sequence[RuleView]) -> Iterator[Key]:
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
