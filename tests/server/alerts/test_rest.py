"""Alerts over REST: what fires, what happened, who took it, silences and who changed what."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from sqlalchemy import Engine
from tests.server.alerts.standin import (
    GPU1,
    GPU2,
    T0,
    World,
    a_reading,
    a_rule,
    add_channel,
    everything_ok,
)
from tests.server.client import Web

from specscope_server.alerts.pipeline.group import Route
from specscope_server.alerts.pipeline.notifying import Routing
from specscope_server.alerts.silences import preview
from specscope_server.app import create_app
from specscope_server.kit.timeparse import to_iso
from specscope_server.kit.web.scopes import Scope
from specscope_server.settings import Settings
from specscope_server.store.tokens import create_token

TOKEN = "a token that opens everything"
SILENCE = {
    "matchers": [{"label": "server", "operator": "=~", "value": "gpu[0-9]"}],
    "reason": "a new draft is rolled out",
    "length": "2h",
}


class Watched(World):
    """The stand-in's world with the application over it."""

    web: Web

    def ask(self, method: str, path: str, *, token: str = TOKEN, **options: Any) -> httpx.Response:
        """Send a request."""
        headers = {"Authorization": f"Bearer {token}"}
        return self.web.request(method, f"/api/v1/alerts{path}", headers=headers, **options)

    def get(self, path: str = "", **parameters: Any) -> Any:
        """Return the JSON of a good answer."""
        answer = self.ask("GET", path, params={name.rstrip("_"): value for name, value in parameters.items()})
        assert answer.status_code == 200, answer.text
        return answer.json()


@pytest.fixture
def world(sqlite_engine: Engine) -> Watched:
    return a_watched(sqlite_engine)


@pytest.fixture
def world_anywhere(store_engine: Engine) -> Watched:
    return a_watched(store_engine)


def a_watched(engine: Engine) -> Watched:
    add_channel(engine)
    route = Route.model_validate({"group_wait": "0s", "group_interval": "0s"})
    world = Watched(engine, [a_rule(**{"for": "15s"})], routing=Routing([route]))
    world.web = Web(create_app(Settings(token=TOKEN), engine=engine, clock=lambda: world.now_ms))
    return world


def test_alerts_now_the_worst_first(world: Watched) -> None:
    world.rules += [a_rule("bad", severity="critical", **{"for": "15s"})]
    world.tick(a_reading(), a_reading("bad"))
    world.tick(a_reading(), a_reading("bad"), a_reading("bad", labels=GPU2))
    found = world.get()
    assert [(each["rule"], each["state"], each["severity"]) for each in found["alerts"]] == [
        ("bad", "firing", "critical"),
        ("low", "firing", "warning"),
        ("bad", "pending", "critical"),
    ]
    assert found["counts"] == {"firing": 2, "pending": 1}
    assert found["health"] == "ok"
    assert [each["rule"] for each in world.get(server="gpu2")["alerts"]] == ["bad"]
    assert [each["rule"] for each in world.get(rule="low")["alerts"]] == ["low"]
    assert world.get(state="resolved")["alerts"] == []
    first = found["alerts"][0]
    assert (first["value"], first["lower"], first["n"]) == (1.1, 1.0, 4_000)
    assert first["page"].startswith("/?server=gpu1&from=2026-")


def test_one_alert_with_all_that_happened_to_it(world_anywhere: Watched) -> None:
    world = world_anywhere
    world.tick(a_reading())
    world.tick(a_reading())
    [alert] = world.get()["alerts"]
    taken = world.ask("POST", f"/{alert['alert_id']}/ack", json={"owner": "ana", "note": "looking"})
    assert taken.json()["alert"]["acked_by"] == "ana"
    for _ in range(2):
        world.tick(*everything_ok(GPU1))
    found = world.get(f"/{alert['alert_id']}")
    assert [(entry["kind"], entry["status"]) for entry in found["timeline"]] == [
        ("state", "pending"),
        ("state", "firing"),
        ("delivery", "pending"),
        ("person", "acknowledged"),
        ("state", "resolved"),
        ("delivery", "pending"),
    ]
    assert found["timeline"][3]["text"] == "acknowledged by ana: looking"
    assert found["alert"]["state"] == "resolved"
    assert found["card"]["status"] == "resolved"
    assert world.get(f"/{alert['fingerprint']}") == found


