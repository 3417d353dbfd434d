"""List, make, change, switch, check and replay rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

import orjson
from sqlalchemy import Engine, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from specscope_server.alerts.rules import storing
from specscope_server.alerts.rules.backtest import Backtest, Fire, backtest
from specscope_server.alerts.rules.evaluate import evaluate, watched
from specscope_server.alerts.rules.holding import Holds
from specscope_server.alerts.rules.kinds import kinds, schema_of
from specscope_server.alerts.rules.packed import pack
from specscope_server.alerts.rules.problems import Problem, RuleError, read_rule
from specscope_server.alerts.rules.reading import Reading, label_key
from specscope_server.alerts.rules.schema import Origin, Rule, StoredRule
from specscope_server.alerts.rules.schemas import (
    BacktestAnswer,
    BacktestQuestion,
    KindItem,
    KindList,
    Preview,
    ProblemItem,
    RuleItem,
    RuleList,
    SignalItem,
    SignalList,
    Validation,
    VersionItem,
    VersionList,
)
from specscope_server.alerts.rules.signals import signals
from specscope_server.alerts.states.machine import WAITING
from specscope_server.kit.errors import Conflict, InvalidInput, NotFound
from specscope_server.kit.names import did_you_mean
from specscope_server.kit.signal import Target
from specscope_server.kit.timeparse import parse_instant, to_iso
from specscope_server.kit.web.state import AppState
from specscope_server.models import AlertRule, AlertState
from specscope_server.store.lookup import server_by_name

MAX_PREVIEW = 200
MAX_RANGE_MS = 92 * 86_400_000
DEFAULT_INTERVAL_MS = 15_000


def list_rules(session: Session) -> RuleList:
    """Return every rule by name."""
    rows = list(session.scalars(select(AlertRule).order_by(AlertRule.name)))
    changed = storing.overridden(session, [row.name for row in rows])
    return RuleList(rules=[_item(row, is_changed=row.name in changed) for row in rows])


def get_rule(session: Session, name: str) -> RuleItem:
    """Return one rule; raises `NotFound`."""
    row = find(session, name)
    return _item(row, is_changed=storing.is_overridden(session, name))


def find(session: Session, name: str) -> AlertRule:
    """Return a rule's row; raises `NotFound` with the nearest name."""
    row = session.scalar(select(AlertRule).where(AlertRule.name == name))
    if row is None:
        hint = did_you_mean(name, session.scalars(select(AlertRule.name)).all())
        raise NotFound(f"there is no rule {name[:80]!r}.{hint} Rules are listed at /api/v1/alerts/rules")
    return row


def _item(row: AlertRule, *, is_changed: bool) -> RuleItem:
    body = orjson.loads(row.body)
    return RuleItem.model_validate(
        {
            "name": row.name, "title": body.get("title", ""), "category": body.get("category", "other"),
            "severity": body.get("severity", "warning"), "origin": row.origin, "enabled": row.enabled,
            "version": row.version, "is_overridden": row.origin == Origin.PACK and is_changed,
            "updated": to_iso(row.updated_ms), "rule": body,
        }
    )  # fmt: skip


def checked(body: Any) -> Rule:
    """Return the rule that a body means; raises `InvalidInput` with every problem."""
    try:
        return read_rule(body)
    except RuleError as error:
        raise InvalidInput(str(error), [_problem(problem) for problem in error.problems]) from None


def _problem(problem: Problem) -> Mapping[str, str]:
    return {"location": problem.field, "reason": problem.reason, "input": problem.rule}


def create(engine: Engine, body: Any, actor: str, now_ms: int) -> None:
    """Make a rule; raises `InvalidInput` and `Conflict`."""
    rule = checked(body)
    taken = f"there is a rule {rule.name!r} already; choose another name, or change that one"
    try:
        with storing.writing(engine) as session:
            if session.scalar(select(AlertRule.id).where(AlertRule.name == rule.name)) is not None:
                raise Conflict(taken)
            storing.add(session, rule, Origin.API, actor, now_ms)
    except IntegrityError:
        raise Conflict(taken) from None


def change(engine: Engine, name: str, version: int, body: Any, actor: str, now_ms: int) -> None:
    """Write the next version of a rule; raises `InvalidInput`, `NotFound` and `Conflict`."""
    rule = checked(body)
    if rule.name != name:
        raise InvalidInput(f"the rule's name is {rule.name!r}, not {name!r}; names do not change")
    with storing.writing(engine) as session:
        row = _writable(session, name)
        _claim(session, row, version)
        storing.put(session, row, rule, actor, now_ms)


