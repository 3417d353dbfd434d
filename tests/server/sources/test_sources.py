"""Health of sources and ranks through the API, on both databases."""

from __future__ import annotations

from tests.server.client import Web
from tests.server.seed import NOW, SERVER, Feed, level

from specscope_collectors.observations import HealthState, Level, Parallelism, Target


def test_a_failing_source_says_since_when_what_and_what_to_do(web: Web, feed: Feed) -> None:
    feed.health(NOW - 20_000, http_status=200, body_bytes=90_000, series=400)
    for age_ms in (15_000, 10_000, 5_000):
        feed.health(
            NOW - age_ms, HealthState.DISABLED, http_status=404, remedy="--enable-metrics", refused=2
        )  # fmt: skip
    (server,) = web.api("/sources", server=SERVER)["servers"]
    assert server["state"] == "failing"
    (source,) = server["sources"]
    assert (source["state"], source["http_status"], source["refused"]) == ("disabled", 404, 2)
    assert source["since"] == "2026-03-01T12:59:45.000Z"
    assert source["last_good"] == "2026-03-01T12:59:40.000Z"
    assert (source["age_seconds"], source["remedy"]) == (5.0, "--enable-metrics")


def test_what_is_missing_and_how_to_turn_it_on_is_shown(web: Web, feed: Feed) -> None:
    missing = {"time by phase": "set SGLANG_ENABLE_METRICS_DEVICE_TIMER=1"}
    feed.health(NOW - 1_000, HealthState.PARTIAL, missing=missing)
    feed.health(NOW - 1_000, source="sglang_info")
    (server,) = web.api("/sources")["servers"]
    assert server["state"] == "partial"
    assert [source["source"] for source in server["sources"]] == ["sglang_info", "sglang_metrics"]
    assert server["sources"][1]["missing"] == missing


def test_a_collector_that_went_away_is_stale(web: Web, feed: Feed) -> None:
    feed.health(NOW - 120_000)
    (server,) = web.api("/sources")["servers"]
    assert (server["state"], server["sources"][0]["state"]) == ("stale", "ok")


def test_ranks_that_report_are_counted_against_those_expected(web: Web, feed: Feed) -> None:
    feed.launch(parallelism=Parallelism(tp_size=8, dp_size=4, pp_size=1))
    feed.send(
        *(
            level("requests.running", 1, NOW - 1_000, dp=dp, tp=2 * dp + tp)
            for dp in range(3)
            for tp in (0, 1)
        )
    )
    feed.health(NOW - 1_000)
    ranks = web.api("/sources")["servers"][0]["ranks"]
    assert (ranks["reporting"], ranks["expected"]) == (3, 4)
    assert (ranks["missing"], ranks["text"]) == (["dp 3"], "3/4 ranks: missing dp 3")
    checks = web.api("/acceptance/summary", server=SERVER, from_="now-15m")["checks"]
    (check,) = [each for each in checks if each["name"] == "every expected rank reports"]
    assert check["passed"] is False
    assert check["message"].startswith("3/4 ranks: missing dp 3 (only the leader")


def test_versions_without_rank_labels_are_explained(web: Web, feed: Feed) -> None:
    feed.launch(engine_version="0.4.6.post5", parallelism=Parallelism(dp_size=2))
    feed.send(Level(metric="requests.running", labels={"model_name": "m"}, time_ms=NOW - 1_000, value=1))
    ranks = web.api("/sources")["servers"][0]["ranks"]
    assert (ranks["reporting"], ranks["expected"]) == (1, 2)
    assert "no rank labels" in ranks["note"]


def test_before_any_launch_nothing_is_expected(web: Web, feed: Feed) -> None:
    feed.health(NOW, HealthState.UNREACHABLE)
    assert web.api("/sources")["servers"][0]["ranks"] == {
        "reporting": 0,
        "expected": None,
        "missing": [],
        "text": "",
        "note": "no launch has been seen yet",
    }


def test_csv_has_a_row_per_source(web: Web, feed: Feed) -> None:
    feed.health(NOW)
    feed.health(NOW, source="sglang_loads")
    lines = web.get("/api/v1/sources", params={"format": "csv"}).text.splitlines()
    assert len(lines) == 3
    assert lines[1].startswith(f"{SERVER},sglang_loads,ok,")


def test_a_server_that_is_no_longer_listed_is_gone_and_comes_back(web: Web, feed: Feed) -> None:
    feed.health(NOW - 100_000, source="sglang_info")
    feed.health(NOW - 90_000, HealthState.GONE)
    (server,) = web.api("/sources")["servers"]
    assert server["state"] == "gone"
    assert web.api("/servers")["servers"][0]["state"] == "gone"
    assert web.get("/sources").text.count("gone: no longer listed") == 3  # the server and both sources
    assert "This server is <strong>gone</strong>" in web.get("/", params={"server": SERVER}).text
    feed.health(NOW - 1_000)
    assert web.api("/sources")["servers"][0]["state"] == "ok"


def test_a_collector_is_a_source_and_no_server(web: Web, feed: Feed) -> None:
    feed.health(NOW)
    own = Feed(feed.writer)
    own.target = Target(name="collector:gpu1", base_url="collector://gpu1")
    own.health(NOW, HealthState.INVALID, source="collect_file")
    found = {entry["server"]: entry["is_collector"] for entry in web.api("/sources")["servers"]}
    assert found == {SERVER: False, "collector:gpu1": True}
    assert [entry["name"] for entry in web.api("/servers")["servers"]] == [SERVER]
    page = web.get("/sources").text
    assert "collector:gpu1" in page
    assert "collect_file" in page
    assert "collector:gpu1" not in web.get("/").text
