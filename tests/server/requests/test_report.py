"""Answers that clients report: stored once, under the right launch, with a word for each that is refused."""

from __future__ import annotations

import gzip
import json

import pytest
from sqlalchemy import Engine, text
from tests.server.client import Web
from tests.server.requests.answers import FIXTURES, answer, captured, post
from tests.server.seed import NOW, SERVER, T0, Feed

from specscope_server.app import create_app
from specscope_server.settings import Settings

WINDOW = {"server": SERVER, "from_": T0, "to": NOW}


def test_the_worked_example_becomes_the_evidence(web: Web, feed: Feed) -> None:
    feed.launch()
    assert post(web, answer())["accepted"] == 1
    found = web.api("/acceptance/summary", **WINDOW)
    assert found["evidence"] == "request_histograms"
    assert found["accept_length"]["value"] == pytest.approx(1 + 18 / 13)
    assert found["draft_acceptance"]["value"] == pytest.approx(18 / 39)
    counts = found["counts"]
    assert (counts["verify_calls"], counts["accepted_drafts"], counts["proposed_drafts"]) == (13, 18, 39)
    assert counts["accepted_drafts_kind"] == "reported"


def test_real_answers_give_the_engines_own_sums(web: Web, feed: Feed) -> None:
    feed.launch()
    answers = captured(T0 + 60_000)
    assert post(web, answers)["accepted"] == 20
    counts = web.api("/acceptance/summary", **WINDOW)["counts"]
    metas = [each["meta_info"] for each in answers]
    assert counts["verify_calls"] == sum(meta["spec_verify_ct"] for meta in metas) == 317
    assert counts["accepted_drafts"] == sum(meta["spec_num_correct_drafts"] for meta in metas)
    assert counts["proposed_drafts"] == sum(meta["spec_num_proposed_drafts"] for meta in metas)


def test_sending_again_changes_nothing(web: Web, feed: Feed) -> None:
    feed.launch()
    body = [answer("a"), answer("b"), answer("a")]
    first = post(web, body)
    assert (first["accepted"], first["duplicates"]) == (2, 1)
    again = post(web, body)
    assert (again["accepted"], again["duplicates"]) == (0, 3)
    assert web.api("/acceptance/summary", **WINDOW)["counts"]["verify_calls"] == 26


def test_what_is_wrong_is_refused_one_by_one_and_the_rest_is_stored(web: Web, feed: Feed) -> None:
    feed.launch()
    body = [
        answer("a"),
        answer("b", spec_verify_ct=12),
        answer("HEALTH_CHECK_1"),
        answer("c", request_finished_ts=(NOW + 2 * 86_400_000) / 1_000),
        "text",
        answer("d", time_ms=T0 - 40 * 86_400_000),
        {**answer("e"), "labels": {"bad name": "x"}},
    ]
    found = post(web, body)
    assert (found["accepted"], found["health_checks"], found["refused_total"]) == (1, 1, 5)
    assert [each["index"] for each in found["refused"]] == [1, 3, 4, 5, 6]
    reasons = [each["reason"] for each in found["refused"]]
    assert "verified 12 times" in reasons[0]
    assert "ahead of this server's clock" in reasons[1]
    assert "retention_requests_days" in reasons[3]


def test_json_lines_may_hold_a_line_that_was_cut(web: Web, feed: Feed) -> None:
    feed.launch()
    lines = "\n".join(
        ["", json.dumps(answer("a")), json.dumps(answer("b"))[:50], json.dumps(answer("c")), ""]
    )
    response = web.request(
        "POST", "/api/v1/requests", params={"server": SERVER}, content=lines.encode(),
        headers={"content-type": "application/x-ndjson; charset=utf-8"},
    )  # fmt: skip
    found = response.json()
    assert found["accepted"] == 2
    assert [each["index"] for each in found["refused"]] == [2]
    assert "cut" in found["refused"][0]["reason"]


def test_numbers_that_python_writes_but_json_lacks_are_unknown(web: Web, feed: Feed) -> None:
    feed.launch()
    odd = json.dumps({**answer("a"), "decode_throughput": float("nan"), "x": float("-inf")})
    timeless = json.dumps(answer("b", e2e_latency=float("inf")))
    for content, kind in ((odd, "json"), (f"{odd}\n{timeless}\nNaN\n" + "[" * 90_000 + "NaN", "x-ndjson")):
        response = web.request(
            "POST", "/api/v1/requests", params={"server": SERVER}, content=content.encode(),
            headers={"content-type": f"application/{kind}"},
        )  # fmt: skip
        assert response.status_code == 200, response.text
    found = response.json()
    assert (found["accepted"], found["duplicates"], found["refused_total"]) == (1, 1, 2)
    assert web.api("/requests", **WINDOW)["requests"][0]["e2e_seconds"] is None


def test_no_prompt_and_no_output_is_stored(web: Web, feed: Feed, store_engine: Engine) -> None:
    feed.launch()
    export = (FIXTURES / "sglang-request-metrics-20261130_01.log").read_bytes()
    moved = b"\n".join(
        json.dumps({**json.loads(line), "request_finished_ts": T0 / 1_000 + 1}).encode()
        for line in export.splitlines()
    )
    response = web.request(
        "POST", "/api/v1/requests", params={"server": SERVER}, content=moved,
        headers={"content-type": "application/x-ndjson"},
    )  # fmt: skip
    assert response.json()["accepted"] == 17
    assert response.json()["without_counts"] == 3
    with store_engine.connect() as connection:
        stored = str([tuple(row) for row in connection.execute(text("SELECT * FROM request"))])
    assert b"capital city" in export
    assert "capital" not in stored
    assert "input_ids" not in stored


