"""An engine that has measured nothing yet may answer ``/metrics`` with nothing at all."""

from __future__ import annotations

from tests.collectors.fetch.servers import always, response
from tests.collectors.runner.engine import Engine, bench

from specscope_collectors.observations import HealthState

NOT_FOUND = always(response(b"", "404 Not Found"))
TOKENS, CALLS = "tokens.generated", "spec.verify_calls"
BLANK = always(response(b"", content_type="text/plain; version=0.0.4; charset=utf-8"))


def test_an_empty_first_answer_of_no_exporter_is_no_baseline() -> None:
    engine = Engine(overrides={"/metrics": always(response(b""))})
    with bench(engine) as b:
        b.scrape()
        assert b.sink.health().state is HealthState.PARTIAL
        engine.overrides.clear()
        b.scrape()
        assert b.sink.increments() == {}
        assert b.sink.total(TOKENS) == 0


def test_an_empty_first_answer_of_an_engine_is_the_baseline_so_its_first_request_counts() -> None:
    engine = Engine(tokens=0, verify_calls=0, overrides={"/metrics": BLANK})
    with bench(engine) as b:
        b.scrape()
        assert b.sink.health().state is HealthState.PARTIAL
        assert "nothing measured yet" in b.sink.health().detail
        b.kill()
        b.scrape()
        engine.overrides.clear()
        engine.serve(tokens=40, verify_calls=18)
        b.scrape()
        assert (b.sink.total(TOKENS), b.sink.total(CALLS)) == (40, 18)
        assert b.sink.increments()[TOKENS].span_ms == 5000
        assert b.sink.events() == ["launch"]


def test_an_empty_answer_of_an_unknown_server_is_no_baseline() -> None:
    engine = Engine(overrides={"/metrics": BLANK, "/server_info": NOT_FOUND, "/get_server_info": NOT_FOUND})
    with bench(engine) as b:
        b.scrape(2)
        engine.overrides.clear()
        b.scrape()
        assert b.sink.total(TOKENS) == 0


def test_an_empty_answer_between_others_forgets_nothing() -> None:
    with bench() as b:
        b.scrape()
        b.engine.overrides["/metrics"] = BLANK
        b.scrape()
        b.engine.recover()
        b.engine.serve(tokens=9)
        b.scrape()
        assert b.sink.increments()[TOKENS].value == 9
        assert b.sink.increments()[TOKENS].span_ms == 10_000
        assert len(b.sink.launches()) == 1
