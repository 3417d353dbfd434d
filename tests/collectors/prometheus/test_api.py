"""APIs that refuse, limit, lie or flood: a state with words and a remedy, or less asked for at a time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.collectors.fetch.servers import Answering, Request, always, flood, hang, response, serving
from tests.collectors.prometheus.recorded import read
from tests.collectors.runner.engine import MemorySink

from specscope_collectors.clock import system_clock
from specscope_collectors.job import JobError
from specscope_collectors.observations import HealthState, Increment
from specscope_collectors.sources.prometheus import connection
from specscope_collectors.sources.prometheus.job import Config

Body = Any
MINUTE_MS = 60_000


def json_response(body: Body, status: str = "200 OK") -> bytes:
    return response(json.dumps(body).encode(), status, "application/json")


def success(data: Any) -> bytes:
    return json_response({"status": "success", "data": data})


def error(status: str, text: str) -> bytes:
    return json_response({"status": "error", "errorType": "execution", "error": text}, status)


class Fake:
    """A Prometheus of one server whose counter grows by 10 a minute, with limits that can be set."""

    def __init__(self) -> None:
        self.begin_ms = (system_clock() // MINUTE_MS - 120) * MINUTE_MS
        self.longest_ms = 10**12
        """Longest range that it answers raw."""
        self.no_ranges = False
        self.busy = 0
        self.labels: dict[str, str] = {"instance": "gpu1:30000", "job": "x"}
        self.names = ["sglang:generation_tokens_total", "up"]
        self.instead: dict[str, str] = {}
        self.asked: list[str] = []

    async def __call__(self, request: Request, writer: asyncio.StreamWriter) -> None:
        parts = urlsplit(request.path)
        self.asked.append(parts.path)
        asked = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        writer.write(self._answer(parts.path, asked))
        await writer.drain()

    def _answer(self, path: str, asked: dict[str, str]) -> bytes:
        if path.endswith("/__name__/values"):
            return success(self.names)
        if path.endswith("/values"):
            return success([self.labels["instance"]])
        if asked.get("query") == "time()":
            return success({"resultType": "scalar", "result": [0, str(system_clock() / 1000)]})
        if self.busy:
            self.busy -= 1
            return error("429 Too Many Requests", "slow down")
        if path.endswith("/query_range"):
            start, end = (int(float(asked[name]) * 1000) for name in ("start", "end"))
            step = int(asked["step"].removesuffix("s")) * 1000
            return self._matrix(range(start, end + 1, step), lambda at: at // MINUTE_MS * MINUTE_MS)
        length = int(asked["query"].rpartition("[")[2].rstrip("]ms")) * (
            1 if asked["query"].endswith("ms]") else 1000
        )
        if self.no_ranges or length > self.longest_ms:
            return error("422 Unprocessable Entity", "query processing would load too many samples")
        end = int(float(asked["time"]) * 1000)
        first = (end - length) // MINUTE_MS * MINUTE_MS + MINUTE_MS
        return self._matrix(range(first, end + 1, MINUTE_MS), lambda at: at)

    def _matrix(self, times: range, newest: Callable[[int], int]) -> bytes:
        there = [at for at in times if self.begin_ms <= at <= system_clock()]
        counts = {at: str((newest(at) - self.begin_ms) // MINUTE_MS * 10) for at in there}
        values = [[at / 1000, self.instead.get(count, count)] for at, count in counts.items()]
        series = {"metric": {"__name__": self.names[0], "model_name": "m", **self.labels}, "values": values}
        return success({"resultType": "matrix", "result": [series] if values else []})


def total(fake: Fake, **options: Any) -> tuple[float, MemorySink]:
    sink = MemorySink()
    with serving(fake) as server:
        read(sink, Config(url=server.url, back_fill="3h", follow=False, **options))
    return sink.total("tokens.generated"), sink


def expected(fake: Fake) -> tuple[float, float]:
    """Return the growth up to now less the lag; it may be a minute more by the end of the test."""
    now = (system_clock() - fake.begin_ms) // MINUTE_MS * 10
    return float(now - 10), float(now)


@pytest.mark.parametrize(
    "limits",
    [{}, {"longest_ms": 120_000}, {"longest_ms": 29_000}, {"no_ranges": True}],
    ids=["none", "short", "shorter than the least", "no raw samples at all"],
)
def test_a_limit_makes_chunks_smaller_and_sums_stay_exact(limits: dict[str, Any]) -> None:
    fake = Fake()
    for name, value in limits.items():
        setattr(fake, name, value)
    grown, sink = total(fake, raw="3h")
    assert grown in expected(fake)
    assert sink.health("prometheus").state is HealthState.OK
    assert ("/api/v1/query_range" in fake.asked) is (fake.no_ranges or fake.longest_ms < 30_000)


def test_a_busy_api_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    fake, sink = Fake(), MemorySink()
    fake.busy = 2
    with serving(fake) as server:
        config = Config(url=server.url, back_fill="3h")
        for _ in range(2):
            read(sink, config)
            assert sink.health("prometheus").http_status == 429
        read(sink, config)
    assert sink.total("tokens.generated") in expected(fake)
    assert sink.health("prometheus").state is HealthState.OK


def test_names_and_labels_are_hostile() -> None:
    fake = Fake()
    fake.labels = {
        "instance": 'a"} or vector(1) # <b>\\',
        "job": "\x00\ud83d\ude00" * 50,
        "x" * 900: "y" * 900,
    }
    grown, sink = total(fake)
    assert grown in expected(fake)
    assert {batch.target.name for batch in sink.batches} == {fake.labels["instance"]}


def test_a_control_character_makes_no_server() -> None:
    fake = Fake()
    fake.labels["instance"] = "gpu\n1"
    grown, sink = total(fake)
    assert grown == 0
    assert "can be no name" in sink.health("prometheus").detail


@pytest.mark.parametrize(
    ("answering", "state", "words", "remedy"),
    [
        (always(response(b"no", "401 Unauthorized")), HealthState.UNAUTHORIZED, "401", "token_env"),
        (always(response(b"<html>", "404 Not Found")), HealthState.NOT_THIS_ENGINE, "no Prom", "/prometheus"),
        (always(response(b"<html>hello")), HealthState.NOT_THIS_ENGINE, "no answer of", "/api/v1"),
        (always(json_response({"status": "ok"})), HealthState.NOT_THIS_ENGINE, "status", "/api/v1"),
        (always(json_response([1])), HealthState.NOT_THIS_ENGINE, "it begins", "/api/v1"),
        (always(success({"resultType": "matrix"})), HealthState.NOT_THIS_ENGINE, "it begins", "/api/v1"),
        (always(error("503 Unavailable", "starting")), HealthState.HTTP_ERROR, "starting", "again"),
        (always(error("400 Bad Request", "parse error")), HealthState.HTTP_ERROR, "parse error", "log"),
        (hang, HealthState.TIMEOUT, "in time", "timeout"),
        (flood(40 * 2**20), HealthState.TOO_LARGE, "allowed", "less"),
    ],
    ids=["401", "404", "html", "status", "list", "shape", "503", "400", "hangs", "floods"],
)
def test_what_is_no_api_is_said_in_words(
    answering: Answering, state: HealthState, words: str, remedy: str
) -> None:
    sink = MemorySink()
    with serving(answering) as server:
        read(sink, Config(url=server.url, timeout="1s" if state is HealthState.TIMEOUT else "60s"))
    health = sink.health("prometheus")
    assert health.state is state
    assert words in health.detail
    assert remedy in health.remedy
    assert sink.batches[-1].target.name.startswith("collector:")


def test_an_api_without_an_engine_lists_what_is_there() -> None:
    fake = Fake()
    fake.names = ["node_cpu_seconds_total", "node_load1", "go_goroutines", "tgi_queue_size"]
    _, sink = total(fake)
    health = sink.health("prometheus")
    assert health.state is HealthState.NOT_THIS_ENGINE
    assert "node_… (2)" in health.detail
    assert "--enable-metrics" in health.remedy
    fake.names = ["sglang:generation_tokens_total"]
    with serving(fake) as server:
        read(sink, Config(url=server.url, back_fill="3h"))
    assert sink.total("tokens.generated") > 0


@pytest.mark.parametrize("garbled", ["NaN", "abc", "-5", "+Inf", ""])
def test_values_that_are_none_are_refused_and_counted(garbled: str) -> None:
    fake = Fake()
    fake.instead["100"] = garbled
    grown, sink = total(fake, raw="3h")
    assert grown in expected(fake)
    assert len({each.time_ms for each in sink.all(Increment)}) > 100
    health = sink.health("prometheus")
    assert (health.state, health.refused) == (HealthState.PARTIAL, 1)


def test_keys_and_headers_travel_and_are_kept_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROM_TOKEN", "s3cret-token")
    fake, sink = Fake(), MemorySink()
    with serving(fake) as server:
        config = Config(
            url=server.url, back_fill="3h", token_env="PROM_TOKEN", headers={"X-Scope-OrgID": "team"}
        )
        read(sink, config)
        headers = [request.headers for request in server.requests]
    assert {each["authorization"] for each in headers} == {"bearer s3cret-token"}
    assert {each["x-scope-orgid"] for each in headers} == {"team"}
    assert "s3cret" not in repr(sink.batches)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"url": "http://u:p@host:9090"}, "credentials"),
        ({"url": "ftp://host"}, "ftp"),
        ({"url": "http://h", "token_env": "NOT_SET_HERE"}, "not set"),
        ({"url": "http://h", "user": "me"}, "go together"),
        ({"url": "http://h", "headers": {"Authorization": "x"}}, "cannot be set"),
        ({"url": "http://h", "headers": {"X-A": "ü"}}, "no header can carry"),
        ({"url": "https://h", "cert_file": "/nowhere.pem"}, "cert_file"),
        ({"url": "https://h", "ca_file": "/nowhere.pem"}, "ca_file"),
    ],
)
def test_what_cannot_be_meant_is_refused_at_the_start(options: dict[str, Any], words: str) -> None:
    with pytest.raises(JobError, match=words):
        read(MemorySink(), Config(**options))


def test_the_url_of_the_pages_is_understood() -> None:
    for text in ("http://p:9090", "p:9090/", "http://p:9090/graph", "http://p:9090/api/v1/"):
        assert connection.api_url(text) == "http://p:9090"
    assert connection.api_url("https://mimir/prometheus") == "https://mimir/prometheus"
