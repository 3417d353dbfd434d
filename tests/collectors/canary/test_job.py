"""The canary as a job: when it asks, what it sends, what it remembers, and what it says when it cannot."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.collectors.canary.engine import Engine, answering
from tests.collectors.runner.engine import MemorySink, StoreDownError

from specscope_collectors.board import Board, Watched
from specscope_collectors.config import CollectorOptions
from specscope_collectors.job import JobContext, JobError
from specscope_collectors.jobs import job_kinds
from specscope_collectors.observations import (
    CANARY_ID_PREFIX,
    CanaryLabel,
    Event,
    HealthState,
    Launch,
    RequestRecord,
    SourceHealth,
    Target,
)
from specscope_collectors.sources.canary.job import LOOK_SECONDS, Config, build
from specscope_collectors.sources.canary.prompts import SHIPPED

T0 = 1_772_366_400_000
SERVER = "gpu1"


@dataclass
class World:
    """A job's surroundings, with a clock that tests turn."""

    engine: Engine
    pool: ThreadPoolExecutor
    sink: MemorySink = field(default_factory=MemorySink)
    board: Board = field(default_factory=Board)
    now_ms: int = T0

    def launch(self, key: str = "a1", engine: str = "sglang") -> None:
        """Say that the server was launched now."""
        target = Target(name=SERVER, base_url=f"http://127.0.0.1:{self.engine.port}")
        launch = Launch(key=key, time_ms=self.now_ms, engine=engine, served_model_name="llama")
        self.board.tell(Watched(target, launch, frozenset()))

    def context(self, **options: Any) -> JobContext:
        """Return what the job is given."""
        return JobContext(
            sink=self.sink, options=CollectorOptions(**options), clock=lambda: self.now_ms,
            monotonic=lambda: self.now_ms / 1_000, pool=self.pool, board=self.board,
        )  # fmt: skip

    def steps(self, count: int = 1, config: Config | None = None, **options: Any) -> float:
        """Step a new job so often, as after a restart; return its last wait."""

        async def go() -> float:
            [job] = build(config or Config(server=SERVER), self.context(**options))
            try:
                for _ in range(count):
                    wait = await job.step()
            finally:
                await job.close()
            return wait

        return asyncio.run(go())

    def sent(self, kind: type[Any]) -> list[Any]:
        """Return all records of a kind."""
        return [
            record for batch in self.sink.batches for record in batch.observations if type(record) is kind
        ]


@pytest.fixture
def world() -> Iterator[World]:
    """An engine that answers, and a sink that stores."""
    with answering(Engine()) as engine, ThreadPoolExecutor(2) as pool:
        yield World(engine, pool)


def test_it_is_found_by_its_folder() -> None:
    assert job_kinds()["canary"].config is Config


def test_a_launch_is_left_alone_until_it_has_settled(world: World) -> None:
    assert world.steps() == LOOK_SECONDS  # nothing is watched yet
    world.launch()
    world.now_ms += 59_000
    assert world.steps() == pytest.approx(1.0)
    assert not world.engine.asked
    world.now_ms += 1_000
    world.steps()
    assert len(world.engine.asked) == len(SHIPPED)


def test_every_prompt_becomes_a_record_with_its_counts_and_no_text(world: World) -> None:
    world.launch()
    world.now_ms += 60_000
    world.steps(config=Config(server=SERVER, max_new_tokens=40))
    records = world.sent(RequestRecord)
    assert [record.labels[CanaryLabel.PROMPT] for record in records] == [prompt.id for prompt in SHIPPED]
    first = records[0]
    assert (first.verify_calls, first.accepted_drafts, first.proposed_drafts) == (20, 20, 60)
    assert first.request_id.startswith(CANARY_ID_PREFIX)
    assert len({record.request_id for record in records}) == len(SHIPPED)
    assert world.sink.batches[0].launch_key == "a1"
    whole = msgspec.json.encode(world.sink.batches[0]).decode()
    assert "lanterns" not in whole
    path, body, _ = world.engine.asked[0]
    assert path == "/generate"
    assert body["sampling_params"] == {"temperature": 0, "max_new_tokens": 40, "ignore_eos": True}
    [health] = world.sent(SourceHealth)
    assert (health.state, health.series, health.refused) == (HealthState.OK, len(SHIPPED), 0)


def test_a_restart_of_the_collector_repeats_no_run_and_a_new_launch_is_asked_soon(world: World) -> None:
    world.launch()
    world.now_ms += 60_000
    world.steps()
    world.steps(3)
    assert len(world.sink.batches) == 1
    world.now_ms += 60_000
    world.launch("b2")
    world.now_ms += 60_000
    world.steps()
    assert [batch.launch_key for batch in world.sink.batches] == ["a1", "b2"]
    assert not world.sent(Event)  # the same outputs: nothing changed


def test_a_new_output_is_an_event_and_one_that_was_seen_before_is_none(world: World) -> None:
    world.launch()
    world.now_ms += 60_000
    models = ["m1", "m2", "m1", "m2"]
    for model in models:
        world.engine.model = model
        world.steps()
        world.now_ms += 30 * 60_000
    [event] = world.sent(Event)
    assert event.kind == "canary_output_changed"
    assert event.detail["changed"] == event.detail["of"] == len(SHIPPED)
    assert "within one launch" in event.message
    assert len(world.sink.batches) == len(models)