def test_an_earlier_fire_is_shown_as_it_was(world: Watched) -> None:
    for _ in range(2):
        world.tick(a_reading())
    first = world.get()["alerts"][0]["alert_id"]
    world.tick(*everything_ok(GPU1))
    for _ in range(2):
        world.tick(a_reading(value=1.3))
        found = world.get(f"/{first}")
        assert found["alert"]["state"] == "resolved", "whatever the series does now"
    assert (found["alert"]["state"], found["alert"]["value"], found["card"]["alert_id"]) == (
        "resolved",
        1.1,
        first,
    )
    assert [entry["status"] for entry in found["timeline"] if entry["kind"] == "state"] == [
        "pending", "firing", "resolved",
    ]  # fmt: skip
    assert world.get()["alerts"][0]["alert_id"] != first


def test_only_what_fires_can_be_taken(world: Watched) -> None:
    world.tick(a_reading())
    [pending] = world.get()["alerts"]
    assert pending["alert_id"] is None
    assert world.ask("POST", f"/{pending['fingerprint']}/ack").status_code == 409
    assert world.ask("POST", "/nope/ack").status_code == 404
    assert world.ask("GET", "/nope").status_code == 404
    world.tick(a_reading())
    [firing] = world.get()["alerts"]
    assert world.ask("POST", f"/{firing['alert_id']}/ack").json()["alert"]["acked_by"] == "SPECSCOPE_TOKEN"
    assert world.ask("DELETE", f"/{firing['alert_id']}/ack").json()["alert"]["acked_by"] is None


def test_an_acknowledgement_for_a_while_ends_and_that_is_told(world_anywhere: Watched) -> None:
    world = world_anywhere
    for _ in range(3):
        world.tick(a_reading())
    [firing] = world.get()["alerts"]
    path = f"/{firing['alert_id']}/ack"
    for wrong in ("soon", "10s", "31d"):
        assert world.ask("POST", path, json={"for": wrong}).status_code == 422
    taken = world.ask("POST", path, json={"owner": "ana", "for": "2m"}).json()["alert"]
    assert (taken["acked_by"], taken["acked_until"]) == ("ana", to_iso(world.now_ms + 120_000))
    for _ in range(7):  # 105 s
        world.tick(a_reading())
    assert [each.cause for each in world.told()] == ["new", "acknowledged"]
    for _ in range(3):
        world.tick(a_reading())
    [_, _, again] = world.told()
    assert (again.cause, again.firing[0].acked_by, again.known) == ("repeat", "", [])
    found = world.get(f"/{firing['alert_id']}")
    assert (found["alert"]["acked_by"], found["alert"]["acked_until"]) == (None, None)
    people = [entry["text"] for entry in found["timeline"] if entry["kind"] == "person"]
    assert people[0].startswith("acknowledged by ana until ")
    assert people[1] == "ana does not look after it any more: the time of the acknowledgement is over"
    world.ask("POST", path, json={"owner": "ana", "for": "1h"})
    for _ in range(3):
        world.tick(*everything_ok(GPU1))
    for _ in range(3):
        world.tick(a_reading())
    [firing] = world.get()["alerts"]
    assert (firing["acked_by"], firing["acked_until"]) == (None, None), "of the fire before"


def test_what_is_given_back_is_told_to_every_kind_of_channel(world: Watched) -> None:
    for _ in range(3):
        world.tick(a_reading())
    path = f"/{world.get()['alerts'][0]['alert_id']}/ack"
    world.ask("POST", path, json={"owner": "ana"})
    world.tick(a_reading())
    world.ask("DELETE", path)
    world.tick(a_reading())
    assert [each.cause for each in world.told()] == ["new", "acknowledged", "repeat"]


