"""The generic series query through the API, on both databases."""

from __future__ import annotations

from typing import Any

import pytest
from tests.server.client import Web
from tests.server.seed import SCRAPE_MS, SERVER, T0, Feed, growth, latency, level, rank_labels

MINUTE_MS = 60_000
BOUNDS = (0.1, 0.2, 0.4)


def query(web: Web, *metrics: str, minutes: int = 2, **parameters: Any) -> dict[str, Any]:
    asked = {"from_": T0, "to": T0 + minutes * MINUTE_MS, "step": "1m", "metric": list(metrics), **parameters}
    found = web.api("/series/query", **asked)
    assert isinstance(found, dict)
    return found


def values(found: dict[str, Any]) -> list[list[float | None]]:
    return [line["values"] for line in found["series"]]


def seed_ranks(feed: Feed) -> None:
    """Two data-parallel ranks with two mirrors each, one scrape in the first minute."""
    feed.launch()
    for dp in (0, 1):
        for tp in (2 * dp, 2 * dp + 1):
            feed.send(
                growth("tokens.decoded", 50 + dp, T0 + 10_000, rank_labels(dp=dp, tp=tp)),
                level("requests.running", 2 + dp, T0 + 10_000, dp=dp, tp=tp),
                level("spec.accept_length", 2 + dp, T0 + 10_000, dp=dp, tp=tp),
                level("kv.usage", 0.25 * (1 + dp), T0 + 10_000, dp=dp, tp=tp),
            )


def test_a_gap_is_null_and_zero_is_zero(web: Web, feed: Feed) -> None:
    feed.launch()
    feed.send(level("requests.queued", 0, T0 + 1_000))
    found = query(web, "requests.queued")
    assert found["time_ms"] == [T0, T0 + MINUTE_MS]
    assert values(found) == [[0.0, None]]
    assert found["series"][0]["n"] == [1, 0]


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ("tokens.decoded", (50 + 51) / 5),
        ("requests.running", 5.0),
        ("spec.accept_length", 2.5),
        ("kv.usage", 0.5),
    ],
)
def test_ranks_combine_as_the_catalogue_says(web: Web, feed: Feed, metric: str, expected: float) -> None:
    seed_ranks(feed)
    found = query(web, metric, minutes=1)
    assert values(found) == [[pytest.approx(expected)]]
    assert found["series"][0]["members"] == 2
    assert found["series"][0]["labels"] == {"model_name": "llama"}


def test_without_aggregation_every_series_is_a_line(web: Web, feed: Feed) -> None:
    seed_ranks(feed)
    found = query(web, "requests.running", minutes=1, aggregate="none")
    assert values(found) == [[2.0], [2.0], [3.0], [3.0]]
    assert found["series"][3]["labels"]["tp_rank"] == "3"


def test_rank_and_label_filters(web: Web, feed: Feed) -> None:
    seed_ranks(feed)
    assert values(query(web, "requests.running", minutes=1, rank=1)) == [[3.0]]
    assert values(query(web, "requests.running", minutes=1, label="tp_rank=1", aggregate="none")) == [[2.0]]
    assert values(query(web, "requests.running", minutes=1, label="tp_rank=9")) == []


@pytest.mark.parametrize(
    ("stat", "expected"), [("mean", 3.0), ("min", 1.0), ("max", 5.0), ("last", 5.0), (None, 3.0)]
)
def test_summaries_of_levels(web: Web, feed: Feed, stat: str | None, expected: float) -> None:
    feed.launch()
    feed.send(*(level("requests.running", value, T0 + 1_000 * (value + 1)) for value in (1, 3, 5)))
    asked = {} if stat is None else {"stat": stat}
    assert values(query(web, "requests.running", minutes=1, **asked)) == [[expected]]


def test_growth_is_a_rate_over_observed_time_or_a_sum(web: Web, feed: Feed) -> None:
    feed.launch()
    feed.scrapes(3, tokens=100)
    rate = query(web, "tokens.generated", minutes=1)
    assert values(rate) == [[20.0]]
    assert (rate["series"][0]["unit"], rate["series"][0]["stat"]) == ("tokens/s", "rate")
    assert values(query(web, "tokens.generated", minutes=1, stat="sum")) == [[300.0]]


def test_histograms_add_up_before_their_quantile(web: Web, feed: Feed) -> None:
    feed.launch()
    metric = "latency.inter_token"
    feed.send(
        latency(metric, T0 + SCRAPE_MS, (10, 0, 0, 0), BOUNDS),
        latency(metric, T0 + 2 * SCRAPE_MS, (0, 0, 10, 0), BOUNDS),
    )
    assert values(query(web, metric, minutes=1)) == [[pytest.approx(0.1)]]
    assert values(query(web, metric, minutes=1, stat="p99")) == [[pytest.approx(0.396)]]
    assert values(query(web, metric, minutes=1, stat="mean")) == [[pytest.approx(0.25)]]
    assert values(query(web, metric, minutes=1, stat="count")) == [[20.0]]


