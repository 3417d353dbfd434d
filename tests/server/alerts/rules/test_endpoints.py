"""Rules over REST: versions, conflicts, what may not be changed, and messages that say what to write."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Engine, select
from sqlalchemy.orm import Session
from tests.server.client import Web
from tests.server.seed import NOW, SCRAPE_MS, Feed

from specscope_server.alerts.rules.evaluate import evaluate
from specscope_server.alerts.rules.files import read_rules
from specscope_server.alerts.rules.packed import pack
from specscope_server.alerts.rules.storing import rules_in_force, sync
from specscope_server.app import create_app
from specscope_server.models import Audit
from specscope_server.settings import Settings
from specscope_server.store.ingest import IngestWriter

BODY: dict[str, Any] = {
    "name": "low", "title": "Acceptance is low",
    "condition": {"kind": "threshold", "signal": "acceptance.accept_length", "below": 1.8, "on": "interval"},
    "for": "10m",
}  # fmt: skip
FILE = """
rules:
  - name: from-file
    title: Of a file
    condition: {kind: threshold, signal: "metric:requests.queued", above: 10}
"""


@pytest.fixture
def web(store_engine: Engine) -> Web:
    app = create_app(Settings(), engine=store_engine, clock=lambda: NOW)
    sync(store_engine, read_rules(FILE, "alerts.yaml").rules, NOW)
    return Web(app)


def call(web: Web, method: str, path: str, expect: int = 200, **options: Any) -> Any:
    answer = web.request(method, f"/api/v1/alerts/{path}", **options)
    assert answer.status_code == expect, answer.text
    return answer.json()


def test_a_rule_is_made_changed_switched_and_removed(web: Web, store_engine: Engine) -> None:
    made = call(web, "POST", "rules", json={"rule": BODY})
    assert (made["origin"], made["version"], made["enabled"]) == ("api", 1, True)
    assert made["rule"] == BODY
    call(web, "POST", "rules", 409, json={"rule": BODY})
    changed = call(web, "PUT", "rules/low", json={"version": 1, "rule": {**BODY, "for": "5m"}})
    assert changed["version"] == 2
    late = call(web, "PUT", "rules/low", 409, json={"version": 1, "rule": BODY})
    assert "version 2" in late["detail"]
    assert call(web, "POST", "rules/low/disable")["enabled"] is False
    with Session(store_engine) as session:
        assert not {one.rule.name: one for one in rules_in_force(session)}["low"].enabled
    assert call(web, "POST", "rules/low/enable")["enabled"] is True
    versions = call(web, "GET", "rules/low/versions")["versions"]
    assert [(one["version"], one["rule"]["for"]) for one in versions] == [(2, "5m"), (1, "10m")]
    call(web, "DELETE", "rules/low", 409, params={"version": 1})
    left = call(web, "DELETE", "rules/low", params={"version": 2})
    assert "low" not in [rule["name"] for rule in left["rules"]]
    call(web, "GET", "rules/low", 404)
    assert call(web, "POST", "rules", json={"rule": BODY})["version"] == 3
    with Session(store_engine) as session:
        actions = session.scalars(select(Audit.action).where(Audit.target == "low").order_by(Audit.id)).all()
    assert actions == [
        "rule.create", "rule.update", "rule.disable", "rule.enable", "rule.delete", "rule.create",
    ]  # fmt: skip


def test_pack_rules_are_changed_and_reset_but_not_deleted(web: Web, store_engine: Engine) -> None:
    before = call(web, "GET", "rules/dead-draft")
    assert (before["origin"], before["is_overridden"]) == ("pack", False)
    assert "pack" in call(web, "DELETE", "rules/dead-draft", 422, params={"version": 1})["detail"]
    body = {**before["rule"], "for": "1m"}
    changed = call(web, "PUT", "rules/dead-draft", json={"version": before["version"], "rule": body})
    assert changed["is_overridden"]
    call(web, "POST", "rules/dead-draft/disable")
    sync(store_engine, [], NOW)  # the next start
    again = call(web, "GET", "rules/dead-draft")
    assert (again["rule"]["for"], again["enabled"], again["version"]) == ("1m", False, changed["version"])
    back = call(web, "POST", "rules/dead-draft/reset", params={"version": again["version"]})
    assert (back["rule"], back["enabled"], back["is_overridden"]) == (before["rule"], True, False)


def test_rules_of_the_file_are_read_only_and_go_with_it(web: Web, store_engine: Engine) -> None:
    found = call(web, "GET", "rules/from-file")
    assert found["origin"] == "file"
    for method, path, options in (
        ("PUT", "rules/from-file", {"json": {"version": 1, "rule": found["rule"]}}),
        ("POST", "rules/from-file/disable", {}),
        ("DELETE", "rules/from-file", {"params": {"version": 1}}),
    ):
        assert "file" in call(web, method, path, 422, **options)["detail"]
    sync(store_engine, [], NOW)
    call(web, "GET", "rules/from-file", 404)
    names = [rule["name"] for rule in call(web, "GET", "rules")["rules"]]
    assert names == sorted(pack())


def test_a_second_start_writes_nothing(web: Web, store_engine: Engine) -> None:
    def audit() -> int:
        with Session(store_engine) as session:
            return len(session.scalars(select(Audit.id)).all())

    before = audit()
    sync(store_engine, read_rules(FILE, "alerts.yaml").rules, NOW + 1)
    assert audit() == before > 0


def test_checking_says_what_is_wrong_or_what_it_says_now(web: Web, store_engine: Engine) -> None:
    wrong = {**BODY, "condition": {**BODY["condition"], "belw": 1, "signal": "acceptance.accept_lenth"}}
    found = call(web, "POST", "rules/validate", json={"rule": wrong})
    assert not found["is_valid"]
    assert [(one["field"]) for one in found["problems"]] == ["condition.belw"]
    assert "Did you mean 'below'?" in found["problems"][0]["reason"]
    del wrong["condition"]["belw"]
    found = call(web, "POST", "rules/validate", json={"rule": wrong})
    assert "Did you mean 'acceptance.accept_length'?" in found["problems"][0]["reason"]
    assert "Did you mean" in call(web, "POST", "rules", 422, json={"rule": wrong})["detail"]
    feed = Feed(IngestWriter(store_engine, lambda: NOW))
    feed.launch(time_ms=NOW - 600_000)
    feed.scrapes(120, NOW - 120 * SCRAPE_MS, tau=1.3, running=2)
    found = call(web, "POST", "rules/validate", json={"rule": BODY})
    [now] = found["now"]
    assert (now["status"], now["value"]) == ("breach", pytest.approx(1.3))


def test_a_replay_says_when_it_would_have_fired(web: Web, store_engine: Engine) -> None:
    feed = Feed(IngestWriter(store_engine, lambda: NOW))
    start = NOW - 3_600_000
    feed.launch(time_ms=start)
    feed.scrapes(240, start, tau=2.5, running=2)
    feed.scrapes(240, start + 240 * SCRAPE_MS, tau=1.3, running=2)
    feed.scrapes(239, start + 480 * SCRAPE_MS, tau=2.5, running=2)
    asked = {"rule": {**BODY, "for": "5m"}, "from": "now-1h"}
    found = call(web, "POST", "rules/backtest", json=asked)
    assert found["words"] == "It would have fired 1 time in these 60 minutes"
    [fire] = found["fires"]
    assert fire["peak"] == pytest.approx(1.3)
    assert fire["page"].startswith("/acceptance?server=gpu1")
    assert fire["from"][11:16] in ("12:28", "12:29", "12:30", "12:31")
    assert fire["to"][11:16] in ("12:42", "12:43", "12:44")
    call(web, "POST", "rules", json={"rule": {**BODY, "for": "30m"}})
    named = call(web, "POST", "rules/backtest", json={"name": "low", "from": "now-1h"})
    assert (named["fired"], named["pending_only"]) == (0, 1)
    assert "would not have fired" in named["words"]
    call(web, "POST", "rules/backtest", 422, json={})
    call(web, "POST", "rules/backtest", 404, json={"name": "nobody"})
    call(web, "POST", "rules/backtest", 422, json={"name": "low", "from": "now", "to": "now-1h"})


def test_signals_and_kinds_are_listed(web: Web) -> None:
    found = call(web, "GET", "signals", params={"search": "accept_length"})["signals"]
    assert "acceptance.accept_length" in [one["name"] for one in found]
    kinds = [one["kind"] for one in call(web, "GET", "conditions")["kinds"]]
    assert kinds == [
        "absence",
        "all",
        "any",
        "change_point",
        "drift",
        "event",
        "heartbeat",
        "relative",
        "threshold",
    ]


def test_every_shipped_rule_can_be_evaluated_on_both_databases(web: Web, store_engine: Engine) -> None:
    feed = Feed(IngestWriter(store_engine, lambda: NOW))
    feed.launch(time_ms=NOW - 600_000)
    feed.scrapes(120, NOW - 120 * SCRAPE_MS, tau=2.0, running=2, calls=40, tokens=81, finished=1, decoded=80)
    with Session(store_engine) as session:
        found = evaluate(session, web.app.state.specscope, rules_in_force(session), NOW)
    assert found.problems == []
    assert [reading.reason for reading in found.notable] == []
    assert {reading.rule for reading in found} > {"dead-draft", "configuration-changed", "identity-broken"}
