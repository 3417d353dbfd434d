"""The canary as a job: when a run is due, whose launch it belongs to, and what is stored of it."""

from __future__ import annotations

import asyncio

import msgspec
import structlog

from specscope_collectors.access import read_key
from specscope_collectors.board import Watched
from specscope_collectors.fetch import make_client
from specscope_collectors.job import Job, JobContext, JobError
from specscope_collectors.observations import Batch, HealthState, Observation, SourceHealth
from specscope_collectors.sources.canary import SOURCE
from specscope_collectors.sources.canary.asking import Asking
from specscope_collectors.sources.canary.memory import Memory, after_run, decode
from specscope_collectors.sources.canary.prompts import PromptSet, prompt_set
from specscope_collectors.sources.canary.run import Run, run_once

LOOK_SECONDS = 5.0
"""How often it is looked whether the server was launched anew."""
RETRY_SECONDS = 60.0

log = structlog.get_logger("specscope.collector")


class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One ``[[canary]]`` table. Without it no canary asks anything."""

    server: str
    """Name of a target of this file; it is asked at the address under which it is scraped."""
    interval_minutes: float = 30.0
    """Between two runs. A new launch is asked once it has run for `settle_seconds`."""
    settle_seconds: float = 60.0
    """How long a new launch is left alone before its first run."""
    prompts_file: str | None = None
    """JSON lines, ``{"id": …, "text": …}`` or ``{"id": …, "input_ids": […]}``; else the shipped ones."""
    max_new_tokens: int = 64
    """Length of every output."""
    concurrency: int = 1
    """Prompts asked at a time; 1 disturbs the server least and batches least."""
    timeout_seconds: float = 120.0
    """Longest time that one prompt may take."""
    api_key_env: str | None = None
    """Environment variable that holds the server's API key, if it is another one than for scraping."""
    api_key_file: str | None = None
    """File that holds it."""


def build(config: Config, context: JobContext) -> list[Job]:
    """Return the job. Raises `JobError`."""
    _check(config)
    return [CanaryJob(config, prompt_set(config.prompts_file, config.max_new_tokens), context)]


def _check(config: Config) -> None:
    positive = ("interval_minutes", "max_new_tokens", "concurrency", "timeout_seconds")
    for name in positive:
        if not getattr(config, name) > 0:
            raise JobError(f"canary: {name} = {getattr(config, name)}: must be greater than 0")
    if not config.settle_seconds >= 0:
        raise JobError(f"canary: settle_seconds = {config.settle_seconds}: must be 0 or more")
    if config.max_new_tokens > 4_096:
        raise JobError(f"canary: max_new_tokens = {config.max_new_tokens}: at most 4096; a canary is small")
    if not config.server.strip():
        raise JobError("canary: server is empty; name a target of this file")


class CanaryJob:
    """Asks the set when it is due; a run belongs to one launch or is thrown away."""

    def __init__(self, config: Config, asked: PromptSet, context: JobContext) -> None:
        self.name = f"{SOURCE}:{config.server}:{asked.fingerprint}"
        self._config = config
        self._asked = asked
        self._context = context
        self._client = make_client(context.options)
        self._key = _key(config) or context.options.api_key
        self._memory: Memory | None = None
        self._sequence = 0
        self._not_before = 0.0

    async def step(self) -> float:
        """Run if a run is due; return in how many seconds to look again."""
        if self._memory is None:
            await asyncio.get_running_loop().run_in_executor(self._context.pool, self._resume)
        watched = self._context.board.look(self._config.server)
        if watched is None:
            return LOOK_SECONDS
        wait = max(self._due_in(watched), self._not_before - self._context.monotonic())
        if wait > 0:
            return min(wait, LOOK_SECONDS)
        await self._run(watched)
        return LOOK_SECONDS

    async def close(self) -> None:
        """Close the connection."""
        await self._client.aclose()

    def _resume(self) -> None:
        resume = self._context.sink.resume(self.name)
        self._sequence = resume.sequence
        self._memory = decode(resume.checkpoint, self._asked.fingerprint)

    def _due_in(self, watched: Watched) -> float:
        """Return seconds until the next run is due."""
        memory, now_ms = self._memory or Memory(), self._context.clock()
        if watched.launch.key != memory.launch_key:
            return (watched.launch.time_ms - now_ms) / 1_000 + self._config.settle_seconds
        since = (now_ms - memory.last_run_ms) / 1_000
        # A clock that was set back must not silence the canary for the time that it went back.
        return self._config.interval_minutes * 60 - since if since >= 0 else 0.0

    async def _run(self, watched: Watched) -> None:
        asking = self._asking(watched)
        run = await run_once(self._client, asking, self._config.concurrency, self._context.clock)
        now = self._context.board.look(self._config.server)
        if now is not None and now.launch.key != watched.launch.key:
            log.info("canary run thrown away", server=self._config.server, reason="launched anew meanwhile")
            return
        if not run.records:
            self._not_before = self._context.monotonic() + RETRY_SECONDS
        await asyncio.get_running_loop().run_in_executor(
            self._context.pool, self._store, watched, asking, run
        )

    def _asking(self, watched: Watched) -> Asking:
        headers = {"User-Agent": "specscope-canary", "Accept-Encoding": "identity"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        return Asking(
            base_url=watched.target.base_url,
            is_sglang=watched.launch.engine == "sglang",
            model=watched.launch.served_model_name or watched.launch.model,
            headers=headers,
            timeout_seconds=self._config.timeout_seconds,
            started_ms=self._context.clock(),
            asked=self._asked,
        )

    def _store(self, watched: Watched, asking: Asking, run: Run) -> None:
        memory = self._memory or Memory()
        found: list[Observation] = [self._health(asking, run)]
        if run.records:
            memory, events = after_run(memory, run.records, asking.started_ms, watched.launch.key)
            found += [*run.records, *events]
        batch = Batch(
            collector_id=self.name,
            sequence=self._sequence + 1,
            target=watched.target,
            launch_key=watched.launch.key,
            observations=tuple(found),
            checkpoint=msgspec.msgpack.encode(memory),
        )
        if self._context.sink.apply(batch):
            self._memory, self._sequence = memory, batch.sequence
        else:  # another process runs the same canary: go on from what it stored
            self._memory = None

    def _health(self, asking: Asking, run: Run) -> SourceHealth:
        health = run.health(asking, self._context.clock())
        unauthorized = any("HTTP 401" in reason or "HTTP 403" in reason for reason in run.failures)
        if unauthorized and not run.records:
            return msgspec.structs.replace(
                health,
                state=HealthState.UNAUTHORIZED,
                remedy="name the key of the server: api_key_env or api_key_file in the [[canary]] table",
            )
        return health


def _key(config: Config) -> str | None:
    """Return the API key that the table names. Raises `JobError`."""
    problems: list[str] = []
    key = read_key(config.api_key_env, config.api_key_file, "canary", problems)
    if problems:
        raise JobError("; ".join(problems))
    return key
