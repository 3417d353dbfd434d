"""Stored series, newest values, events and the catalogue."""

from __future__ import annotations

from tests.server.client import Web
from tests.server.seed import NOW, SERVER, T0, Feed, level

from specscope_collectors.catalogue import CATALOGUE
from specscope_collectors.observations import Event


def test_the_catalogue_is_complete(lone_web: Web) -> None:
    rows = lone_web.api("/metrics-catalogue")["metrics"]
    assert [row["name"] for row in rows] == list(CATALOGUE)
    assert all(row["unit"] and row["meaning"] for row in rows)


def test_series_are_paged_without_loss_or_repetition(web: Web, feed: Feed) -> None:
    feed.launch()
    feed.send(*(level("requests.running", 1, NOW - 1_000, dp=dp) for dp in range(7)))
    seen, cursor = [], None
    while True:
        page = web.api(
            "/series", metric="requests.running", limit=3, **({"cursor": cursor} if cursor else {})
        )
        seen += [row["labels"]["dp_rank"] for row in page["series"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert seen == [str(dp) for dp in range(7)]
    assert web.api("/series", server=SERVER, metric="kv.usage")["series"] == []


def test_latest_is_of_the_newest_launch_with_its_age(web: Web, feed: Feed) -> None:
    feed.launch("a1")
    feed.send(level("requests.running", 1, T0))
    feed.launch("b2", T0 + 1)
    feed.send(level("requests.running", 5, NOW - 2_000), level("requests.running", 4, NOW - 7_000))
    (row,) = web.api("/latest", metric="requests.running", server=SERVER)["latest"]
    assert (row["value"], row["age_seconds"], row["span_seconds"]) == (5.0, 2.0, None)
    everything = web.api("/latest")["latest"]
    assert {entry["metric"] for entry in everything} >= {"requests.running"}


def test_events_are_newest_first_inside_the_range(web: Web, feed: Feed) -> None:
    feed.launch()
    notes = [
        Event(kind="note", time_ms=T0 + index, message=f"n{index}", detail={"i": index}) for index in range(5)
    ]
    feed.send(*notes)
    first = web.api("/events", kind="note", from_=T0, to=T0 + 4, limit=3)
    assert [event["message"] for event in first["events"]] == ["n3", "n2", "n1"]
    assert first["events"][0]["detail"] == {"i": 3}
    rest = web.api("/events", kind="note", from_=T0, to=T0 + 4, limit=3, cursor=first["next_cursor"])
    assert [event["message"] for event in rest["events"]] == ["n0"]
    assert rest["next_cursor"] is None
    assert web.api("/events", server=SERVER, kind="note", from_=T0 + 4)["events"][0]["message"] == "n4"
