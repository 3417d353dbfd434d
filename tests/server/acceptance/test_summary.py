"""The summary through the API, on both databases."""

from __future__ import annotations

from typing import Any

import pytest
from tests.server.client import Web
from tests.server.seed import NOW, SCRAPE_MS, SERVER, T0, Feed, growth, level, rank_labels, request

from specscope_collectors.observations import Parallelism

STRICT = {"tau": 2.0, "rate": 1 / 3, "running": 1, "queued": 0, "depth": 3, "width": 4}


def summary(web: Web, **parameters: Any) -> dict[str, Any]:
    found = web.api("/acceptance/summary", server=SERVER, **{"from_": "now-1h", **parameters})
    assert isinstance(found, dict)
    return found


PAST = {"from_": str(T0), "to": str(T0 + 600_000)}
"""A range that ended long ago: what stopped since then does not make it stale."""


def check(found: dict[str, Any], name: str) -> bool | None:
    by_name = {entry["name"]: entry["passed"] for entry in found["checks"]}
    assert name in by_name
    passed: bool | None = by_name[name]
    return passed


def test_counters_are_better_evidence_than_gauges(web: Web, feed: Feed) -> None:
    feed.launch()
    feed.scrapes(60, **{**STRICT, "tau": 2.17, "rate": 0.389}, calls=18, tokens=40, finished=1, decoded=42)
    found = summary(web, **PAST)
    assert found["evidence"] == "counters"
    assert found["accept_length"]["value"] == pytest.approx((40 - 1) / 18)
    assert found["accept_length"]["n"] == 60 * 18
    assert found["accept_length"]["interval_method"].startswith("block bootstrap over scrapes")
    assert found["draft_acceptance"]["value"] == pytest.approx(21 / (18 * 3))
    counts = found["counts"]
    assert (counts["verify_calls"], counts["generated_tokens"], counts["finished_requests"]) == (
        1080,
        2400,
        60,
    )
    assert (counts["accepted_drafts"], counts["accepted_drafts_kind"]) == (60 * 21, "derived")
    assert counts["proposed_drafts"] == 1080 * 3
    assert counts["decoded_tokens"] == 60 * 42
    assert "40 tokens from 18 calls with 24 accepted drafts" in counts["explanation"]
    assert check(found, "gauges agree with counters") is True
    assert check(found, "every expected rank reports") is True
    assert found["verdict"]["state"] == "ok"
    assert any("Whether it pays is not known" in reason for reason in found["verdict"]["reasons"])


def test_requests_are_the_best_evidence(web: Web, feed: Feed) -> None:
    feed.launch()
    feed.scrapes(60, **STRICT, calls=13, tokens=32, finished=1)
    feed.send(*(request(index, T0 + (index + 1) * SCRAPE_MS, (6, 0, 3, 4)) for index in range(60)))
    found = summary(web)
    assert found["evidence"] == "request_histograms"
    assert found["accept_length"]["value"] == pytest.approx(1 + 18 / 13)
    assert "clustered by request" in found["accept_length"]["interval_method"]
    assert found["draft_acceptance"]["value"] == pytest.approx(18 / 39)
    assert found["counts"]["accepted_drafts"] == 60 * 18
    assert found["counts"]["accepted_drafts_kind"] == "reported"
    assert check(found, "Σh = verify calls") is True
    [accepted] = [each for each in found["checks"] if each["name"] == "accepted ≤ proposed"]
    assert (accepted["passed"], accepted["message"]) == (True, f"{60 * 18} of {60 * 39} drafts")


def test_a_few_reported_requests_do_not_displace_the_counters(web: Web, feed: Feed) -> None:
    feed.launch()
    feed.scrapes(60, **STRICT, calls=100, tokens=201, finished=1)
    feed.send(request(1, T0 + SCRAPE_MS, (6, 0, 3, 4)))
    assert summary(web)["evidence"] == "counters"


