"""A receiver made for an Alertmanager's webhooks, as Debian packs it, takes ours."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Engine
from tests.server.alerts.delivery.desk import Desk
from tests.support.alertmanager import until
from tests.support.cards import card, notification
from tests.support.irc import running_relay


def test_it_says_what_fires_and_what_is_over(sqlite_engine: Engine, tmp_path: Path) -> None:
    desk = Desk(sqlite_engine)
    fire = card(starts_ms=desk.now_ms - 60_000)
    over = card(status="resolved", starts_ms=fire.starts_ms, ends_ms=desk.now_ms - 1_000)
    with running_relay(tmp_path) as (url, said):
        desk.channels({"name": "chat", "kind": "alertmanager_webhook", "url": url})
        for told in (fire, over):
            desk.tell(notification(told), "chat")
            desk.deliver()
        assert {row.status for row in desk.rows()} == {"sent"}
        until(lambda: len(said) >= 2, 30)
    assert said == ["dead-draft of gpu1:30000 is firing", "dead-draft of gpu1:30000 is resolved"]
