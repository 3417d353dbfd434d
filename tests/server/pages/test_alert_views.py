"""Alerts in words on the pages: the headline, why nobody is told, and what Overview says."""

from __future__ import annotations

import orjson
import pytest
from sqlalchemy.orm import Session
from tests.server.client import Web
from tests.server.seed import NOW, SERVER, T0, Feed

from specscope_collectors.observations import Event
from specscope_server.alerts.channels import examples
from specscope_server.alerts.channels.schemas import BreakerItem, ChannelItem
from specscope_server.alerts.schemas import AlertItem
from specscope_server.alerts.states.machine import State
from specscope_server.kit.timeparse import to_iso
from specscope_server.models import AlertState
from specscope_server.pages.alert_views import alert_row, channel_state, headline, muted_words

HOSTILE = "<script>window.ran=1</script>"


def item(state: State, severity: str = "warning", muted_by: str = "") -> AlertItem:
    return AlertItem(
        alert_id="a-1", fingerprint="a", rule="low", title="Low", severity=severity, state=state,
        labels={"server": SERVER, "rule": "low", "rank": "3"}, since=to_iso(NOW - 60_000),
        fired=to_iso(NOW - 120_000), resolved=None, reason="1.2, below 1.5", cause="", value=1.2, lower=None,
        upper=None, n=10, unit="tokens", n_unit="cycles", acked_by=None, acked=None, muted_by=muted_by,
        page="/", is_demo=False,
    )  # fmt: skip


def said(*items: AlertItem, health: str = "ok", rules_on: int = 16) -> tuple[str, str, tuple[str, ...]]:
    shown = headline([alert_row(each, NOW) for each in items], health, rules_on)
    return shown.kind, shown.headline, shown.reasons


def test_one_that_recovers_does_not_fire() -> None:
    kind, words, reasons = said(item(State.RECOVERING))
    assert (kind, words) == ("ok", "Nothing fires; 16 rules are on")
    assert reasons == ("1 that recover",)


def test_the_worst_that_somebody_is_told_of_gives_the_colour() -> None:
    muted = item(State.FIRING, "critical", "silence:7")
    kind, words, reasons = said(item(State.FIRING), muted)
    assert (kind, words, reasons) == ("warn", "2 alerts fire", ("1 muted",))


def test_rules_that_are_not_evaluated_come_first() -> None:
    assert said(item(State.FIRING), health="nothing for an hour")[0] == "bad"
    assert said(rules_on=0)[1] == "No rule is on"


@pytest.mark.parametrize(
    ("muted_by", "words"),
    [
        ("", ""), ("silence:7", "silence 7"), ("inhibited:scrape-down", "muted while scrape-down fires"),
        ("idle", "muted while idle"), ("else", "else"),
    ],
)  # fmt: skip
def test_why_nobody_is_told(muted_by: str, words: str) -> None:
    assert muted_words(muted_by) == words


@pytest.mark.parametrize(
    ("state", "failures", "failing", "words"),
    [
        ("closed", 0, None, "works"), ("closed", 3, None, "failed 3 times in a row"),
        ("closed", 0, to_iso(T0), "refuses what it is told"),
        ("open", 5, to_iso(T0), "fails; nothing is tried for a while"),
    ],
)  # fmt: skip
def test_how_a_channel_is(state: str, failures: int, failing: str | None, words: str) -> None:
    breaker = BreakerItem(state=state, failures=failures, until=None, failing_since=failing)
    channel = ChannelItem.model_validate(examples.CHANNEL).model_copy(update={"breaker": breaker})
    assert channel_state(channel)[1] == words


def test_a_row_says_each_label_once() -> None:
    row = alert_row(item(State.FIRING), NOW)
    assert (row.words, row.labels) == ("warning, fires for 2 min", (("rank", "3"),))


def test_overview_names_what_fires_and_leaves_readings_of_the_probe_out(feed: Feed, web: Web) -> None:
    feed.launch("a1", T0)
    feed.scrapes(10, T0 + 5_000, tau=2.0, calls=4, tokens=8)
    feed.send(
        Event(time_ms=T0 + 9_000, kind="state_rows", message="rows of states"),
        Event(time_ms=T0 + 9_500, kind="restarted", message="a restart"),
    )
    with Session(web.app.state.specscope.engine) as session:
        session.add(
            AlertState(
                fingerprint="f", rule="low", rule_version=1, state="firing", alert_id="f-1", since_ms=NOW,
                labels=orjson.dumps({"server": SERVER}).decode(), seen_ms=NOW, fired_ms=NOW, reading="{}",
                card=orjson.dumps({"title": HOSTILE}).decode(), severity="critical", muted_by="", revision=1,
            )
        )  # fmt: skip
        session.commit()
    text = web.get("/", params={"server": SERVER, "from": str(T0), "to": str(NOW)}).text
    assert "1 alert fires" in text
    assert "/alerts/f-1" in text
    assert HOSTILE not in text
    assert "a restart" in text
    assert "rows of states" not in text