def test_an_old_rate_is_shown_with_its_floor_and_strict_equivalent(web: Web, feed: Feed) -> None:
    feed.launch(engine_version="0.5.8")
    feed.scrapes(20, tau=2.0, rate=0.5, running=1)
    found = summary(web)
    assert found["evidence"] == "gauges"
    assert found["accept_length"]["value"] == 2.0
    assert found["draft_acceptance"]["value"] == pytest.approx(1 / 3)
    rate = found["engine_reported_rate"]
    assert (rate["formula"], rate["includes_bonus"], rate["floor"]) == ("τ/D", True, 0.25)
    assert rate["strict_equivalent"] == pytest.approx(1 / 3)
    assert rate["number"]["value"] == 0.5
    assert "0.5.8" in rate["number"]["source"]
    assert found["counts"]["verify_calls"] is None
    assert found["counts"]["accepted_drafts"] is None
    assert check(found, "engine's rate fits its version's formula") is True


def test_a_dead_draft_is_called_one(web: Web, feed: Feed) -> None:
    feed.launch(engine_version="0.5.8", speculative={"num_steps": 5, "num_draft_tokens": 6})
    feed.scrapes(20, tau=1.12, rate=1.12 / 6, running=4)
    found = summary(web, **PAST)
    assert found["draft_acceptance"]["value"] == pytest.approx(0.024)
    assert found["engine_reported_rate"]["floor"] == pytest.approx(1 / 6)
    assert found["verdict"]["state"] == "bad"
    assert found["verdict"]["headline"] == "Almost no draft is right"
    assert any("captured layers" in reason for reason in found["verdict"]["reasons"])


def test_numbers_that_contradict_the_version_are_undetermined(web: Web, feed: Feed) -> None:
    feed.launch(engine_version="0.5.15")
    feed.scrapes(20, tau=2.0, rate=0.5, running=1)
    found = summary(web, **PAST)
    rate = found["engine_reported_rate"]
    assert (rate["formula"], rate["includes_bonus"], rate["strict_equivalent"]) == (
        "undetermined",
        None,
        None,
    )
    assert rate["number"]["state"] == "undetermined"
    assert check(found, "engine's rate fits its version's formula") is False
    assert found["verdict"]["state"] == "warn"


def test_frozen_gauges_of_an_idle_engine_are_no_data(web: Web, feed: Feed) -> None:
    feed.launch(engine_version="0.5.8")
    feed.scrapes(12, tau=2.0, rate=0.5, running=1, decoded=10)
    feed.scrapes(600, start_ms=T0 + 12 * SCRAPE_MS, tau=3.9, rate=0.975, running=0, decoded=0)
    found = summary(web, to=str(T0 + 600 * SCRAPE_MS), from_=str(T0), step="5s")
    assert found["accept_length"]["value"] == 2.0
    assert found["accept_length"]["state"] == "idle"
    assert found["requests_running"]["value"] == 0
    assert found["verdict"]["state"] == "idle"


def test_before_the_first_window_there_is_no_data_and_no_zero(web: Web, feed: Feed) -> None:
    feed.launch(engine_version="0.5.8", time_ms=NOW - 60_000)
    feed.scrapes(11, start_ms=NOW - 60_000, running=1, queued=0)
    found = summary(web)
    assert found["evidence"] == "none"
    assert (found["accept_length"]["value"], found["accept_length"]["state"]) == (None, "no_data")
    assert found["requests_running"]["value"] == 1
    assert found["verdict"] == {
        "state": "unknown",
        "headline": "No accept length yet",
        "reasons": found["verdict"]["reasons"],
    }


def test_few_cycles_say_so(web: Web, feed: Feed) -> None:
    feed.launch(time_ms=NOW - 20_000)
    feed.scrapes(3, start_ms=NOW - 20_000, **STRICT, calls=10, tokens=21, finished=1)
    found = summary(web)
    assert found["accept_length"]["state"] == "few"
    assert found["verdict"]["headline"].startswith("Too few cycles")


def test_data_that_stopped_is_stale(web: Web, feed: Feed) -> None:
    feed.launch()
    feed.scrapes(60, **STRICT, calls=18, tokens=40, finished=1)
    found = summary(web)  # the newest scrape is 55 minutes old
    assert found["accept_length"]["state"] == "stale"
    assert found["accept_length"]["age_seconds"] == pytest.approx((NOW - T0 - 60 * SCRAPE_MS) / 1000)
    assert found["verdict"]["headline"] == "Nothing was read for 3300 s; the last known state is shown"


