"""The requests of a range as a whole and in parts, by REST: counts, identities, coverage, formats, bounds."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest
from sqlalchemy.orm import Session
from tests.server.client import Web
from tests.server.requests.answers import answer, captured, post
from tests.server.seed import NOW, SERVER, T0, TOKENIZER, Feed, growth

from specscope_server.kit.figures import decode_floats
from specscope_server.models import Launch
from specscope_server.requests import population
from specscope_server.requests.filters import Scope

WINDOW = {"server": SERVER, "from_": T0, "to": NOW}
QUERY = f"server={SERVER}&from={T0}&to={NOW}"
NAMES = ("spec_correct_drafts_histogram", "spec_verify_ct", "spec_num_correct_drafts")
FIGURES = ("requests-accept-length", "requests-breakdown", "requests-breakdown-positions")
HOSTILE = '<img src=x onerror="window.ran=1">\u202eאבג 👩‍👩‍👧 "quoted\\" %_'


def told(name: str, histogram: list[int], time_ms: int = T0 + 60_000, **more: Any) -> dict[str, Any]:
    """Return an answer with this histogram, K = its length − 1."""
    accepted = sum(d * n for d, n in enumerate(histogram))
    labels = more.pop("labels", {})
    cycles = sum(histogram)
    return answer(
        name, time_ms, spec_verify_ct=cycles, spec_num_correct_drafts=accepted,
        spec_num_proposed_drafts=cycles * (len(histogram) - 1), spec_correct_drafts_histogram=histogram,
        **more,
    ) | {"labels": labels}  # fmt: skip


@pytest.fixture
def filled(web: Web, feed: Feed) -> Web:
    """Sixty ordinary requests of two tenants, one dead and one suspiciously good; the engine counted all."""
    feed.launch()
    rng = np.random.default_rng(7)
    body = [
        told(
            f"r{n}", rng.multinomial(60, [0.4, 0.2, 0.2, 0.2]).tolist(), T0 + 60_000 + n,
            prompt_tokens=10 + 40 * n, labels={"tenant": "ab"[n % 2]},
        )
        for n in range(60)
    ]  # fmt: skip
    body += [told("dead", [60, 0, 0, 0]), told("loop", [0, 0, 0, 60])]
    assert post(web, body)["accepted"] == 62
    feed.scrapes(1, T0 + 55_000, calls=62 * 60)
    return web


def test_the_whole_adds_up(filled: Web) -> None:
    found = filled.api("/requests/summary", **WINDOW)
    assert (found["total"], found["requests"], found["cycles"]) == (62, 62, 3_720)
    assert found["coverage"] == {"request_cycles": 3_720, "engine_cycles": 3_720.0, "share": 1.0}
    assert [check["passed"] for check in found["checks"]] == [True] * 4
    assert found["gap"] == pytest.approx(0, abs=1e-9)
    assert "agree" in found["gap_note"]
    assert found["labels"] == ["tenant"]
    assert found["accept_length_low"] < found["accept_length"] < found["accept_length_high"]


def test_both_outliers_are_found_and_named(filled: Web) -> None:
    apart = filled.api("/requests/summary", **WINDOW)["outliers"]
    assert (apart["judged"], apart["low"], apart["high"]) == (62, 1, 1)
    assert [(each["side"], each["request"]["request_id"]) for each in apart["requests"]] == [
        ("low", "dead"), ("high", "loop"),
    ]  # fmt: skip
    assert all(each["log10_chance"] < -1.3 for each in apart["requests"])
    assert "Bonferroni" in apart["rule"]


def test_a_gap_between_the_means_is_put_into_words(web: Web, feed: Feed) -> None:
    feed.launch()
    post(web, [told("short", [0, 0, 0, 10]), told("long", [90, 0, 0, 0])])
    found = web.api("/requests/summary", **WINDOW)
    assert found["gap"] == pytest.approx(1.3 - 2.5)
    assert "accept less per cycle" in found["gap_note"]
    assert "1.20 below" in found["gap_note"]


def test_coverage_says_what_is_missing_and_what_cannot_be(web: Web, feed: Feed) -> None:
    feed.launch()
    post(web, [told("a", [10, 0, 0, 0])])
    check = web.api("/requests/summary", **WINDOW)["checks"][-1]
    assert (check["passed"], "not read" in check["message"]) == (None, True)
    feed.scrapes(1, T0 + 55_000, calls=40)
    check = web.api("/requests/summary", **WINDOW)["checks"][-1]
    assert (check["passed"], "25%" in check["message"]) == (None, True)
    post(web, [told("restart", [35, 0, 0, 0])])
    check = web.api("/requests/summary", **WINDOW)["checks"][-1]
    assert (check["passed"], "restart" in check["message"]) == (None, True)
    post(web, [told("b", [90, 0, 0, 0])])
    check = web.api("/requests/summary", **WINDOW)["checks"][-1]
    assert (check["passed"], "another server" in check["message"]) == (False, True)


def test_coverage_takes_cycles_as_they_happen_where_finished_ones_are_not_counted(
    web: Web, feed: Feed
) -> None:
    feed.launch()
    post(web, [told("a", [10, 0, 0, 0])])
    cycles = [growth("spec.cycles", 8, T0 + 55_000, {**TOKENIZER, "dp_rank": str(dp)}) for dp in range(2)]
    feed.send(*cycles)
    assert web.api("/requests/summary", **WINDOW)["coverage"]["engine_cycles"] == 16
    feed.scrapes(1, T0 + 60_000, calls=10)
    assert web.api("/requests/summary", **WINDOW)["coverage"]["engine_cycles"] == 10


def test_parts_by_label_and_by_length_add_up_to_the_whole(filled: Web) -> None:
    whole = filled.api("/requests/summary", **WINDOW)
    for by in ("label:tenant", "prompt_tokens", "context_tokens", "completion_tokens", "label:none"):
        parts = filled.api("/requests/breakdown", by=by, **WINDOW)["parts"]
        assert sum(part["requests"] for part in parts) == whole["requests"]
        assert sum(part["cycles"] for part in parts) == whole["cycles"]
        assert sum(part["accepted_drafts"] for part in parts) == whole["accepted_drafts"]
    names = [part["name"] for part in filled.api("/requests/breakdown", by="label:tenant", **WINDOW)["parts"]]
    assert names == ["a", "b", "(without this label)"]
    lengths = filled.api("/requests/breakdown", by="prompt_tokens", **WINDOW)["parts"]
    assert [part["low"] for part in lengths] == [8, 32, 64, 128, 256, 512, 1024, 2048, None]


def test_search_and_labels_narrow_everything_down(filled: Web) -> None:
    for search, n in (("tenant=a", 30), ("TENANT", 60), ("loo", 1), ("r1", 11), ("tenant=%", 0), ("_", 0)):
        assert filled.api("/requests/summary", search=search, **WINDOW)["total"] == n, search
    assert filled.api("/requests/breakdown", label="tenant=b", **WINDOW)["parts"]
    listed = filled.api("/requests", search="tenant=a", limit=1_000, **WINDOW)["requests"]
    assert len(listed) == 30
    refused = filled.get(f"/api/v1/requests?{QUERY}&search={'x' * 501}")
    assert refused.status_code == 422


@pytest.mark.parametrize("sort", ["accept_length", "-accept_length", "prompt_tokens", "-e2e_seconds", "time"])
def test_every_order_pages_without_gap_or_repeat_and_puts_the_unknown_last(filled: Web, sort: str) -> None:
    post(filled, [answer("mute", spec_verify_ct=None, spec_num_correct_drafts=None,
                         spec_num_proposed_drafts=None, spec_correct_drafts_histogram=None)])  # fmt: skip
    seen: list[dict[str, Any]] = []
    cursor: str | None = ""
    while cursor is not None:
        more = {"cursor": cursor} if cursor else {}
        page = filled.api("/requests", sort=sort, limit=20, **WINDOW, **more)
        seen += page["requests"]
        cursor = page["next_cursor"]
    assert len({each["request_id"] for each in seen}) == len(seen) == 63
    values = [each[sort.removeprefix("-")] for each in seen]
    known = [value for value in values if value is not None]
    assert values[: len(known)] == sorted(known, reverse=sort.startswith("-"))


def test_a_cursor_of_another_order_is_refused(filled: Web) -> None:
    cursor = filled.api("/requests", sort="accept_length", limit=2, **WINDOW)["next_cursor"]
    for more in (f"sort=time&cursor={cursor}", "cursor=WyJ0aW1lIiwibmFuIiwxXQ", "sort=color"):
        assert filled.get(f"/api/v1/requests?{QUERY}&{more}").status_code == 422


def test_one_request_stands_beside_its_peers(filled: Web) -> None:
    numbers = {
        each["request_id"]: each["number"]
        for each in filled.api("/requests", limit=100, **WINDOW)["requests"]
    }
    found = filled.api(f"/requests/{numbers['loop']}", server=SERVER)
    assert (found["num_steps"], found["peers"]["requests"], found["peers"]["verdict"]) == (3, 62, "high")
    assert [bar["cycles"] for bar in found["peers"]["histogram"]] == [0, 0, 0, 60]
    assert sum(bar["peer_share"] for bar in found["peers"]["histogram"]) == pytest.approx(1)
    assert filled.api(f"/requests/{numbers['r3']}", server=SERVER)["peers"]["verdict"] == "ordinary"
    for number in (10**6, 2**63 - 1, 2**70):
        assert filled.get(f"/api/v1/requests/{number}?server={SERVER}").status_code in (404, 422)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"spec_correct_drafts_histogram": None}, "no histogram"),
        (dict.fromkeys(NAMES, None), "said nothing"),
    ],
)  # fmt: skip
def test_a_request_that_says_little_is_shown_with_the_reason(
    web: Web, feed: Feed, changes: dict[str, Any], words: str
) -> None:
    feed.launch()
    post(web, [answer("a", **changes)])
    [item] = web.api("/requests", **WINDOW)["requests"]
    found = web.api(f"/requests/{item['number']}", server=SERVER)
    assert (found["peers"], words in found["note"]) == (None, True)
    for name in FIGURES:
        assert go.Figure(web.api(f"/figures/{name}", **WINDOW))


def test_launches_of_different_depth_are_judged_apart_and_named(web: Web, feed: Feed) -> None:
    feed.launch("a1", T0)
    feed.launch("b2", T0 + 600_000, speculative={"num_steps": 5, "num_draft_tokens": 6})
    post(web, [told("x", [5, 5, 5, 5]), told("y", [5, 5, 5, 5, 5, 5], T0 + 700_000)])
    whole = web.api("/requests/breakdown", by="label:t", **WINDOW)
    assert whole["parts"][0]["depths"] == [3, 5]
    assert "different K" in whole["note"]
    assert [p["offered"] for p in whole["parts"][0]["positions"]] == [50, 40, 30, 15, 10]
    newest = web.api("/requests/breakdown", by="label:t", launch="newest", **WINDOW)
    assert newest["parts"][0]["depths"] == [5]


def test_answers_come_in_three_formats_and_closed_ranges_are_cached(filled: Web) -> None:
    past = f"server={SERVER}&from={T0}&to={T0 + 600_000}"
    for path in ("/requests", "/requests/summary", "/requests/breakdown"):
        csv = filled.get(f"/api/v1{path}?{past}&format=csv")
        lines = filled.get(f"/api/v1{path}?{past}&format=ndjson").text.splitlines()
        assert len(csv.text.splitlines()) == len(lines) + 1
        assert set(json.loads(lines[0])) == set(csv.text.splitlines()[0].split(","))
        tag = csv.headers["etag"]
        again = filled.get(f"/api/v1{path}?{past}&format=csv", headers={"If-None-Match": tag})
        assert again.status_code == 304
        assert "etag" not in filled.get(f"/api/v1{path}?{QUERY}").headers


def test_figures_are_valid_and_show_what_the_answers_say(filled: Web) -> None:
    parts = filled.api("/requests/breakdown", by="label:tenant", **WINDOW)["parts"]
    for theme in ("light", "dark"):
        drawn = {
            name: filled.api(f"/figures/{name}", by="label:tenant", theme=theme, **WINDOW) for name in FIGURES
        }
        for figure in drawn.values():
            assert go.Figure(figure).data
    bars = drawn["requests-accept-length"]["data"]
    assert sum(sum(decode_floats(bar["y"])) for bar in bars) == 62
    assert {bar["name"]: sum(decode_floats(bar["y"])) for bar in bars} == {
        "as expected": 60, "stand apart, low": 1, "stand apart, high": 1,
    }  # fmt: skip
    assert decode_floats(drawn["requests-breakdown"]["data"][0]["y"]) == [p["accept_length"] for p in parts]
    assert drawn["requests-breakdown"]["layout"]["xaxis"]["title"]["text"] == "label tenant"
    for name in FIGURES:
        assert filled.get(f"/api/v1/figures/{name}?{QUERY}&format=csv").text.startswith("line,")
    assert filled.get(f"/api/v1/figures/requests-breakdown?{QUERY}&by=x").status_code == 422


def test_without_any_request_everything_answers(web: Web, feed: Feed) -> None:
    feed.launch()
    found = web.api("/requests/summary", **WINDOW)
    assert (found["total"], found["accept_length"], found["gap"]) == (0, None, None)
    assert web.api("/requests/breakdown", **WINDOW)["parts"] == []
    for name in FIGURES:
        assert "No request" in str(web.api(f"/figures/{name}", **WINDOW)["layout"]["meta"]["definition"])
    assert web.api("/figures/requests-accept-length", **WINDOW)["data"] == []


def test_of_very_many_about_one_in_n_is_read_whoever_alternates(filled: Web) -> None:
    with Session(filled.app.state.specscope.engine) as session:
        launch = session.query(Launch).one()
        scope = Scope(launch.server_id, T0, NOW, {launch.id: launch})
        found = population.read_population(session, scope, most=20)
        assert (found.total, found.every) == (62, 4)
        assert 13 <= len(found.rows) <= 18
        assert {row.labels for row in found.rows} >= {'{"tenant":"a"}', '{"tenant":"b"}'}
        assert "about one request in 4, of 62" in found.note()


def test_hostile_labels_and_ids_stay_text(web: Web, feed: Feed) -> None:
    feed.launch()
    value = (HOSTILE + "x" * 200)[:200]
    shown = "".join(character for character in HOSTILE if character.isprintable())
    body = {**answer(shown), "labels": {"tenant": value, "a": "=1+1"}}
    assert post(web, [body])["accepted"] == 1
    assert len(web.api("/requests", label=f"tenant={value}", **WINDOW)["requests"]) == 1
    assert len(web.api("/requests", search='"quoted\\"', **WINDOW)["requests"]) == 1
    assert len(web.api("/requests", search=shown[:20], **WINDOW)["requests"]) == 1
    assert web.api("/requests", search="%", label="tenant=x", **WINDOW)["requests"] == []
    figure = web.get(f"/api/v1/figures/requests-breakdown?{QUERY}&by=label:tenant")
    assert "<img" not in figure.text
    assert "\u202e" not in figure.text
    pages = [f"/requests?{QUERY}&by=label:tenant", f"/requests?{QUERY}&search=tenant={value}"]
    [item] = web.api("/requests", **WINDOW)["requests"]
    pages.append(f"/requests/{item['number']}?server={SERVER}")
    for path in pages:
        page = web.get(path)
        assert page.status_code == 200, page.text[:500]
        assert "<img" not in page.text


def test_canaries_are_nobodys_traffic_and_listed_on_request_only(web: Web, feed: Feed) -> None:
    feed.launch()
    canary = "specscope-canary:1"
    post(web, [told("a", [1, 1, 1, 1]), told(canary, [50, 0, 0, 0])])
    found = web.api("/requests/summary", **WINDOW)
    assert (found["total"], found["requests"], found["cycles"]) == (1, 1, 4)
    assert [each["request_id"] for each in web.api("/requests", **WINDOW)["requests"]] == ["a"]
    assert len(web.api("/requests", canaries="true", **WINDOW)["requests"]) == 2
    [item] = web.api("/requests", search="specscope-canary:", **WINDOW)["requests"]
    assert item["request_id"] == canary
    assert canary not in web.get(f"/requests?{QUERY}").text
    assert canary in web.get(f"/requests?{QUERY}&search=specscope-canary:").text
    assert "asked by a canary" in web.get(f"/requests/{item['number']}?server={SERVER}").text


def test_real_answers_agree_with_the_positions(web: Web, feed: Feed) -> None:
    feed.launch()
    post(web, captured(T0 + 60_000))
    [group] = web.api("/acceptance/positions", **WINDOW)["groups"]
    [part] = web.api("/requests/breakdown", by="label:none", **WINDOW)["parts"]
    assert part["accept_length"] == pytest.approx(group["accept_length"])
    assert [p["conditional"] for p in part["positions"]] == [p["conditional"] for p in group["positions"]]
    assert [p["conditional_low"] for p in part["positions"]] == [
        p["conditional_low"] for p in group["positions"]
    ]


def test_refused_requests_are_counted_by_reason_in_the_products_own_metrics(web: Web, feed: Feed) -> None:
    feed.launch()
    body = [
        answer("a"), answer("a"), answer("b", spec_verify_ct=12), {"meta_info": {}}, "text",
        answer("c", T0 - 4_000_000_000), {**answer("d"), "labels": {"bad name": "x"}},
        answer("e", finish_reason=None),
    ]  # fmt: skip
    post(web, body)
    text = web.get("/metrics").text
    assert 'specscope_requests_reported_total{outcome="stored"} 1.0' in text
    assert 'specscope_requests_reported_total{outcome="duplicate"} 1.0' in text
    for reason in ("bad_counts", "no_id", "not_an_answer", "too_old", "bad_labels", "unfinished"):
        assert f'specscope_requests_refused_total{{reason="{reason}"}} 1.0' in text, reason