def reset(engine: Engine, name: str, version: int, actor: str, now_ms: int) -> None:
    """Give a pack rule its shipped body again; raises `NotFound`, `InvalidInput` and `Conflict`."""
    with storing.writing(engine) as session:
        row = find(session, name)
        if row.origin != Origin.PACK or name not in pack():
            raise InvalidInput(f"{name!r} is not of the pack; nothing is there to go back to")
        _claim(session, row, version)
        storing.put(session, row, pack()[name], storing.PACK_ACTOR, now_ms)
        storing.switch(session, row, enabled=pack()[name].enabled, actor=actor, now_ms=now_ms)


def delete(engine: Engine, name: str, version: int, actor: str, now_ms: int) -> None:
    """Remove a rule; raises `NotFound`, `InvalidInput` and `Conflict`."""
    with storing.writing(engine) as session:
        row = _writable(session, name)
        if row.origin == Origin.PACK:
            raise InvalidInput(
                f"{name!r} is of the pack, which comes back with each start; disable it instead "
                f"(POST /api/v1/alerts/rules/{name}/disable)"
            )
        _claim(session, row, version)
        storing.remove(session, row, actor, now_ms)


def switch(engine: Engine, name: str, actor: str, now_ms: int, *, enabled: bool) -> None:
    """Turn a rule on or off; raises `NotFound` and `InvalidInput`."""
    with storing.writing(engine) as session:
        storing.switch(session, _writable(session, name), enabled=enabled, actor=actor, now_ms=now_ms)


def _writable(session: Session, name: str) -> AlertRule:
    row = find(session, name)
    if row.origin == Origin.FILE:
        raise InvalidInput(
            f"{name!r} comes from the alerts' file; change it there and start the server again"
        )
    return row


def _claim(session: Session, row: AlertRule, version: int) -> None:
    if row.version != version or not storing.take(session, row, version):
        raise Conflict(
            f"rule {row.name!r} is at version {row.version}, and you changed version {version}; read it again"
        )


def versions(session: Session, name: str) -> VersionList:
    """Return every version of a rule, of removed ones too; raises `NotFound`."""
    found = storing.versions(session, name)
    if not found:
        find(session, name)
    return VersionList(
        name=name,
        versions=[
            VersionItem(
                version=row.version, made=to_iso(row.made_ms), actor=row.actor, rule=orjson.loads(row.body)
            )
            for row in found
        ],
    )  # fmt: skip


def validate(session: Session, state: AppState, body: Any) -> Validation:
    """Return what is wrong with a rule, and what it says now."""
    try:
        rule = read_rule(body)
    except RuleError as error:
        problems = [ProblemItem(field=one.field, reason=one.reason) for one in error.problems]
        return Validation(is_valid=False, problems=problems, rule=None, now=[], is_limited=False)
    stored = StoredRule(rule=rule, version=0, origin=Origin.API, enabled=True)
    now_ms = state.clock()
    found = list(evaluate(session, state, [stored], now_ms, holds_of(session, rule, now_ms)))
    shown = [_preview(reading) for reading in found[:MAX_PREVIEW]]
    return Validation(
        is_valid=True, problems=[], rule=rule.document(), now=shown, is_limited=len(found) > MAX_PREVIEW
    )


def holds_of(session: Session, rule: Rule, now_ms: int) -> Holds:
    """Return as of when the baselines of this rule's alerts stand still, as live evaluation has it."""
    query = select(AlertState.labels, AlertState.breach_since_ms).where(
        AlertState.rule == rule.name, AlertState.state.in_([state.value for state in WAITING]),
        AlertState.breach_since_ms.between(now_ms - rule.baseline_hold + 1, now_ms),
    )  # fmt: skip
    found = {label_key(orjson.loads(row.labels)): row.breach_since_ms for row in session.execute(query)}
    return {rule.name: found}


def _preview(reading: Reading) -> Preview:
    return Preview(
        labels=dict(reading.labels), status=reading.status, cause=reading.cause, value=reading.value,
        lower=reading.lower, upper=reading.upper, n=reading.n, unit=reading.unit, n_unit=reading.n_unit,
        reason=reading.reason,
    )  # fmt: skip