def test_impossible_counts_are_refused_not_clipped(web: Web, feed: Feed) -> None:
    feed.launch()
    feed.scrapes(60, calls=100, tokens=50, finished=1, running=1)
    found = summary(web)
    assert (found["accept_length"]["value"], found["accept_length"]["state"]) == (None, "undetermined")
    assert found["counts"]["accepted_drafts"] is None
    assert check(found, "τ ≥ 1") is False
    assert found["verdict"]["headline"] == "The engine's counts contradict each other"


def test_more_accepted_than_proposed_fails_its_check(web: Web, feed: Feed) -> None:
    feed.launch()
    feed.scrapes(60, calls=10, tokens=51, finished=1, running=1)
    found = summary(web)
    assert check(found, "accepted ≤ proposed") is False
    assert (found["draft_acceptance"]["value"], found["draft_acceptance"]["state"]) == (None, "undetermined")


def test_launches_with_different_depths_add_up(web: Web, feed: Feed) -> None:
    feed.launch("a1")
    feed.scrapes(20, calls=100, tokens=301, finished=1, running=1)
    feed.launch("b2", T0 + 300_000, speculative={"num_steps": 2, "num_draft_tokens": 3}, reason="restarted")
    feed.scrapes(20, start_ms=T0 + 300_000, calls=100, tokens=201, finished=1, running=1)
    both = summary(web)
    assert both["counts"]["proposed_drafts"] == 20 * (100 * 3 + 100 * 2)
    assert both["draft_acceptance"]["value"] == pytest.approx(300 / 500)
    assert any("mixes 2 launches" in reason for reason in both["verdict"]["reasons"])
    newest = summary(web, launch="newest")
    assert newest["counts"]["proposed_drafts"] == 20 * 100 * 2
    assert newest["accept_length"]["value"] == pytest.approx(2.0)
    first = summary(web, launch=both["launch"]["id"] - 1)
    assert first["accept_length"]["value"] == pytest.approx(3.0)
    assert first["num_draft_tokens"]["value"] == 4


def test_a_changing_width_leaves_the_proposed_drafts_unknown(web: Web, feed: Feed) -> None:
    feed.launch()
    feed.scrapes(20, calls=100, tokens=201, finished=1, running=1, width=4)
    feed.scrapes(20, start_ms=T0 + 300_000, calls=100, tokens=201, finished=1, running=1, width=2)
    found = summary(web)
    assert found["accept_length"]["value"] == pytest.approx(2.0)
    assert found["counts"]["proposed_drafts"] is None
    assert found["draft_acceptance"]["value"] is None
    assert "D changed" in found["draft_acceptance"]["note"]


def test_an_adaptive_launch_is_never_taken_for_constant(web: Web, feed: Feed) -> None:
    feed.launch(speculative={"adaptive": True})
    feed.scrapes(20, calls=100, tokens=201, finished=1, running=1, width=4)
    assert summary(web)["counts"]["proposed_drafts"] is None


def test_tensor_parallel_mirrors_are_not_added_up_and_data_parallel_ranks_are(web: Web, feed: Feed) -> None:
    feed.launch(parallelism=Parallelism(tp_size=4, dp_size=2, pp_size=1))
    time_ms = NOW - 10_000
    for dp in (0, 1):
        for tp in (2 * dp, 2 * dp + 1):
            feed.send(
                growth("tokens.decoded", 100, time_ms, rank_labels(dp=dp, tp=tp)),
                level("requests.running", 3, time_ms, dp=dp, tp=tp),
                level("spec.accept_length", 2.0 + dp, time_ms, dp=dp, tp=tp),
            )
    found = summary(web)
    assert found["counts"]["decoded_tokens"] == 200
    assert found["requests_running"]["value"] == 6
    assert found["accept_length"]["value"] == 2.5
    assert found["generated_tokens_per_second"]["value"] == pytest.approx(200 / 5)
    assert check(found, "every expected rank reports") is True


def test_a_rank_that_is_silent_fails_its_check_and_an_idle_one_does_not_count(web: Web, feed: Feed) -> None:
    feed.launch(parallelism=Parallelism(tp_size=1, dp_size=3, pp_size=1))
    time_ms = NOW - 10_000
    for dp, running in ((0, 2), (1, 0)):
        feed.send(
            level("requests.running", running, time_ms, dp=dp),
            level("spec.accept_length", 2.0 + dp, time_ms, dp=dp),
        )
    found = summary(web)
    assert found["accept_length"]["value"] == 2.0
    assert check(found, "every expected rank reports") is False


