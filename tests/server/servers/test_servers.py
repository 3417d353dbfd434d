"""Servers and launches through the API, on both databases."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.server.client import Web
from tests.server.seed import NOW, SERVER, T0, Feed

from specscope_server.servers.statistics import config_diff, flatten

scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
configs = st.dictionaries(st.text("abc", min_size=1, max_size=3), scalars, max_size=6)


def test_servers_are_listed_by_name_with_state_and_newest_launch(web: Web, feed: Feed) -> None:
    feed.launch("a1")
    feed.launch("b2", T0 + 60_000, is_demo=True)
    feed.health(NOW - 1_000)
    found = web.api("/servers")["servers"]
    (server,) = found
    assert (server["name"], server["state"], server["launches"]) == (SERVER, "ok", 2)
    assert (server["newest_launch"]["key"], server["is_demo"], server["age_seconds"]) == ("b2", True, 1.0)
    assert web.api(f"/servers/{SERVER}") == server


def test_servers_are_paged(web: Web, feed: Feed) -> None:
    for number in range(5):
        other = Feed(feed.writer, f"gpu{number}:1")
        other.health(NOW)
    first = web.api("/servers", limit=3)
    rest = web.api("/servers", limit=3, cursor=first["next_cursor"])
    names = [server["name"] for page in (first, rest) for server in page["servers"]]
    assert names == [f"gpu{number}:1" for number in range(5)]
    assert rest["next_cursor"] is None


def test_a_name_may_hold_slashes(web: Web, feed: Feed) -> None:
    behind = Feed(feed.writer, "proxy:80/team/a")
    behind.launch()
    assert web.api("/servers/proxy:80/team/a")["name"] == "proxy:80/team/a"
    assert len(web.api("/servers/proxy:80/team/a/launches")["launches"]) == 1


def test_launches_are_newest_first_and_paged(web: Web, feed: Feed) -> None:
    for number in range(4):
        feed.launch(f"k{number}", T0 + number)
    first = web.api(f"/servers/{SERVER}/launches", limit=3)
    rest = web.api(f"/servers/{SERVER}/launches", limit=3, cursor=first["next_cursor"])
    keys = [launch["key"] for page in (first, rest) for launch in page["launches"]]
    assert keys == ["k3", "k2", "k1", "k0"]


def test_a_launch_shows_what_changed(web: Web, feed: Feed) -> None:
    before: dict[str, Any] = {"tp_size": 8, "spec": {"steps": 3, "topk": 1}, "old": True}
    after: dict[str, Any] = {"tp_size": 8, "spec": {"steps": 5, "topk": 1}, "new": None}
    feed.launch("a1", config=before, environment={"NCCL_ALGO": "Ring"})
    feed.launch("b2", T0 + 1, config=after, environment={"NCCL_ALGO": "Tree"}, engine_version="0.5.23")
    newest = web.api(f"/servers/{SERVER}/launches")["launches"][0]["id"]
    found = web.api(f"/launches/{newest}")
    assert found["config"] == after
    diff = found["diff"]
    assert [entry["key"] for entry in diff["added"]] == ["new"]
    assert [(entry["key"], entry["before"]) for entry in diff["removed"]] == [("old", True)]
    assert [(entry["key"], entry["before"], entry["after"]) for entry in diff["changed"]] == [
        ("engine_version", "0.5.15", "0.5.23"),
        ("env.NCCL_ALGO", "Ring", "Tree"),
        ("spec.steps", 3, 5),
    ]
    first = web.api(f"/launches/{diff['previous_id']}")
    assert first["diff"] == {"previous_id": None, "added": [], "removed": [], "changed": []}


def test_csv_of_servers_cannot_be_run(web: Web, feed: Feed) -> None:
    Feed(feed.writer, "=evil()").health(NOW)
    lines = web.get("/api/v1/servers", params={"format": "csv"}).text.splitlines()
    assert lines[1].startswith("'=evil(),")


def test_nothing_seen_yet_is_said(lone_web: Web) -> None:
    assert lone_web.api("/servers") == {"servers": [], "next_cursor": None}
    assert "No server has been seen yet." in lone_web.get("/api/v1/servers/a").json()["detail"]


@given(configs)
def test_equal_configurations_do_not_differ(config: dict[str, Any]) -> None:
    assert config_diff(config, dict(config)) == ({}, {}, {})


@given(configs, configs)
def test_the_difference_turns_one_into_the_other(before: dict[str, Any], after: dict[str, Any]) -> None:
    added, removed, changed = config_diff(before, after)
    patched = {key: value for key, value in before.items() if key not in removed}
    patched |= added | {key: new for key, (_, new) in changed.items()}
    assert {key: repr(value) for key, value in patched.items()} == {
        key: repr(value) for key, value in after.items()
    }


def test_true_and_one_differ_and_empty_mappings_stay() -> None:
    assert config_diff({"a": 1}, {"a": True})[2] == {"a": (1, True)}
    assert flatten({"a": {"b": {"c": 1}, "d": {}}}) == {"a.b.c": 1, "a.d": {}}
