"""Ask one prompt and read what the engine says of it."""

from __future__ import annotations

import asyncio
import hashlib
import time
from dataclasses import dataclass
from typing import Any

import httpx
import msgspec

from specscope_collectors import bodies
from specscope_collectors.clock import Clock
from specscope_collectors.observations import CANARY_ID_PREFIX, CanaryLabel, RequestRecord
from specscope_collectors.sources.canary.prompts import Prompt, PromptSet
from specscope_collectors.sources.requests.answer import to_record
from specscope_collectors.sources.requests.errors import RefusedError

MAX_ANSWER_BYTES = 8 * 1024 * 1024
GENERATE, COMPLETIONS = "/generate", "/v1/completions"


class AskError(Exception):
    """A prompt that got no usable answer; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """What all prompts of one run have in common."""

    base_url: str
    is_sglang: bool
    """Else the engine is asked through the OpenAI API, which says nothing about speculation."""
    model: str | None
    headers: dict[str, str]
    timeout_seconds: float
    started_ms: int
    asked: PromptSet


async def ask(client: httpx.AsyncClient, asking: Asking, prompt: Prompt, clock: Clock) -> RequestRecord:
    """Return what the engine counted for one prompt. Raises `AskError`."""
    path = GENERATE if asking.is_sglang else COMPLETIONS
    began = time.monotonic()
    try:
        async with asyncio.timeout(asking.timeout_seconds):
            answer = await _post(client, asking, path, body_of(asking, prompt))
    except TimeoutError:
        raise AskError(f"no answer within {asking.timeout_seconds:g} s") from None
    except (httpx.HTTPError, OSError, bodies.BodyError) as error:
        raise AskError(f"{type(error).__name__}: {str(error)[:200]}") from None
    return record_of(asking, prompt, answer, clock(), time.monotonic() - began)


def body_of(asking: Asking, prompt: Prompt) -> dict[str, Any]:
    """Return the request: greedy, and as long as every other time (the end of text does not end it)."""
    length = asking.asked.max_new_tokens
    if not asking.is_sglang:
        text = prompt.text if prompt.text is not None else list(prompt.input_ids or ())
        return {
            "model": asking.model or "default", "prompt": text, "max_tokens": length, "temperature": 0,
            "ignore_eos": True,
        }  # fmt: skip
    given = {"text": prompt.text} if prompt.text is not None else {"input_ids": list(prompt.input_ids or ())}
    sampling = {"temperature": 0, "max_new_tokens": length, "ignore_eos": True}
    return {**given, "sampling_params": sampling}


def record_of(
    asking: Asking, prompt: Prompt, answer: Any, time_ms: int, took_seconds: float
) -> RequestRecord:
    """Return the record of an answer; the time is ours, so that it does not depend on the engine's clock."""
    if _was_aborted(answer):
        raise AskError("the engine aborted the request before its end: that is not the same work")
    try:
        record = to_record(answer, received_ms=time_ms)
    except RefusedError as error:
        raise AskError(str(error)) from None
    labels = {
        CanaryLabel.SET.value: asking.asked.fingerprint,
        CanaryLabel.RUN.value: str(asking.started_ms),
        CanaryLabel.PROMPT.value: prompt.id,
        CanaryLabel.OUTPUT.value: output_hash(answer),
    }
    return msgspec.structs.replace(
        record,
        request_id=f"{CANARY_ID_PREFIX}{asking.asked.fingerprint}:{asking.started_ms}:{prompt.id}",
        time_ms=time_ms,
        e2e_seconds=record.e2e_seconds if record.e2e_seconds is not None else took_seconds,
        labels=labels,
    )


def output_hash(answer: Any) -> str:
    """Return 16 hex digits of what was generated: of the token ids if given, else of the text.

    Raises `AskError` when the answer holds neither.
    """
    found = _generated(answer)
    if found is None:
        raise AskError("the answer holds no output; is this an inference server?")
    return hashlib.sha256(msgspec.json.encode(found)).hexdigest()[:16]


def _was_aborted(answer: Any) -> bool:
    """Whether the engine says that it gave the request up (`/generate`; others answer with a status)."""
    meta = answer.get("meta_info") if isinstance(answer, dict) else None
    reason = meta.get("finish_reason") if isinstance(meta, dict) else None
    return isinstance(reason, dict) and reason.get("type") == "abort"


def _generated(answer: dict[str, Any]) -> list[Any] | str | None:
    choices = answer.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        answer = choices[0]
    for name in ("output_ids", "text"):
        found = answer.get(name)
        if isinstance(found, list | str):
            return found
    return None


async def _post(client: httpx.AsyncClient, asking: Asking, path: str, body: dict[str, Any]) -> Any:
    async with client.stream("POST", asking.base_url + path, json=body, headers=asking.headers) as response:
        if response.status_code != 200:
            raise AskError(f"{path} answered HTTP {response.status_code}")
        content = await bodies.read_bounded(response, MAX_ANSWER_BYTES)
    try:
        return msgspec.json.decode(content)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise AskError(f"{path} answered with something that is no JSON") from None