def test_prefill_dilution_of_old_versions_is_said(web: Web, feed: Feed) -> None:
    feed.launch(engine_version="0.5.2")
    feed.scrapes(20, tau=1.8, running=1)
    found = summary(web)
    assert "counts each prefill as a cycle" in found["accept_length"]["note"]
    assert found["engine_reported_rate"]["number"]["value"] is None
    assert "no rate was printed" in found["engine_reported_rate"]["number"]["note"]


def test_speculation_that_is_off_is_said(web: Web, feed: Feed) -> None:
    off = {
        "algorithm": None,
        "num_steps": None,
        "eagle_topk": None,
        "num_draft_tokens": None,
        "draft_model": None,
    }
    feed.launch(speculative=off)
    feed.scrapes(20, running=1, tokens=40, finished=1)
    found = summary(web)
    assert found["verdict"]["headline"] == "Speculation is off"
    assert found["num_draft_tokens"]["state"] == "no_data"


def test_a_server_without_measurements_has_no_data(web: Web, feed: Feed) -> None:
    feed.health(NOW - 1_000)
    found = summary(web)
    assert (found["launch"], found["evidence"]) == (None, "none")
    assert found["verdict"]["headline"] == "No data in this range"


def test_demo_data_is_labelled(web: Web, feed: Feed) -> None:
    feed.launch(is_demo=True)
    feed.scrapes(5, **STRICT)
    assert summary(web)["is_demo"] is True


def test_the_summary_as_csv_has_a_row_per_number(web: Web, feed: Feed) -> None:
    feed.launch()
    feed.scrapes(5, **STRICT)
    answer = web.get("/api/v1/acceptance/summary", params={"server": SERVER, "format": "csv"})
    assert answer.headers["content-type"].startswith("text/csv")
    lines = answer.text.splitlines()
    assert lines[0].startswith("number,value,unit,state,definition")
    assert len(lines) == 1 + 9


def test_an_unknown_server_or_launch_is_a_404_with_the_remedy(web: Web, feed: Feed) -> None:
    feed.launch()
    wrong = web.get("/api/v1/acceptance/summary", params={"server": "gpu2:30000"})
    assert wrong.status_code == 404
    assert "Did you mean 'gpu1:30000'?" in wrong.json()["detail"]
    launch = web.get("/api/v1/acceptance/summary", params={"server": SERVER, "launch": "99"})
    assert launch.status_code == 404
    text = web.get("/api/v1/acceptance/summary", params={"server": SERVER, "launch": "latest"})
    assert text.status_code == 422
    assert "'newest'" in text.json()["detail"]


def test_one_rank_alone_has_its_own_gauges_and_no_counters_of_the_whole_server(web: Web, feed: Feed) -> None:
    feed.launch(parallelism=Parallelism(tp_size=1, dp_size=2, pp_size=1))
    time_ms = NOW - 10_000
    for dp in (0, 1):
        feed.send(
            level("requests.running", 1 + dp, time_ms, dp=dp),
            level("spec.accept_length", 2.0 + dp, time_ms, dp=dp),
        )
    feed.scrapes(2, start_ms=NOW - 15_000, calls=100, tokens=201, finished=1)
    assert summary(web)["evidence"] == "counters"
    found = summary(web, rank=1)
    assert (found["evidence"], found["accept_length"]["value"]) == ("gauges", 3.0)
    assert found["requests_running"]["value"] == 2
    assert found["counts"]["generated_tokens"] is None
    assert check(found, "every expected rank reports") is None
    points = web.api("/acceptance/trend", server=SERVER, rank=0, from_="now-1m", step="10s")["points"]
    assert [point["accept_length"] for point in points if point["accept_length"]] == [2.0]


def test_a_launch_without_speculation_does_not_enter_the_derived_counts(web: Web, feed: Feed) -> None:
    feed.launch("off", speculative={"algorithm": None, "num_draft_tokens": None})
    feed.scrapes(10, tokens=500, finished=2, running=1)
    feed.launch("on", T0 + 60_000)
    feed.scrapes(10, start_ms=T0 + 60_000, calls=100, tokens=201, finished=1, running=1)
    counts = summary(web, **PAST)["counts"]
    derived = counts["generated_tokens"] - counts["finished_requests"] - counts["verify_calls"]
    assert counts["accepted_drafts"] == derived == 10 * 100
