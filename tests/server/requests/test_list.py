"""The list of requests: newest first, by cursor, by launch, range and label, in three formats."""

from __future__ import annotations

import json

import pytest
from tests.server.client import Web
from tests.server.requests.answers import answer, post
from tests.server.seed import NOW, SERVER, T0, Feed

WINDOW = {"server": SERVER, "from_": T0, "to": NOW}


@pytest.fixture
def filled(web: Web, feed: Feed) -> Web:
    """Seven requests a second apart, two of them at one time, in two launches."""
    feed.launch("a1", T0)
    feed.launch("b2", T0 + 4_500)
    times = [1, 2, 3, 3, 5, 6, 7]
    body = [
        {**answer(f"r{index}", T0 + second * 1_000), "labels": {"tenant": "Aa"[index % 2], "n": str(index)}}
        for index, second in enumerate(times)
    ]
    assert post(web, body)["accepted"] == 7
    return web


def ids(page: dict[str, list[dict[str, str]]]) -> list[str]:
    """Return the ids of a page."""
    return [each["request_id"] for each in page["requests"]]


def test_pages_join_without_gap_or_repeat(filled: Web) -> None:
    seen, cursor = [], {}
    while cursor is not None:
        page = filled.api("/requests", limit=2, **WINDOW, **cursor)
        seen += ids(page)
        cursor = {"cursor": page["next_cursor"]} if page["next_cursor"] else None
    assert seen == ["r6", "r5", "r4", "r3", "r2", "r1", "r0"]


def test_a_request_shows_counts_beside_ratios(filled: Web) -> None:
    newest = filled.api("/requests", limit=1, **WINDOW)["requests"][0]
    assert newest["accept_length"] == pytest.approx(2.3846, abs=1e-4)
    assert (newest["accepted_drafts"], newest["verify_calls"]) == (18, 13)
    assert newest["accepted_histogram"] == [6, 0, 3, 4]
    assert newest["prompt_tokens"] is None
    assert newest["time"] == "2026-03-01T12:00:07.000Z"


def test_range_launch_and_label_choose(filled: Web) -> None:
    assert ids(filled.api("/requests", server=SERVER, from_=T0 + 3_000, to=T0 + 5_000)) == ["r3", "r2"]
    assert ids(filled.api("/requests", launch="newest", **WINDOW)) == ["r6", "r5", "r4"]
    assert ids(filled.api("/requests", label="tenant=A", **WINDOW)) == ["r6", "r4", "r2", "r0"]
    assert ids(filled.api("/requests", label=["tenant=a", "n=5"], **WINDOW)) == ["r5"]
    assert ids(filled.api("/requests", label="tenant=%", **WINDOW)) == []


@pytest.mark.parametrize(
    ("query", "status"),
    [("label=tenant", 422), ("launch=x", 422), ("launch=999", 404), ("cursor=x", 422), ("server=no", 404)],
)
def test_what_cannot_be_meant_is_a_problem(filled: Web, query: str, status: int) -> None:
    base = "" if query.startswith("server") else f"server={SERVER}&"
    response = filled.get(f"/api/v1/requests?{base}{query}")
    assert response.status_code == status
    assert response.json()["detail"]


def test_csv_and_ndjson_have_the_same_rows(filled: Web) -> None:
    query = f"/api/v1/requests?server={SERVER}&from={T0}&to={NOW}&format="
    rows = filled.get(query + "csv").text.splitlines()
    assert rows[0].startswith("request_id,time,launch_id")
    assert len(rows) == 8
    assert '"[6,0,3,4]"' in rows[1]
    lines = [json.loads(line) for line in filled.get(query + "ndjson").text.splitlines()]
    assert [line["request_id"] for line in lines] == [row.split(",")[0] for row in rows[1:]]
