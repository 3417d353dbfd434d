"""Each bad input: a state, words, a remedy, bounded memory, no value believed; other targets unaffected."""

from __future__ import annotations

import asyncio
import ssl
import tracemalloc
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest
import trustme
from tests.collectors.fetch.servers import (
    Answering,
    Request,
    always,
    drip,
    flood,
    hang,
    reset,
    response,
    serving,
)
from tests.collectors.runner.engine import PATIENT_SECONDS, Bench, Engine, MemorySink, bench

from specscope_collectors import increments
from specscope_collectors.alternation import HELD_SCRAPES
from specscope_collectors.config import MIB, CollectorOptions, parse_target
from specscope_collectors.observations import HealthState, Increment, Level
from specscope_collectors.plan import Watching
from specscope_collectors.runner import Runner

TOKENS = "tokens.generated"
GOOD = Engine().metrics()
OWN = 'sglang:generation_tokens_total{engine_type="unified",model_name="models/tiny-target"}'


@pytest.fixture
def b() -> Iterator[Bench]:
    """Run a collector that has seen one good answer."""
    with bench(max_body_bytes=4 * MIB, max_series_per_target=1000) as made:
        made.scrape()
        yield made


def answer(b: Bench, answering: Answering | bytes) -> None:
    """Let ``/metrics`` answer so from now on, and scrape."""
    b.engine.overrides["/metrics"] = (
        always(response(answering)) if isinstance(answering, bytes) else answering
    )
    b.scrape()


def recovered(b: Bench) -> float:
    """Return the growth of the next good scrape, in which 11 tokens were generated."""
    b.engine.recover()
    b.engine.serve(tokens=11)
    b.scrape()
    assert b.sink.health().state is HealthState.OK
    assert len(b.sink.launches()) == 1
    return b.sink.increments()[TOKENS].value


REDIRECT = always(response(b"", "301 Moved", location="http://login.example/"))


@dataclass
class Refused:
    """An answer from which nothing may be taken."""

    name: str
    answering: Answering | bytes
    state: HealthState
    words: str


REFUSED = [
    Refused("html", b"<!doctype html><html>hello</html>", HealthState.NOT_THIS_ENGINE, "HTML"),
    Refused("json", b'{"detail": "hello"}', HealthState.NOT_THIS_ENGINE, "JSON"),
    Refused("binary", bytes(range(256)) * 10, HealthState.NOT_THIS_ENGINE, "not SGLang's metrics"),
    Refused("another product", b"# TYPE other:x gauge\nother:x 1\n", HealthState.NOT_THIS_ENGINE, "other:x"),
    Refused("truncated body", GOOD[: len(GOOD) - 20], HealthState.INVALID, "cut off"),
    Refused("truncated http", always(response(GOOD)[:-20]), HealthState.INVALID, "broke off"),
    Refused("200 MB", flood(200 * MIB), HealthState.TOO_LARGE, "bytes"),
    Refused("slow drip", drip, HealthState.TIMEOUT, "0.3 s"),
    Refused("hanging", hang, HealthState.TIMEOUT, "0.3 s"),
    Refused("reset", reset, HealthState.UNREACHABLE, ""),
    Refused("redirect", REDIRECT, HealthState.HTTP_ERROR, "login.example"),
    Refused("server error", always(response(b"", "500 Oops")), HealthState.HTTP_ERROR, "500"),
    Refused("unauthorized", always(response(b"", "401 No")), HealthState.UNAUTHORIZED, "key"),
]  # fmt: skip


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.name)
def test_nothing_is_taken_from_it_and_nothing_is_lost(b: Bench, case: Refused) -> None:
    if case.state is HealthState.TIMEOUT:
        b.give_up_after(0.3)
    answer(b, case.answering)
    b.give_up_after(PATIENT_SECONDS)
    health = b.sink.health()
    assert health.state in ({case.state, HealthState.INVALID} if case.name == "reset" else {case.state})
    assert case.words in health.detail
    assert health.remedy
    kinds = [each for each in b.sink.batches[-1].observations if isinstance(each, Increment | Level)]
    assert {each.metric.partition(".")[0] for each in kinds} == {"scrape"}
    assert b.sink.levels()["scrape.up"] == 0
    assert recovered(b) == 11


@dataclass
class Partly:
    """An answer that is believed but for some values."""

    name: str
    extra: str
    refused: int


PARTLY = [
    Partly("NaN", 'sglang:num_queue_reqs{model_name="m"} NaN\n', 1),
    Partly("Inf", 'sglang:num_queue_reqs{model_name="m"} +Inf\n', 1),
    Partly("negative counter", 'sglang:prompt_tokens_total{model_name="m"} -5\n', 1),
    Partly("duplicate series", 'sglang:prompt_tokens_total{model_name="m"} 5\n'
           'sglang:prompt_tokens_total{model_name="m"} 6\n', 1),
    Partly("garbled line", "sglang:prompt_tokens_total{model_name= 5\n", 1),
]  # fmt: skip


@pytest.mark.parametrize("case", PARTLY, ids=lambda case: case.name)
def test_bad_values_are_refused_and_counted_and_the_others_are_kept(b: Bench, case: Partly) -> None:
    b.engine.extra = case.extra
    b.engine.serve(tokens=5)
    b.scrape()
    health = b.sink.health()
    assert (health.state, health.refused) == (HealthState.PARTIAL, case.refused)
    assert f"{case.refused} values refused" in health.detail
    assert b.sink.increments()[TOKENS].value == 5
    assert not {"requests.queued", "tokens.prompt"} & {*b.sink.levels(), *b.sink.increments()}
    b.engine.extra = ""
    assert recovered(b) == 11