def test_an_acknowledgement_ends_with_the_fire(world: Watched) -> None:
    for _ in range(2):
        world.tick(a_reading())
    assert world.ask("POST", f"/{world.get()['alerts'][0]['alert_id']}/ack").status_code == 200
    world.tick(a_reading())
    assert world.get()["alerts"][0]["acked_by"] is not None
    world.tick(*everything_ok(GPU1))
    for _ in range(2):
        world.tick(a_reading())
    assert world.get()["alerts"][0]["acked_by"] is None


def test_history_in_pages(world_anywhere: Watched) -> None:
    world = world_anywhere
    for _ in range(3):
        world.tick(a_reading(), a_reading(labels=GPU2))
        world.tick(a_reading(), a_reading(labels=GPU2))
        world.tick(*everything_ok(GPU1, GPU2))
    wide = {"from_": "now-1d", "to": "now+1h"}
    first = world.get("/history", limit=7, **wide)
    rest = world.get("/history", limit=100, cursor=first["next_cursor"], **wide)
    found = first["transitions"] + rest["transitions"]
    assert len({each["id"] for each in found}) == len(found) == 18
    assert [each["at"] for each in found] == sorted((each["at"] for each in found), reverse=True)
    one = world.get("/history", server="gpu2", state="firing", **wide)["transitions"]
    assert [(each["labels"], each["to_state"]) for each in one] == [({"server": "gpu2"}, "firing")] * 3
    assert all(each["notified"] for each in one)
    csv = world.ask("GET", "/history", params={"format": "csv", "from": "now-1d", "to": "now+1h"})
    assert csv.text.count("\r\n") == 19


def test_what_a_silence_would_mute_is_named_before_it_is_made(
    world_anywhere: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = world_anywhere
    for found in (
        [a_reading(), a_reading(labels=GPU2)],
        [a_reading(), *everything_ok(GPU2)],
        [a_reading(), *everything_ok(GPU2)],
    ):
        world.tick(*found)
    asked = {"matchers": [{"label": "server", "operator": "=~", "value": "gpu[0-9]"}]}
    found = world.ask("POST", "/silences/preview", json=asked).json()
    assert (found["matches"], found["known"], found["warning"]) == (1, 1, "")
    assert [(each["labels"]["server"], each["state"]) for each in found["alerts"]] == [
        ("gpu1", "firing"),
        ("gpu2", "normal"),
    ]
    assert [each["alert_id"] is None for each in found["alerts"]] == [False, True]
    monkeypatch.setattr(preview, "MOST_READ", 0)
    few = world.ask("POST", "/silences/preview", json=asked).json()
    assert (few["matches"], few["known"]) == (1, 0), "what fires is looked at whatever changed since"
    none = {"matchers": [{"label": "team", "operator": "=", "value": "a"}]}
    missed = world.ask("POST", "/silences/preview", json=none).json()
    assert (missed["matches"], missed["known"], missed["alerts"]) == (0, 0, [])
    assert "none has a label team" in missed["warning"]
    assert world.get("/silences")["silences"] == []
    assert world.ask("POST", "/silences/preview", json={"matchers": []}).status_code == 422


def test_silences_are_made_changed_and_ended(world_anywhere: Watched) -> None:
    world = world_anywhere
    made = world.ask("POST", "/silences", json=SILENCE).json()
    assert (made["state"], made["text"]) == ("active", 'server=~"gpu[0-9]"')
    for _ in range(3):
        world.tick(a_reading())
    assert world.words() == []
    assert world.get("/silences")["silences"][0]["alerts"] == 1
    assert world.get()["alerts"][0]["muted_by"] == f"silence:{made['id']}"
    later = {**SILENCE, "starts": "now+1h", "length": "1h"}
    assert world.ask("PUT", f"/silences/{made['id']}", json=later).json()["state"] == "pending"
    assert world.get("/silences", state="active")["silences"] == []
    assert world.ask("DELETE", f"/silences/{made['id']}").json()["state"] == "expired"
    assert world.ask("DELETE", f"/silences/{made['id']}").status_code == 409
    world.tick(a_reading())
    assert world.words() == ["new: low@gpu1 / "]
    entries = world.get("/audit", action="silence")["entries"]
    assert [each["action"] for each in entries] == ["silence.expire", "silence.change", "silence.create"]
    assert entries[2]["after"]["reason"] == SILENCE["reason"]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"length": None}, "exactly one of ends and length"),
        ({"length": None, "ends": "now-1h"}, "not after"),
        ({"length": "200d"}, "90 days"),
        ({"reason": "  "}, "blank"),
        ({"matchers": []}, "matchers"),
        ({"matchers": [{"label": "server", "operator": "!=", "value": "x"}]}, "without any labels"),
        ({"matchers": [{"label": "server", "operator": "=~", "value": "(a"}]}, "no regular expression"),
        ({"matchers": [{"label": "server", "operator": "=~", "value": r"(a)\1"}]}, "back-references"),
        ({"matchers": [{"label": "1", "value": "x"}]}, "label"),
    ],
    ids=["no-end", "past", "long", "blank", "none", "all", "unclosed", "back-reference", "name"],
)
def test_a_silence_that_cannot_be_meant_is_refused(world: Watched, wrong: dict[str, Any], said: str) -> None:
    answer = world.ask("POST", "/silences", json={**SILENCE, **wrong})
    assert answer.status_code == 422
    assert said in answer.text
    assert world.get("/silences")["silences"] == []


