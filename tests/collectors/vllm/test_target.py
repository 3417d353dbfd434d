"""Watching a vLLM: launches, identity, growth, another engine at the same address, doctor."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import pytest
from tests.collectors.fetch.servers import Answering, always, response, serving
from tests.collectors.runner.engine import Bench, Engine, bench
from tests.support.vllm import VllmEngine

from specscope_collectors.alternation import HELD_SCRAPES
from specscope_collectors.observations import HealthState
from specscope_server.cli.doctor import main

NOT_FOUND = always(response(b"", "404 Not Found"))


@dataclass
class VllmServer(Engine):
    """A vLLM behind a real HTTP server."""

    core: VllmEngine = field(default_factory=VllmEngine)
    version: str = "0.11.0"
    is_sglang: bool = False
    """Another engine took the address over."""

    def metrics(self) -> bytes:
        return super().metrics() if self.is_sglang else self.core.metrics()

    def _normal(self, path: str) -> Answering:
        if self.is_sglang:
            return super()._normal(path)
        answers = {
            "/metrics": self.metrics(),
            "/version": json.dumps({"version": self.version}).encode(),
            "/v1/models": json.dumps({"object": "list", "data": [
                {"id": "served", "object": "model", "created": 1, "owned_by": "vllm",
                 "root": self.core.model, "parent": None, "max_model_len": 4096},
                {"id": "adapter", "object": "model", "created": 1, "root": "x", "parent": "served"},
            ]}).encode(),
        }  # fmt: skip
        return always(response(answers[path])) if path in answers else NOT_FOUND


def cycles(b: Bench) -> float:
    return b.sink.total("spec.cycles")


def test_a_launch_is_told_by_version_and_models() -> None:
    with bench(VllmServer()) as b:
        b.scrape()
        [launch] = b.sink.launches()
        assert (launch.engine, launch.engine_version, launch.model) == ("vllm", "0.11.0", "tiny/target")
        assert (launch.served_model_name, launch.version_source) == ("served", "version")
        assert launch.config["max_model_len"] == 4096
        assert b.sink.health("vllm_metrics").state is HealthState.OK
        assert b.sink.health("vllm_info").state is HealthState.OK
        assert set(b.paths()) == {"/metrics", "/version", "/v1/models"}


def test_growth_is_exact_and_one_launch_goes_on() -> None:
    server = VllmServer()
    with bench(server) as b:
        b.scrape()
        for seed in range(5):
            server.core.serve(100, seed)
            b.scrape(seconds=40)
        assert cycles(b) == 500
        assert b.sink.total("spec.drafts_accepted") == sum(server.core.ranks[0].accepted)
        assert b.sink.total("spec.drafts_proposed") == 1500
        assert len(b.sink.launches()) == 1


@pytest.mark.parametrize("started", [None, 1_790_000_000.25])
def test_a_restart_is_seen(started: float | None) -> None:
    server = VllmServer(core=VllmEngine(started=started))
    server.core.serve(100)
    server.core.ranks[0].finish()
    with bench(server) as b:
        b.scrape()
        server.break_down()
        b.scrape()
        server.recover()
        server.core.restart()
        server.core.serve(10)
        b.scrape()
        assert b.sink.events() == ["launch", "restart"]
        assert cycles(b) == 10


def test_a_restart_whose_counters_passed_the_old_ones_is_told_by_its_start() -> None:
    server = VllmServer()
    server.core.serve(10)
    with bench(server) as b:
        b.scrape()
        server.core.restart()
        server.core.serve(100)
        b.scrape()
        assert b.sink.events() == ["launch", "restart"]
        assert cycles(b) == 100


def test_another_version_is_another_launch() -> None:
    server = VllmServer()
    with bench(server) as b:
        b.scrape()
        server.version = "0.11.1"
        b.scrape(seconds=600)
        assert [launch.engine_version for launch in b.sink.launches()] == ["0.11.0", "0.11.1"]
        assert b.sink.launches()[-1].key != b.sink.launches()[0].key


@pytest.mark.parametrize("comes_back", [False, True])
def test_another_engine_at_the_same_address_is_another_launch(comes_back: bool) -> None:
    server = VllmServer(is_sglang=True)
    with bench(server) as b:
        b.scrape()
        server.is_sglang = False
        server.core.serve(70)
        b.scrape(1 + HELD_SCRAPES)
        assert [launch.engine for launch in b.sink.launches()] == ["sglang", "vllm"]
        assert b.sink.launches()[-1].reason == "another engine"
        assert cycles(b) == 70
        if comes_back:
            server.is_sglang = True
            server.restart()
            b.scrape(1 + HELD_SCRAPES)
            assert [launch.engine for launch in b.sink.launches()] == ["sglang", "vllm", "sglang"]
            keys = {launch.key for launch in b.sink.launches()}
            assert len(keys) == 3


def test_two_engines_that_take_turns_are_flagged_and_are_no_launches() -> None:
    server = VllmServer()
    with bench(server) as b:
        for at in range(20):
            server.is_sglang = at % 2 == 1
            server.core.serve(10)
            server.serve(tokens=10)
            b.scrape()
        assert b.sink.health("vllm_metrics").state is HealthState.INVALID
        assert len(b.sink.launches()) == 1
        assert cycles(b) == 0


def test_without_further_endpoints_the_metrics_alone_tell_the_launch() -> None:
    server = VllmServer(overrides={"/version": NOT_FOUND, "/v1/models": NOT_FOUND})
    with bench(server) as b:
        b.scrape(2)
        [launch] = b.sink.launches()
        assert (launch.engine, launch.engine_version, launch.version_source) == (
            "vllm",
            "0.10",
            "metric_names",
        )


def test_models_behind_a_key_do_not_hide_the_version() -> None:
    locked = always(response(b"", "401 Unauthorized"))
    with bench(VllmServer(overrides={"/v1/models": locked})) as b:
        b.scrape()
        [launch] = b.sink.launches()
        assert (launch.engine_version, launch.model) == ("0.11.0", None)
        assert b.sink.health("vllm_info").state is HealthState.PARTIAL
        assert "SPECSCOPE_ENGINE_API_KEY" in b.sink.health("vllm_info").remedy


@pytest.mark.parametrize(
    ("core", "subject"),
    [
        (VllmEngine(is_speculating=False), "speculative decoding"),
        (VllmEngine(spelling="0.5"), "speculative decoding"),
    ],
)
def test_what_is_missing_is_said(core: VllmEngine, subject: str) -> None:
    with bench(VllmServer(core=core)) as b:
        b.scrape()
        assert subject in b.sink.health("vllm_metrics").missing


def test_the_old_engine_is_told_what_it_cannot_count() -> None:
    core = VllmEngine(spelling="0.5")
    core.serve(10)
    with bench(VllmServer(core=core)) as b:
        b.scrape()
        missing = b.sink.health("vllm_metrics").missing
        assert "running totals" in missing["counts of drafts (exact accept length)"]


def test_doctor_knows_it(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPECSCOPE_ENGINE_API_KEY", raising=False)
    with serving(VllmServer()) as running:
        assert main(["--watch", running.url]) == 1
        text = " ".join(capsys.readouterr().out.split())
        assert "vLLM 0.11.0, model tiny/target" in text
        assert "K = 3 drafts per cycle, counted by draft position" in text
        assert "device time of draft and verify" in text
        assert "/v1/loads" not in running.paths()