def test_a_million_label_values_stay_within_the_limits() -> None:
    many = b"".join(b'sglang:num_requests_total{a="%d"} 1\n' % n for n in range(1_000_000))
    with bench(scrape_timeout_seconds=30, max_body_bytes=64 * MIB, max_series_per_target=1000) as b:
        b.scrape()
        b.engine.serve(tokens=5)
        answer(b, b.engine.metrics() + many)
        health = b.sink.health()
        assert health.state is HealthState.PARTIAL
        assert health.refused > 990_000
        assert "SPECSCOPE_MAX_SERIES_PER_TARGET" in health.remedy
        assert len(b.sink.batches[-1].observations) < 1100
        assert len(b.sink.batches[-1].checkpoint or b"") < 100_000
        assert b.sink.increments()[TOKENS].value == 5


def test_one_with_200_megabytes_is_read_in_bounded_memory(b: Bench) -> None:
    tracemalloc.start()
    try:
        answer(b, flood(200 * MIB, chunk=GOOD * 90))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert b.sink.health().state is HealthState.TOO_LARGE
    assert peak < 30 * MIB


@pytest.mark.parametrize("content_type", ["text/html", "application/json", "application/octet-stream", ""])
def test_a_wrong_content_type_does_not_matter_when_the_body_is_right(b: Bench, content_type: str) -> None:
    b.engine.serve(tokens=4)
    answer(b, always(response(b.engine.metrics(), content_type=content_type)))
    assert b.sink.health().state is HealthState.OK
    assert b.sink.increments()[TOKENS].value == 4


def test_a_fall_within_one_process_never_gives_negative_growth(b: Bench) -> None:
    for tokens in (1500, 1900, 3, 7):
        b.engine.tokens = tokens
        b.scrape(1 + HELD_SCRAPES)
    values = [each.value for each in b.sink.all_increments("tokens.generated") if each.value]
    assert values == [500, 400, 3, 4]


def test_a_bad_certificate_is_a_state_of_its_own() -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("localhost").configure_cert(context)
    sink = MemorySink()
    with serving(Engine(), context) as server:
        Runner([parse_target(server.url)], sink, CollectorOptions()).scrape_once()
    assert sink.health().state is HealthState.TLS_ERROR
    assert "--ca-file" in sink.health().remedy
    assert sink.batches[0].launch_key is None


def test_a_bad_server_info_does_not_spoil_the_metrics() -> None:
    bodies = {b"<html>": HealthState.NOT_THIS_ENGINE, b'{"model_path": ': HealthState.INVALID}
    for body, state in bodies.items():
        with bench(Engine(overrides={"/server_info": always(response(body))})) as b:
            b.scrape(5)
            assert b.sink.health("sglang_info").state is state
            assert b.sink.health().state is HealthState.OK
            assert b.sink.launches()[0].version_source == "metric_names"


def test_an_endless_server_info_is_given_up_long_before_the_limit_of_metrics() -> None:
    with bench(Engine(overrides={"/server_info": flood(20 * MIB)})) as b:
        b.scrape()
        assert b.sink.health("sglang_info").state is HealthState.TOO_LARGE
        assert b.sink.health().state is HealthState.OK
        assert b.sink.launches()[0].version_source == "metric_names"


def test_every_bad_target_at_once_leaves_the_good_one_alone() -> None:
    asked: list[int] = []

    async def route(request: Request, writer: asyncio.StreamWriter) -> None:
        at = int(request.path.split("/")[1])
        asked.append(at)
        case = REFUSED[at].answering
        await (always(response(case)) if isinstance(case, bytes) else case)(request, writer)

    sink = MemorySink()
    options = CollectorOptions(scrape_timeout_seconds=0.5, max_body_bytes=MIB)
    with serving(Engine()) as good, serving(route) as bad:
        patient = replace(options, scrape_timeout_seconds=PATIENT_SECONDS)
        targets = [Watching(target=parse_target(f"good={good.url}"), options=patient)]
        bad_ones = (parse_target(f"{bad.url}/{at}") for at in range(len(REFUSED)))
        targets += (Watching(target=each, options=options) for each in bad_ones)
        Runner(targets, sink, options).scrape_once()
    assert set(asked) == set(range(len(REFUSED)))
    by_name = {batch.target.name: batch for batch in sink.batches}
    assert len(by_name) == len(REFUSED) + 1
    assert by_name["good"].launch_key is not None
    assert [batch.target.name for batch in sink.batches if batch.launch_key] == ["good"]


def test_series_beyond_what_is_remembered_are_refused_and_counted(
    b: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(increments, "MAX_REMEMBERED_SERIES", 5)
    lines = [f'sglang:prompt_tokens_total{{model_name="m",user="{at}"}} 1\n' for at in range(9)]
    b.engine.extra = "".join(lines)
    b.scrape()
    health = b.sink.health()
    assert (health.state, health.refused) == (HealthState.PARTIAL, 7)
    assert "7 new series refused" in health.detail
    assert "never repeat" in health.remedy