def test_what_was_not_stored_is_asked_again(world: World) -> None:
    world.launch()
    world.now_ms += 60_000
    world.sink.is_full = True
    with pytest.raises(StoreDownError):
        world.steps()
    world.sink.is_full = False
    world.steps()
    assert len(world.sent(RequestRecord)) == len(SHIPPED)


def test_a_run_during_which_the_server_was_launched_anew_is_thrown_away(world: World) -> None:
    world.launch()
    world.now_ms += 60_000
    answer = world.engine.answer

    def restarting(path: str, body: dict[str, Any]) -> bytes:
        world.launch("b2")
        return answer(path, body)

    world.engine.answer = restarting  # type: ignore[method-assign]
    world.steps()
    assert not world.sink.batches


ABORTED = b'{"text": "a", "meta_info": {"id": "1", "finish_reason": {"type": "abort"}, "spec_verify_ct": 1}}'


@pytest.mark.parametrize(
    ("status", "body", "state", "words"),
    [
        (500, None, HealthState.HTTP_ERROR, "HTTP 500"),
        (401, None, HealthState.UNAUTHORIZED, "HTTP 401"),
        (200, b"<html>", HealthState.HTTP_ERROR, "no JSON"),
        (200, b"[" * 1_000_000, HealthState.HTTP_ERROR, "no JSON"),
        (200, ABORTED, HealthState.HTTP_ERROR, "aborted"),
        (200, b'{"meta_info": {"id": "x"}}', HealthState.HTTP_ERROR, "no output"),
        (200, b'{"meta_info": {"id": "x", "spec_verify_ct": -1}}', HealthState.HTTP_ERROR, "not a count"),
    ],
)
def test_a_server_that_gives_no_answer_is_not_asked_by_every_prompt(
    world: World, status: int, body: bytes | None, state: HealthState, words: str
) -> None:
    world.launch()
    world.now_ms += 60_000
    world.engine.status, world.engine.body = status, body
    world.steps(2)
    [health] = world.sent(SourceHealth)
    assert health.state is state
    assert words in health.detail
    assert health.remedy
    assert len(world.engine.asked) == 3
    assert not world.sent(RequestRecord)
    world.engine.status, world.engine.body = 200, None
    world.now_ms += 60_000
    world.steps()
    assert len(world.sent(RequestRecord)) == len(SHIPPED)


def test_another_engine_is_asked_through_the_openai_api(world: World) -> None:
    world.launch(engine="vllm")
    world.now_ms += 60_000
    world.steps()
    path, body, _ = world.engine.asked[0]
    assert path == "/v1/completions"
    assert (body["model"], body["temperature"], body["ignore_eos"]) == ("llama", 0, True)
    record = world.sent(RequestRecord)[0]
    assert record.verify_calls is None
    assert record.e2e_seconds > 0


def test_the_key_is_sent_and_shown_nowhere(world: World) -> None:
    world.launch()
    world.now_ms += 60_000
    world.steps(api_key="s3cret")
    assert world.engine.asked[0][2] == "Bearer s3cret"
    assert b"s3cret" not in msgspec.json.encode(world.sink.batches)


def test_own_prompts_may_be_token_ids(world: World, tmp_path: Path) -> None:
    file = tmp_path / "prompts.jsonl"
    file.write_text('{"id": "a", "input_ids": [1, 2, 3]}\n\n{"id": "b", "text": "Two"}\n', "utf-8")
    world.launch()
    world.now_ms += 60_000
    world.steps(config=Config(server=SERVER, prompts_file=str(file)))
    assert [body.get("input_ids") or body["text"] for _, body, _ in world.engine.asked] == [[1, 2, 3], "Two"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "holds no prompt"),
        ('{"id": "a"}', "line 1: .*needs either text or input_ids"),
        ('{"id": "a", "text": "x", "input_ids": [1]}', "needs either"),
        ('{"id": "a", "text": "x"}\n{"id": "a", "text": "y"}', "two prompts have the id 'a'"),
        ('{"id": "a", "text": "x", "more": 1}', "unknown field"),
        ('{"id": "../a", "text": "x"}', "is no name"),
        ('{"id": "a", "input_ids": [-1]}', "negative token id"),
        ("\x00\xff", "line 1"),
        ("\n".join(f'{{"id": "p{n}", "text": "x"}}' for n in range(201)), "at most 200"),
    ],
)
def test_prompts_that_cannot_be_are_refused_with_the_line(
    world: World, tmp_path: Path, content: str, words: str
) -> None:
    file = tmp_path / "prompts.jsonl"
    file.write_text(content, "latin-1")
    with pytest.raises(JobError, match=words):
        build(Config(server=SERVER, prompts_file=str(file)), world.context())


@pytest.mark.parametrize(
    "fields",
    [
        {"interval_minutes": 0}, {"max_new_tokens": 0}, {"max_new_tokens": 10_000}, {"concurrency": 0},
        {"timeout_seconds": float("nan")}, {"settle_seconds": -1}, {"server": " "},
        {"api_key_env": "SPECSCOPE_TEST_UNSET"}, {"api_key_file": "/nonexistent/key"},
        {"prompts_file": "/nonexistent/prompts"},
    ],
)  # fmt: skip
def test_settings_that_cannot_be_meant_are_refused(world: World, fields: dict[str, Any]) -> None:
    with pytest.raises(JobError, match="canary: "):
        build(Config(**{"server": SERVER, **fields}), world.context())