def test_a_pattern_that_would_take_for_ever_elsewhere_is_quick(world: Watched) -> None:
    evil = [{"label": "server", "operator": "=~", "value": "(a+)+$"}]
    assert world.ask("POST", "/silences", json={**SILENCE, "matchers": evil}).status_code == 200
    for _ in range(2):
        world.tick(a_reading(labels={"server": "a" * 5_000 + "!"}))
    assert len(world.words()) == 1


def test_changes_need_the_scope_admin(world: Watched) -> None:
    reader = create_token(world.engine, "reader", Scope.READ, T0)
    assert world.ask("GET", "", token=reader).status_code == 200
    for method, path in (("POST", "/silences"), ("DELETE", "/silences/1"), ("POST", "/x/ack")):
        assert world.ask(method, path, token=reader, json=SILENCE).status_code == 403


def test_who_changed_what_is_the_name_of_the_token(world: Watched) -> None:
    admin = create_token(world.engine, "ana's laptop", Scope.ADMIN, T0)
    assert world.ask("POST", "/silences", token=admin, json=SILENCE).json()["owner"] == "ana's laptop"
    assert [each["actor"] for each in world.get("/audit")["entries"]] == ["ana's laptop"]


def test_health_says_that_nobody_evaluates(world: Watched) -> None:
    assert world.web.get("/readyz").json()["checks"]["alerts"] == "ok"
    world.now_ms += 600_000
    answer = world.web.get("/readyz")
    assert answer.status_code == 503
    assert "not evaluated" in answer.json()["checks"]["alerts"]


@pytest.mark.parametrize(
    ("matchers", "matches", "warning"),
    [
        ([("server", "=", "gpu1")], 1, ""),
        ([("servr", "=", "gpu1")], 0, "none has a label servr"),
        ([("server", "=", "gpu7")], 0, "it matches none of the alerts that fire now (2)"),
        ([("server", "=~", "gpu.*")], 2, "everything that fires now: 2 alerts"),
        ([("server", "=~", ".+")], 2, "it mutes nearly every alert"),
    ],
)
def test_a_silence_says_what_it_reaches(
    world: Watched, matchers: list[tuple[str, str, str]], matches: int, warning: str
) -> None:
    for _ in range(2):
        world.tick(a_reading(), a_reading(labels=GPU2))
    wanted = [dict(zip(("label", "operator", "value"), each, strict=True)) for each in matchers]
    made = world.ask("POST", "/silences", json={**SILENCE, "matchers": wanted}).json()
    assert made["matches"] == matches
    assert warning in made["warning"]
    assert bool(made["warning"]) == bool(warning)
