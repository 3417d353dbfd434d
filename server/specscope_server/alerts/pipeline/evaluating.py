"""Evaluate the rules and move the states: readings → changes, written in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import structlog
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from specscope_server.alerts.card.build import card_of, ended, with_reading, with_rule
from specscope_server.alerts.card.surroundings import surroundings_of
from specscope_server.alerts.channels.notification import Card
from specscope_server.alerts.numbers import moment
from specscope_server.alerts.pipeline import rows
from specscope_server.alerts.pipeline.rows import Change, Kept
from specscope_server.alerts.rules.durations import write_duration
from specscope_server.alerts.rules.evaluation import Evaluation
from specscope_server.alerts.rules.holding import Holds, moves
from specscope_server.alerts.rules.reading import LabelKey, Reading, Status
from specscope_server.alerts.rules.schema import Rule, StoredRule
from specscope_server.alerts.states.identity import fingerprint_of
from specscope_server.alerts.states.machine import (
    ON,
    WAITING,
    AlertState,
    State,
    Timing,
    Transition,
    advance,
    held_ms,
    retire,
)

OFF = "the rule was turned off or removed"
RECORDED = frozenset({*WAITING, State.RESOLVED, State.ERROR})
"""A change that touches none of these says nothing about an alert, and is not part of the history."""
log = structlog.get_logger(__name__)

Key: TypeAlias = tuple[str, LabelKey]
ReadRules: TypeAlias = Callable[[Session], Sequence[StoredRule]]
Evaluate: TypeAlias = Callable[[Session, Sequence[StoredRule], int, Holds], Evaluation]


@dataclass(frozen=True, slots=True)
class Step:
    """How often rules are evaluated, and where links lead."""

    interval_ms: int = 15_000
    public_url: str = ""

    def timing(self, rule: Rule) -> Timing:
        """Return the timing of a rule: a series is missing when three evaluations in a row lack it."""
        return Timing(
            for_ms=rule.for_,
            keep_firing_ms=rule.keep_firing_for,
            missing_ms=2 * self.interval_ms,
            gap_ms=max(300_000, 5 * self.interval_ms),
            no_data=rule.no_data,
        )


@dataclass(slots=True)
class Evaluated:
    """What one evaluation did."""

    now_ms: int
    rules: int = 0
    seconds: float = 0.0
    written: list[Change] = field(default_factory=list)
    lost: int = 0
    """Changes that another writer was quicker with."""
    problems: list[str] = field(default_factory=list)

    @property
    def transitions(self) -> list[Transition]:
        """Return what changed."""
        return [change.transition for change in self.written if change.transition is not None]


def evaluate_once(
    engine: Engine, read_rules: ReadRules, evaluate: Evaluate, now_ms: int, step: Step
) -> Evaluated:
    """Evaluate all rules at ``now_ms`` and write what follows."""
    with Session(engine) as session:
        stored = {entry.rule.name: entry for entry in read_rules(session) if entry.enabled}
        known = rows.active(session.connection())
        found = evaluate(session, list(stored.values()), now_ms, _holds(stored, known, now_ms))
        readings = {reading.key: reading for reading in found.readings([kept.key for kept in known])}
        known += _more(session, known, readings)
        changes = list(_changes(session, stored, known, readings, now_ms, step))
    written = rows.write(engine, changes) if changes else []
    for transition in (change.transition for change in written):
        if transition is not None and transition.to_state in (State.FIRING, State.RESOLVED):
            log.info("alert", alert_id=transition.alert_id, state=transition.to_state.value)
    return Evaluated(
        now_ms, len(stored), found.seconds, written, len(changes) - len(written), list(found.problems)
    )


def _holds(stored: Mapping[str, StoredRule], known: Sequence[Kept], now_ms: int) -> Holds:
    """Return as of when the baselines of alerts that are pending or fire stand still."""
    found: dict[str, dict[LabelKey, int]] = {}
    for kept in known:
        rule = stored.get(kept.rule)
        at_ms = None if rule is None else held_ms(kept.state, now_ms, rule.rule.baseline_hold)
        if at_ms is not None:
            found.setdefault(kept.rule, {})[kept.key[1]] = at_ms
    return found


def _more(session: Session, known: Sequence[Kept], readings: Mapping[Key, Reading]) -> list[Kept]:
    """Return the rows of series that are read now and were normal or resolved before."""
    have = {kept.key for kept in known}
    wanted = [fingerprint_of(rule, dict(labels)) for rule, labels in readings if (rule, labels) not in have]
    return rows.by_fingerprints(session.connection(), wanted)


def _changes(
    session: Session, stored: Mapping[str, StoredRule], known: Sequence[Kept],
    readings: Mapping[Key, Reading], now_ms: int, step: Step,
) -> Iterator[Change]:  # fmt: skip
    kept_by_key = {kept.key: kept for kept in known}
    failed = {reading.rule for reading in readings.values() if _fails_whole(reading)}
    for key in dict.fromkeys([*kept_by_key, *readings]):
        rule = stored.get(key[0])
        kept = kept_by_key.get(key)
        reading = readings.get(key)
        if rule is not None:
            change = _advanced(session, rule, kept, reading, key, now_ms, step, is_failed=key[0] in failed)
        elif kept is not None:
            change = _retired(kept, now_ms)
        else:
            continue
        if change is not None:
            yield change


def _fails_whole(reading: Reading) -> bool:
    """Tell whether nothing at all is known of the rule, so that series that are not read are not missing."""
    return reading.status is Status.ERROR and "server" not in reading.labels


def _advanced(
    session: Session, stored: StoredRule, kept: Kept | None, reading: Reading | None, key: Key, now_ms: int,
    step: Step, *, is_failed: bool,
) -> Change | None:  # fmt: skip
    labels = dict(key[1])
    before = AlertState(fingerprint_of(key[0], labels)) if kept is None else kept.state
    status = Status.ERROR if reading is None and is_failed else None if reading is None else reading.status
    reason = "the rule could not be evaluated" if reading is None else reading.reason
    if status is Status.OK:
        reason += _moved_on(stored.rule, before, now_ms)
    after, transition = advance(before, status, now_ms, step.timing(stored.rule), reason)
    if transition is None and after.state not in WAITING:
        return None
    card = _card(session, stored, kept, after, reading, transition, step)
    return Change(
        after, key[0], stored.version, labels, stored.rule.severity.value,
        None if kept is None else kept.revision, reading, card, _recorded(transition),
    )  # fmt: skip


def _moved_on(rule: Rule, before: AlertState, now_ms: int) -> str:
    """Return what to add where an alert ends whose baseline does not stand still any more; '' = nothing."""
    is_held = held_ms(before, now_ms, rule.baseline_hold) is not None
    if before.breach_since_ms is None or is_held or not moves(rule.condition):
        return ""
    hold = write_duration(rule.baseline_hold)
    return (
        f"; this began {moment(before.breach_since_ms)}, and the baseline stood still for {hold} "
        "(baseline_hold): what lasts longer counts as normal now, so this need not mean that it is over"
    )


def _card(
    session: Session, stored: StoredRule, kept: Kept | None, after: AlertState, reading: Reading | None,
    transition: Transition | None, step: Step,
) -> Card | None:  # fmt: skip
    """Return the card of the fire as it is now; None for an alert that never fired."""
    rule = stored.rule
    card = None if kept is None else kept.card
    if kept is not None and card is not None and _is_outdated(kept, card, stored):
        card = with_rule(card, rule, kept.labels)
    if transition is not None and transition.to_state is State.RESOLVED:
        return None if card is None else ended(card, transition.at_ms, transition.reason)
    is_same = card is not None and card.alert_id == after.alert_id
    if after.state not in ON or reading is None:
        return card
    if not is_same:
        since_ms = after.fired_ms or reading.window_to_ms
        around = surroundings_of(
            session, reading.labels.get("server", ""), since_ms - rule.for_, reading.window_to_ms
        )
        return card_of(rule, reading, after, around, step.public_url)
    return with_reading(card, reading) if reading.status is Status.BREACH and card is not None else card


def _is_outdated(kept: Kept, card: Card, stored: StoredRule) -> bool:
    """Tell whether the rule was changed since the card of a fire was made."""
    is_changed = kept.rule_version != stored.version or card.severity != stored.rule.severity.value
    return is_changed and kept.state.state in ON


def _retired(kept: Kept, now_ms: int) -> Change | None:
    after, transition = retire(kept.state, now_ms, OFF)
    if transition is None:
        return None
    card = kept.card
    if card is not None and transition.to_state is State.RESOLVED:
        card = ended(card, now_ms, OFF)
    severity = "info" if card is None else card.severity
    return Change(
        after, kept.rule, None, kept.labels, severity, kept.revision, None, card, _recorded(transition)
    )


def _recorded(transition: Transition | None) -> Transition | None:
    if transition is None or not {transition.from_state, transition.to_state} & RECORDED:
        return None
    return transition
