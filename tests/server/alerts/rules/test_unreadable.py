"""A rule in the store that this version cannot read: nothing of it ends, and it is said."""

from __future__ import annotations

import orjson
from sqlalchemy import Engine, select, update
from tests.server.alerts.rules.support import attempt
from tests.server.alerts.test_running import Process
from tests.server.seed import Feed

from specscope_server.alerts.rules import storing
from specscope_server.alerts.rules.schema import Origin, Rule
from specscope_server.models import AlertRule, AlertState
from specscope_server.store.ingest import IngestWriter

BODY = {
    "name": "mine", "title": "Down", "severity": "critical", "inhibits": [{"target": {"rule": "other"}}],
    "condition": {"kind": "threshold", "signal": "sources.up", "window": "2m", "below": 0.5},
}  # fmt: skip


def states(store: Engine, rule: str) -> dict[str, str]:
    query = select(AlertState.labels, AlertState.state).where(AlertState.rule == rule)
    with store.connect() as connection:
        return {row.labels: row.state for row in connection.execute(query)}


def test_nothing_ends_and_the_rule_is_named(sqlite_engine: Engine) -> None:
    process = Process(sqlite_engine)
    process.alerting.prepare()
    with storing.writing(sqlite_engine) as session:
        storing.add(session, Rule.model_validate(BODY), Origin.API, "ana", process.now_ms)
    feed = Feed(IngestWriter(sqlite_engine, lambda: process.now_ms))
    feed.launch(time_ms=process.now_ms - 100_000)

    def turn(times: int) -> None:
        for _ in range(times):
            attempt(feed, process.now_ms + 10_000, is_up=False)
            process.turn()

    def write(signal: str, **more: object) -> None:
        body = {**BODY, **more, "condition": {**BODY["condition"], "signal": signal}}  # type: ignore[dict-item]
        with sqlite_engine.begin() as connection:
            connection.execute(
                update(AlertRule).where(AlertRule.name == "mine").values(body=orjson.dumps(body).decode())
            )

    turn(3)
    [(labels, state)] = states(sqlite_engine, "mine").items()
    assert state == "firing"
    write("sources.up_in_another_version", unheard_of=1)
    turn(20)
    assert process.alerting.last is not None
    assert any("'mine'" in text and "cannot be read" in text for text in process.alerting.last.problems)
    assert states(sqlite_engine, "mine") == {labels: "firing", "{}": "error"}
    shown = {item["state"]: item for item in process.web.api("/alerts")["alerts"] if item["rule"] == "mine"}
    assert set(shown) == {"firing", "error"}
    assert "cannot be read by this version" in shown["error"]["reason"]
    assert process.web.get("/alerts").status_code == 200
    with storing.writing(sqlite_engine) as session:
        [kept] = [each for each in storing.rules_in_force(session) if each.rule.name == "mine"]
    assert kept.rule.severity == "critical"
    assert kept.rule.inhibits, "what it mutes stays muted"
    write("sources.up")
    turn(3)
    assert states(sqlite_engine, "mine") == {labels: "firing", "{}": "normal"}
    assert not process.alerting.last.problems
