"""Rules in the store: where they come from, each version of them, and who changed what.

The pack and the alerts' file are copied into the table when the server starts, so that everything else reads
one place. A pack rule that somebody changed is left as it is by an upgrade until it is reset; one of the file
always follows the file. Versions only grow: a rule that is removed and comes back goes on counting.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import orjson
import structlog
from sqlalchemy import Engine, delete, func, select, update
from sqlalchemy.orm import Session

from specscope_server.alerts.auditing import note
from specscope_server.alerts.rules.packed import pack
from specscope_server.alerts.rules.problems import RuleError, read_rule
from specscope_server.alerts.rules.schema import Origin, Rule, StoredRule
from specscope_server.alerts.rules.unreadable import readable_part
from specscope_server.models import AlertRule, AlertRuleVersion
from specscope_server.store.engine import write_transaction

PACK_ACTOR, FILE_ACTOR = "pack", "file"
MAX_PARSED = 50_000

_parsed: dict[tuple[str, str], tuple[Rule, str]] = {}
"""(name, body) → rule, why it is unreadable: bodies change rarely and are read at every evaluation."""
_log = structlog.get_logger()


@contextmanager
def writing(engine: Engine) -> Iterator[Session]:
    """One transaction that writes: committed at the end of the block, rolled back on an error."""
    with write_transaction(engine) as connection, Session(connection) as session:
        yield session
        session.flush()


def rules_in_force(session: Session) -> list[StoredRule]:
    """Return every rule of the store, by name; ones that another version wrote and nobody can read here
    say so.
    """
    return [stored_of(row) for row in session.scalars(select(AlertRule).order_by(AlertRule.name))]


def stored_of(row: AlertRule) -> StoredRule:
    """Return a row as a rule, also when its body cannot be read."""
    key = (row.name, row.body)
    if key not in _parsed:
        if len(_parsed) >= MAX_PARSED:
            _parsed.clear()
        _parsed[key] = _read(row)
    rule, unreadable = _parsed[key]
    return StoredRule.model_construct(
        rule=rule, version=row.version, origin=Origin(row.origin), enabled=row.enabled, unreadable=unreadable
    )


def _read(row: AlertRule) -> tuple[Rule, str]:
    try:
        body = orjson.loads(row.body)
    except ValueError:
        body, reason = None, "it is no JSON"
    else:
        try:
            return read_rule(body), ""
        except RuleError as error:
            reason = str(error)[:500]
    _log.error("a stored rule cannot be read", rule=row.name, problems=reason)
    return readable_part(row.name, body), reason


def sync(engine: Engine, file_rules: Sequence[Rule] | None, now_ms: int) -> list[str]:
    """Bring pack and file into the store; ``file_rules`` None = no file is used, its rules go. Return the
    names of those that are gone, whose alerts end.
    """
    wanted = {rule.name: (rule, Origin.PACK) for rule in pack().values()}
    wanted |= {rule.name: (rule, Origin.FILE) for rule in file_rules or ()}
    with writing(engine) as session:
        rows = {row.name: row for row in session.scalars(select(AlertRule))}
        changed = overridden(session, rows)
        for name, (rule, origin) in wanted.items():
            _bring(session, rows.get(name), rule, origin, name in changed, now_ms)
        gone = [name for name, row in rows.items() if row.origin != Origin.API and name not in wanted]
        for name in gone:
            _audit(session, now_ms, rows[name].origin, "rule.remove", name, rows[name].body, None)
            session.delete(rows[name])
    return sorted(gone)


def _bring(
    session: Session, row: AlertRule | None, rule: Rule, origin: Origin, is_changed: bool, now_ms: int
) -> None:
    actor = PACK_ACTOR if origin is Origin.PACK else FILE_ACTOR
    if row is None:
        add(session, rule, origin, actor, now_ms)
        return
    if row.origin == Origin.API and origin is Origin.PACK:
        return  # somebody's own rule had the name before the pack did
    stays = origin is Origin.PACK and row.origin == Origin.PACK and is_changed
    if stays or (row.body == body_of(rule) and row.origin == origin):
        if origin is Origin.FILE:
            row.enabled = rule.enabled
        return
    enabled = row.enabled if origin is Origin.PACK and row.origin == Origin.PACK else rule.enabled
    row.origin = origin
    put(session, row, rule, actor, now_ms)
    row.enabled = enabled


def overridden(session: Session, names: Iterable[str]) -> set[str]:
    """Return those of the rules whose newest version a person made."""
    newest = (
        select(AlertRuleVersion.name, func.max(AlertRuleVersion.version).label("version"))
        .group_by(AlertRuleVersion.name)
        .subquery()
    )
    query = select(AlertRuleVersion.name, AlertRuleVersion.actor).join(
        newest, (newest.c.name == AlertRuleVersion.name) & (newest.c.version == AlertRuleVersion.version)
    )
    wanted = set(names)
    return {
        row.name
        for row in session.execute(query)
        if row.name in wanted and row.actor not in (PACK_ACTOR, FILE_ACTOR)
    }


def is_overridden(session: Session, name: str) -> bool:
    """Tell whether a person changed a pack rule."""
    return name in overridden(session, [name])


def body_of(rule: Rule) -> str:
    """Return a rule as it is stored: JSON with sorted keys, defaults left out."""
    return orjson.dumps(rule.document(), option=orjson.OPT_SORT_KEYS).decode()


def add(session: Session, rule: Rule, origin: Origin, actor: str, now_ms: int) -> AlertRule:
    """Insert a rule with its first version (or the next, where the name was used before)."""
    last = session.scalar(
        select(func.max(AlertRuleVersion.version)).where(AlertRuleVersion.name == rule.name)
    )
    row = AlertRule(
        name=rule.name, origin=origin, enabled=rule.enabled, version=(last or 0) + 1, body=body_of(rule),
        updated_ms=now_ms,
    )  # fmt: skip
    session.add(row)
    _note(session, row, actor, "rule.create", None)
    return row


def put(session: Session, row: AlertRule, rule: Rule, actor: str, now_ms: int) -> None:
    """Write another body as the next version."""
    before = row.body
    last = session.scalar(select(func.max(AlertRuleVersion.version)).where(AlertRuleVersion.name == row.name))
    row.version, row.body, row.updated_ms = max(last or 0, row.version) + 1, body_of(rule), now_ms
    row.enabled = rule.enabled
    _note(session, row, actor, "rule.update", before)


def take(session: Session, row: AlertRule, version: int) -> bool:
    """Lock a row by counting its version up and down again: False when it is not that version any more."""
    statement = (
        update(AlertRule).where(AlertRule.id == row.id, AlertRule.version == version).values(version=version)
    )
    return bool(session.execute(statement).rowcount)  # type: ignore[attr-defined]


def switch(session: Session, row: AlertRule, *, enabled: bool, actor: str, now_ms: int) -> None:
    """Turn a rule on or off; that is no new version."""
    row.enabled, row.updated_ms = enabled, now_ms
    action = "rule.enable" if enabled else "rule.disable"
    _audit(session, now_ms, actor, action, row.name, None, None)


def remove(session: Session, row: AlertRule, actor: str, now_ms: int) -> None:
    """Delete a rule; its versions stay."""
    _audit(session, now_ms, actor, "rule.delete", row.name, row.body, None)
    session.execute(delete(AlertRule).where(AlertRule.id == row.id))


def versions(session: Session, name: str) -> list[AlertRuleVersion]:
    """Return every version of a rule, the newest first."""
    query = select(AlertRuleVersion).where(AlertRuleVersion.name == name)
    return list(session.scalars(query.order_by(AlertRuleVersion.version.desc())))


def _note(session: Session, row: AlertRule, actor: str, action: str, before: str | None) -> None:
    session.add(
        AlertRuleVersion(
            name=row.name, version=row.version, body=row.body, made_ms=row.updated_ms, actor=actor
        )
    )
    _audit(session, row.updated_ms, actor, action, row.name, before, row.body)


def _audit(
    session: Session, now_ms: int, actor: str, action: str, target: str, before: str | None, after: str | None
) -> None:
    texts = (None if text is None else orjson.loads(text) for text in (before, after))
    note(session.connection(), now_ms, actor, action, target, *texts)