def replay(
    session: Session, state: AppState, asked: BacktestQuestion, interval_ms: int = DEFAULT_INTERVAL_MS
) -> BacktestAnswer:
    """Return when a rule would have fired; raises `InvalidInput` and `NotFound`."""
    if (asked.rule is None) == (asked.name is None):
        raise InvalidInput("give exactly one of rule and name")
    body = asked.rule if asked.rule is not None else orjson.loads(find(session, asked.name or "").body)
    now_ms = state.clock()
    from_ms, to_ms = parse_instant(asked.from_, now_ms, "from"), parse_instant(asked.to, now_ms, "to")
    if not from_ms < to_ms <= from_ms + MAX_RANGE_MS:
        raise InvalidInput("from must lie before to, and at most 92 days before")
    servers = None
    if asked.server is not None:
        row = server_by_name(session, asked.server)
        servers = (Target(row.id, row.name),)
    rule = checked(body)
    chosen = servers or watched(session)
    found = backtest(session, state, rule, from_ms, min(to_ms, now_ms), interval_ms, chosen)
    return _answer(rule, found)


def _answer(rule: Rule, found: Backtest) -> BacktestAnswer:
    return BacktestAnswer.model_validate(
        {
            "words": _words(found), "from": to_iso(found.from_ms), "to": to_iso(found.to_ms),
            "step_seconds": found.step_ms / 1_000, "instants": found.instants, "fired": len(found.fires),
            "fires": [_fire(rule, fire, found.to_ms) for fire in found.fires],
            "pending_only": found.pending_only, "counts": found.counts,
            "covered_from": to_iso(found.covered_from_ms), "is_limited": found.is_limited,
            "problems": found.problems,
        }
    )  # fmt: skip


def _words(found: Backtest) -> str:
    length = _length(found.to_ms - max(found.covered_from_ms, found.from_ms))
    times = len(found.fires)
    if not found.counts.get("ok") and not found.counts.get("breach"):
        return f"In these {length} there was nothing to judge"
    if not times:
        return f"It would not have fired in these {length}"
    return f"It would have fired {times} time{'s' * (times != 1)} in these {length}"


def _length(span_ms: int) -> str:
    for unit, size_ms in (("days", 86_400_000), ("hours", 3_600_000)):
        if span_ms >= 2 * size_ms:
            return f"{span_ms / size_ms:.0f} {unit}"
    return f"{max(span_ms / 60_000, 1):.0f} minutes"


def _fire(rule: Rule, fire: Fire, end_ms: int) -> dict[str, Any]:
    peak = fire.peak
    page = rule.page or str(peak.evidence.get("page") or "/")
    until = to_iso(min((fire.resolved_ms or end_ms) + 600_000, end_ms))
    since = to_iso(fire.pending_ms - max(peak.window_to_ms - peak.window_from_ms, 600_000))
    server = fire.labels.get("server", "")
    return {
        "labels": fire.labels, "pending": to_iso(fire.pending_ms), "from": to_iso(fire.fired_ms),
        "to": None if fire.resolved_ms is None else to_iso(fire.resolved_ms), "peak": peak.value,
        "peak_at": to_iso(peak.window_to_ms), "lower": peak.lower, "upper": peak.upper, "n": peak.n,
        "unit": peak.unit, "n_unit": peak.n_unit, "reason": peak.reason,
        "page": f"{page}?{_query({'server': server, 'from': since, 'to': until})}",
    }  # fmt: skip


def _query(values: Mapping[str, str]) -> str:
    return urlencode({name: value for name, value in values.items() if value})


def list_signals(search: str | None) -> SignalList:
    """Return what can be watched."""
    found: Sequence[str] = sorted(name for name in signals() if not search or search.lower() in name.lower())
    return SignalList(
        signals=[
            SignalItem(
                name=one.name, unit=one.unit, meaning=one.meaning, labels=list(one.labels), n_unit=one.n_unit,
                has_interval=one.has_interval,
            )
            for one in map(signals().__getitem__, found)
        ]
    )  # fmt: skip


def list_kinds() -> KindList:
    """Return the kinds of conditions with their fields."""
    return KindList(
        kinds=[
            KindItem(
                kind=name, meaning=module.Condition.meaning,
                fields=schema_of(name)["properties"],
            )
            for name, module in kinds().items()
        ]
    )  # fmt: skip