def test_histograms_with_other_bounds_are_not_mixed(web: Web, feed: Feed) -> None:
    feed.launch()
    metric = "latency.queue"
    feed.send(
        latency(metric, T0 + SCRAPE_MS, (10, 0, 0, 0), BOUNDS),
        latency(metric, T0 + 2 * SCRAPE_MS, (1, 9), (0.3,)),
    )
    parameters = {"metric": metric, "from": T0, "to": T0 + MINUTE_MS, "step": "1m"}
    answer = web.get("/api/v1/series/query", params=parameters)
    assert answer.status_code == 422
    assert "different bucket bounds" in answer.json()["detail"]
    assert values(query(web, metric, minutes=1, stat="count")) == [[20.0]]


def test_launches_are_lines_of_their_own_unless_a_server_is_one_line(web: Web, feed: Feed) -> None:
    feed.launch("a1")
    feed.scrapes(5, tokens=100, running=2)
    feed.launch("b2", T0 + MINUTE_MS)
    feed.scrapes(5, start_ms=T0 + MINUTE_MS, tokens=50, running=4)
    by_launch = query(web, "requests.running")
    assert values(by_launch) == [[2.0, None], [None, 4.0]]
    first, second = (line["launch_id"] for line in by_launch["series"])
    assert values(query(web, "requests.running", aggregate="server")) == [[2.0, 4.0]]
    assert values(query(web, "requests.running", launch=first)) == [[2.0, None]]
    assert values(query(web, "requests.running", server=SERVER, launch="newest")) == [[None, 4.0]]
    assert values(query(web, "tokens.generated", aggregate="server", stat="sum")) == [[500.0, 250.0]]
    assert second != first


def test_growth_of_two_launches_in_one_bucket_adds_up_and_their_rates_do_not(web: Web, feed: Feed) -> None:
    feed.launch("a1")
    feed.scrapes(2, tokens=100)
    feed.launch("b2", T0 + 20_000)
    feed.scrapes(2, start_ms=T0 + 20_000, tokens=200)
    assert values(query(web, "tokens.generated", minutes=1, aggregate="server", stat="sum")) == [[600.0]]
    assert values(query(web, "tokens.generated", minutes=1, aggregate="server")) == [[30.0]]


def test_csv_holds_observed_values_only_and_untrusted_labels_are_harmless(web: Web, feed: Feed) -> None:
    feed.launch()
    feed.send(growth("tokens.generated", 10, T0 + SCRAPE_MS, {"model_name": "=cmd()", "is_streaming": "+1"}))
    parameters = {
        "metric": "tokens.generated",
        "from": T0,
        "to": T0 + 2 * MINUTE_MS,
        "step": "1m",
        "format": "csv",
    }
    lines = web.get("/api/v1/series/query", params=parameters).text.splitlines()
    assert lines[0] == "time,server,launch_id,metric,stat,unit,labels,value,n"
    assert len(lines) == 2
    assert lines[1].startswith("2026-03-01T12:00:00.000Z,gpu1:30000,")
    assert lines[1].endswith(",2.0,1")
    assert not any(cell.startswith(("=", "+", "-", "@")) for cell in lines[1].split(","))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"metric": "tokens.decodd"}, "Did you mean 'tokens.decoded'?"),
        ({"metric": "requests.running", "stat": "p99"}, "use one of mean, min, max, last"),
        ({"metric": "requests.running", "label": "tp_rank"}, "is not NAME=VALUE"),
        ({"metric": "requests.running", "from": "now-1d", "step": "1s"}, "over the limit of 20000"),
        ({"metric": "requests.running", "step": "never"}, "is not a length of time"),
        ({"metric": "requests.running", "rank": "-1"}, "query.rank"),
        ({"metric": "requests.running", "points": "0"}, "query.points"),
        ({"metric": "requests.running", "aggregate": "all"}, "query.aggregate"),
    ],
)
def test_wrong_questions_are_explained(lone_web: Web, parameters: dict[str, str], message: str) -> None:
    answer = lone_web.get("/api/v1/series/query", params=parameters)
    assert answer.status_code == 422
    assert message in answer.json()["detail"]


@pytest.mark.parametrize("parameters", [{"server": "nope"}, {"launch": "99"}, {"launch": "newest"}])
def test_unknown_servers_and_launches(lone_web: Web, parameters: dict[str, str]) -> None:
    answer = lone_web.get("/api/v1/series/query", params={"metric": "requests.running", **parameters})
    assert answer.status_code == 404


def test_points_choose_a_step_that_leaves_no_bucket_empty_between_scrapes(web: Web, feed: Feed) -> None:
    feed.launch()
    feed.scrapes(60, running=1)
    found = web.api(
        "/series/query", metric="requests.running", from_=T0 + 10_000, to=T0 + 290_000, points=1_000
    )
    assert found["step_seconds"] == 10.0
    assert None not in found["series"][0]["values"]