def test_a_request_belongs_to_the_launch_in_force_when_it_finished(web: Web, feed: Feed) -> None:
    feed.launch("a1", T0)
    feed.launch("b2", T0 + 600_000)
    post(web, [answer("x", T0 + 599_999), answer("y", T0 + 600_000), answer("z", T0 + 900_000)])
    newest, oldest = (item["id"] for item in web.api(f"/servers/{SERVER}/launches")["launches"])
    page = web.api("/requests", **WINDOW)["requests"]
    assert [(each["request_id"], each["launch_id"]) for each in page] == [
        ("z", newest), ("y", newest), ("x", oldest),
    ]  # fmt: skip


def test_requests_of_before_any_launch_make_one_for_each_depth(web: Web, feed: Feed) -> None:
    feed.launch("a1", T0 + 600_000)
    early = [
        answer("x", T0 + 1_000), answer("y", T0 + 2_000),
        answer("w", T0 + 3_000, spec_num_proposed_drafts=65),
    ]  # fmt: skip
    post(web, early)
    launches = web.api(f"/servers/{SERVER}/launches")["launches"]
    assert [(item["engine"], item["num_draft_tokens"]) for item in launches] == [
        ("sglang", 4), ("unknown", 6), ("unknown", 4),
    ]  # fmt: skip
    assert "requests only" in launches[1]["reason"]
    assert web.api("/acceptance/summary", **WINDOW)["counts"]["verify_calls"] == 39


def test_an_unknown_server_is_made_only_when_asked(web: Web, feed: Feed) -> None:
    feed.launch()
    problem = post(web, answer(), 404, server="gpu9")
    assert "known are gpu1:30000" in problem["detail"]
    assert "create=true" in problem["detail"]
    assert post(web, answer(), server="gpu9", params={"create": "true"})["accepted"] == 1
    found = web.api("/acceptance/summary", server="gpu9", from_=T0, to=NOW)
    assert found["evidence"] == "request_histograms"
    assert found["accept_length"]["value"] == pytest.approx(1 + 18 / 13)
    for page in ("/acceptance", "/", "/sources"):
        assert web.get(page, params={"server": "gpu9", "from": str(T0), "to": str(NOW)}).status_code == 200
    assert post(web, answer(), 422, server=" ", params={"create": "true"})["title"] == "Invalid input"


def test_labels_come_from_the_header_and_from_each_answer(web: Web, feed: Feed) -> None:
    feed.launch()
    headers = {"X-Specscope-Labels": "tenant=search,dataset=chat"}
    post(web, [answer("a"), {**answer("b"), "labels": {"tenant": "ads"}}], headers=headers)
    labels = {each["request_id"]: each["labels"] for each in web.api("/requests", **WINDOW)["requests"]}
    assert labels == {
        "a": {"tenant": "search", "dataset": "chat"}, "b": {"tenant": "ads", "dataset": "chat"},
    }  # fmt: skip
    assert "no value" in post(web, answer("c"), 422, headers={"X-Specscope-Labels": "x"})["detail"]


@pytest.mark.parametrize(
    ("headers", "content", "status", "words"),
    [
        ({"content-type": "text/plain"}, b"{}", 415, "application/json"),
        ({}, b"{}", 415, "application/x-ndjson"),
        ({"content-encoding": "br"}, b"{}", 415, "gzip or none"),
        ({"content-encoding": "gzip"}, b"{}", 422, "not gzip"),
        ({"content-encoding": "gzip"}, gzip.compress(b"{}", mtime=0)[:-3], 422, "ends too early"),
        ({}, b"{", 422, "not JSON"),
    ],
    ids=["text", "no kind", "brotli", "no gzip", "cut gzip", "cut JSON"],
)
def test_bodies_that_cannot_be_read_are_problems(
    lone_web: Web, headers: dict[str, str], content: bytes, status: int, words: str
) -> None:
    kind = {} if status == 415 and not headers else {"content-type": "application/json"}
    params = {"server": "a", "create": "true"}
    response = lone_web.request(
        "POST", "/api/v1/requests", params=params, content=content, headers={**kind, **headers}
    )
    assert response.status_code == status
    assert response.headers["content-type"] == "application/problem+json"
    assert words in response.json()["detail"]


def test_gzip_is_unpacked_and_bounded(sqlite_engine: Engine) -> None:
    web = Web(create_app(Settings(max_push_bytes=20_000), engine=sqlite_engine, clock=lambda: NOW))
    headers = {"content-type": "application/json", "content-encoding": "gzip"}
    params = {"server": "a", "create": "true"}
    body = json.dumps([answer(str(index)) for index in range(20)]).encode()
    good = web.request(
        "POST", "/api/v1/requests", params=params, content=gzip.compress(body), headers=headers
    )
    assert good.json()["accepted"] == 20
    halves = gzip.compress(body[:99]) + gzip.compress(body[99:])
    again = web.request("POST", "/api/v1/requests", params=params, content=halves, headers=headers)
    assert again.json()["duplicates"] == 20
    bomb = gzip.compress(b" " * 50_000_000)
    for content, more in ((bomb, headers), (b" " * 20_001, {"content-type": "application/json"})):
        refused = web.request("POST", "/api/v1/requests", params=params, content=content, headers=more)
        assert refused.status_code == 413
        assert "max_push_bytes=20000" in refused.json()["detail"]


def test_the_token_is_needed(sqlite_engine: Engine) -> None:
    web = Web(create_app(Settings(token="a long enough token"), engine=sqlite_engine, clock=lambda: NOW))
    assert post(web, answer(), 401)["title"] == "Unauthorized"
    bearer = {"Authorization": "Bearer a long enough token"}
    assert post(web, answer(), headers=bearer, params={"create": "true"})["accepted"] == 1
