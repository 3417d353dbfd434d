"""The application: every endpoint answers, says that it is a demo, and goes away during restarts."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from tests.demo.playing import STARTED_MS, player

from specscope_server.demo.engine import create_app
from specscope_server.demo.story import RIGHT_LAYERS, WRONG_LAYERS, Story
from specscope_server.demo.versions import VERSIONS

PATHS = ("/metrics", "/server_info", "/get_server_info", "/v1/loads", "/model_info", "/v1/models")


@dataclass
class Engine:
    """A demo engine under a clock that the test moves."""

    app: Starlette | None = None
    now_ms: int = STARTED_MS

    def at(self, elapsed_ms: float) -> Engine:
        self.now_ms = STARTED_MS + int(elapsed_ms)
        return self

    def get(self, path: str) -> httpx.Response:
        async def ask() -> httpx.Response:
            assert self.app is not None
            transport = httpx.ASGITransport(self.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://testserver") as client:
                return await client.get(path)

        return asyncio.run(ask())

    def json(self, path: str) -> Any:
        answer = self.get(path)
        assert answer.status_code == 200
        return answer.json()


@pytest.fixture(params=["0.5.8", "0.5.23"])
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def engine(version: str) -> Engine:
    subject = Engine()
    subject.app = create_app(player(version), lambda: subject.now_ms, "127.0.0.1", 30001)
    return subject


def launch_ms(index: int) -> float:
    return Story(30).launches()[index].up_ms + 1


def test_every_endpoint_answers(engine: Engine) -> None:
    engine.at(20_000)
    assert [engine.get(path).status_code for path in PATHS] == [200] * len(PATHS)
    assert engine.get("/metrics").headers["content-type"].startswith("text/plain; version=")
    assert engine.get("/health").status_code == 404


def test_every_answer_says_demo(engine: Engine) -> None:
    engine.at(20_000)
    for path in PATHS[1:]:
        assert engine.json(path)["specscope_demo"] is True, path
    assert engine.json("/server_info")["served_model_name"].endswith(" (demo)")
    assert engine.json("/v1/models")["data"][0]["id"].endswith(" (demo)")
    assert "\nspecscope_demo_info 1.0\n" in engine.get("/metrics").text


def test_restart_answers_503(engine: Engine) -> None:
    engine.at(Story(30).launches()[0].down_ms + 100)
    assert {engine.get(path).status_code for path in PATHS} == {503}


def test_launches_differ_where_the_story_says(engine: Engine, version: str) -> None:
    dead, fixed, tuned = (engine.at(launch_ms(index)).json("/server_info") for index in (0, 1, 2))
    layers = [
        info["speculative_demo_draft_config"]["eagle_config"]["eagle_aux_hidden_state_layer_ids"]
        for info in (dead, fixed, tuned)
    ]
    by_version = VERSIONS[version].draft_ids
    assert layers == [list(by_version(each)) for each in (WRONG_LAYERS, RIGHT_LAYERS, RIGHT_LAYERS)]
    environments = [info["internal_states"][0]["env_vars"] for info in (dead, fixed, tuned)]
    assert environments[0] == environments[1] != environments[2]
    assert all(any(key.startswith("NCCL_") for key in environment) for environment in environments)
    assert len({info["random_seed"] for info in (dead, fixed, tuned)}) == 3
    if version == "0.5.23":
        assert len({info["startup_time"]["load_weight"] for info in (dead, fixed, tuned)}) == 3
    assert dead["version"] == version


def test_speculative_arguments_follow_the_sweep(engine: Engine) -> None:
    seen = []
    for index in range(3, 9):
        info = engine.at(launch_ms(index)).json("/server_info")
        seen.append((info["speculative_num_steps"], info["speculative_num_draft_tokens"]))
        assert info["speculative_algorithm"] == ("EAGLE3" if seen[-1][0] else None)
        assert info["tp_size"] == 8
    assert seen == [(5, 6), (4, 5), (3, 4), (1, 2), (None, None), (2, 3)]


def test_loads_agree_with_the_gauges(engine: Engine) -> None:
    engine.at(launch_ms(1) + 20_000)
    (load,) = engine.json("/v1/loads")["loads"]
    assert 2.3 < load["speculative"]["accept_length"] < 3.3
    assert f" {load['speculative']['accept_rate']!r}\n" in engine.get("/metrics").text


def test_loads_say_nothing_about_speculation_before_a_window_or_without_it(engine: Engine) -> None:
    assert "speculative" not in engine.at(10).json("/v1/loads")["loads"][0]
    assert "speculative" not in engine.at(launch_ms(7) + 10_000).json("/v1/loads")["loads"][0]


def test_info_says_where_the_engine_listens(engine: Engine) -> None:
    info = engine.at(0).json("/server_info")
    assert (info["host"], info["port"]) == ("127.0.0.1", 30001)
