"""Turn an engine's answer into request records, whichever form it has; prompt and output are not looked at.

Forms: an answer of `/generate` (``meta_info``), an OpenAI answer whose choices carry ``meta_info`` or that
has ``sglext.spec_tokens_details`` (one object, or a list for n > 1), a bare ``meta_info``, and a line of
SGLang's export (`--export-metrics-to-file`): a bare ``meta_info`` beside the parameters of the request.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from specscope_collectors.observations import RequestRecord
from specscope_collectors.sources.requests.counts import (
    ACCEPTED,
    HISTOGRAM,
    PROPOSED,
    VERIFY_CALLS,
    first_count,
    first_number,
    read_counts,
)
from specscope_collectors.sources.requests.errors import (
    HealthCheckError,
    NamelessError,
    RefusedError,
    TimeError,
    UnfinishedError,
)
from specscope_collectors.sources.requests.labels import MAX_CHARACTERS, checked_labels

HEALTH_CHECK = "HEALTH_CHECK"
LATEST_SECONDS = 10_000_000_000.0
"""The year 2286. A time in milliseconds lies far beyond."""
FINISHED = ("request_finished_ts", "decode_finished_ts")
"""Wall clock, in seconds. ``response_sent_to_client_ts`` is not among them: of a stream it is the first."""

TIMES = (*FINISHED, "request_received_ts", "e2e_latency", "created")
TOKENS = ("prompt_tokens", "completion_tokens", "cached_tokens")
NEEDED = ("id", "model", "dp_rank", *TIMES, *TOKENS, *VERIFY_CALLS, *ACCEPTED, *PROPOSED, *HISTOGRAM)
"""All that is looked at, besides whether ``finish_reason`` is null."""


def records_of(
    answer: Any, *, labels: Mapping[str, str] | None = None, received_ms: int
) -> list[RequestRecord]:
    """Return a record for each output of one answer (several for n > 1).

    ``received_ms`` is the time of a request that does not say when it finished. Raises `RefusedError`, and
    `HealthCheckError` for the engine's own requests.
    """
    if not isinstance(answer, Mapping):
        raise RefusedError(f"an answer is an object, not {type(answer).__name__}; send what the engine sent")
    own = checked_labels(labels)
    return [_record(meta, own, received_ms) for meta in _outputs(answer)]


def to_record(answer: Any, *, labels: Mapping[str, str] | None = None, received_ms: int) -> RequestRecord:
    """Return the record of an answer with one output; like `records_of`, and refuses several."""
    found = records_of(answer, labels=labels, received_ms=received_ms)
    if len(found) != 1:
        raise RefusedError(f"the answer has {len(found)} outputs, not one; use records_of")
    return found[0]


def essentials(answer: Any) -> list[dict[str, Any]]:
    """Return what `records_of` needs of an answer, a bare ``meta_info`` for each output, and no text of it.

    For clients that pass answers on: prompts and outputs need not travel. Raises `RefusedError`.
    """
    if not isinstance(answer, Mapping):
        raise RefusedError(f"an answer is an object, not {type(answer).__name__}; send what the engine sent")
    slim = []
    for meta in _outputs(answer):
        kept = {name: meta[name] for name in NEEDED if meta.get(name) is not None}
        if "finish_reason" in meta:
            kept["finish_reason"] = None if meta["finish_reason"] is None else {}
        slim.append(kept)
    return slim


def _outputs(answer: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return one flat ``meta_info`` for each output."""
    meta = answer.get("meta_info")
    if isinstance(meta, Mapping):
        return [meta]
    if isinstance(answer.get("choices"), list):
        return list(_openai(answer))
    if "id" in answer or any(name.startswith("spec_") for name in answer if isinstance(name, str)):
        return [answer]
    raise RefusedError(
        "neither meta_info nor choices nor a bare meta_info; send the engine's answer as it came "
        "(OpenAI requests: return_meta_info or return_spec_tokens_details)"
    )


def _openai(answer: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    choices = [choice for choice in answer["choices"] if isinstance(choice, Mapping)]
    metas = [choice.get("meta_info") for choice in choices]
    if any(isinstance(meta, Mapping) for meta in metas):
        own = metas
    else:
        own = _details(answer.get("sglext")) or [{} for _ in choices[:1]]
    common = _common(answer, is_alone=len(own) == 1 and len(choices) <= 1)
    for index, meta in enumerate(own):
        if not isinstance(meta, Mapping):
            raise RefusedError(f"choice {index} has no meta_info although others have; send the whole answer")
        # The engine names the answer after its first output.
        name = f"{common['id']}#{index}" if index and common["id"] is not None else common["id"]
        yield {**common, "id": name, **meta}
    if not own:
        raise RefusedError("the answer has no choices and no sglext.spec_tokens_details; send the whole one")


def _details(extension: Any) -> list[Any]:
    """Return ``spec_tokens_details``, one for each choice. All zeros is how it says "no speculation"."""
    found = extension.get("spec_tokens_details") if isinstance(extension, Mapping) else None
    several = found if isinstance(found, list) else [found] if found is not None else []
    details = [detail if isinstance(detail, Mapping) else None for detail in several]
    return [detail if detail is None or first_count(detail, VERIFY_CALLS) else {} for detail in details]


def _common(answer: Mapping[str, Any], *, is_alone: bool) -> dict[str, Any]:
    """Return what the answer says of all its choices; its token counts are those of one only if alone."""
    usage = answer.get("usage")
    found = {name: answer.get(name) for name in ("id", "model", "created")}
    if is_alone and isinstance(usage, Mapping):
        details = usage.get("prompt_tokens_details")
        found |= {name: usage.get(name) for name in ("prompt_tokens", "completion_tokens")}
        found["cached_tokens"] = details.get("cached_tokens") if isinstance(details, Mapping) else None
    return found


def _record(meta: Mapping[str, Any], labels: Mapping[str, str], received_ms: int) -> RequestRecord:
    name = _request_id(meta)
    if "finish_reason" in meta and meta["finish_reason"] is None:
        raise UnfinishedError("finish_reason is null: the request still runs; send the last part of a stream")
    counts = read_counts(meta)
    return RequestRecord(
        request_id=name,
        time_ms=_finished_ms(meta, received_ms),
        prompt_tokens=first_count(meta, ("prompt_tokens",)),
        completion_tokens=first_count(meta, ("completion_tokens",)),
        cached_tokens=first_count(meta, ("cached_tokens",)),
        verify_calls=counts.verify_calls,
        accepted_drafts=counts.accepted_drafts,
        proposed_drafts=counts.proposed_drafts,
        accepted_histogram=counts.histogram,
        e2e_seconds=first_number(meta, "e2e_latency"),
        labels={**_engine_labels(meta), **labels},
    )


def _request_id(meta: Mapping[str, Any]) -> str:
    name = meta.get("id")
    if not isinstance(name, str) or not name or len(name) > MAX_CHARACTERS or not name.isprintable():
        raise NamelessError(
            f"id is {'missing' if name is None else 'not a short text'}; it is the name of the request "
            "(meta_info.id, or id of an OpenAI answer), by which it is counted once"
        )
    if name.startswith(HEALTH_CHECK):
        raise HealthCheckError(name)
    return name


def _finished_ms(meta: Mapping[str, Any], received_ms: int) -> int:
    """Return when the request finished, as well as the answer says it. Raises `TimeError`."""
    for name in FINISHED:
        seconds = _instant(meta, name)
        if seconds:
            return round(seconds * 1_000)
    begun, took = _instant(meta, "request_received_ts"), first_number(meta, "e2e_latency")
    if begun and took is not None:
        return round((begun + took) * 1_000)
    created = _instant(meta, "created")
    return round(created * 1_000) if created else received_ms


def _instant(meta: Mapping[str, Any], name: str) -> float | None:
    """Return seconds since 1970; None for what is no number. A number that is no such time is refused: taking
    another time in its place would put the request where it was not.
    """
    value = meta.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if 0 <= value <= LATEST_SECONDS:
        return float(value)
    raise TimeError(
        f"{name}={str(value)[:40]} is no time in seconds since 1970; send it as the engine gave it"
    )


def _engine_labels(meta: Mapping[str, Any]) -> dict[str, str]:
    """Return what the engine says of where the request ran."""
    found = {}
    model, rank = meta.get("model"), meta.get("dp_rank")
    if isinstance(model, str) and 0 < len(model) <= MAX_CHARACTERS and model.isprintable():
        found["model"] = model
    if isinstance(rank, int) and not isinstance(rank, bool) and 0 <= rank < 65_536:
        found["dp_rank"] = str(rank)
    return found
