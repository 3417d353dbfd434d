"""``/version`` and ``/v1/models`` of vLLM → what tells one launch from another.

vLLM names neither its parallel sizes nor its speculative settings there, and nothing that every start
changes: a restart with the same settings is told by the process's start time, or by counters that fell.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from specscope_collectors.engine import InfoReading, Told
from specscope_collectors.fetch import Answer
from specscope_collectors.health import PASSING, health_of
from specscope_collectors.identity import Identity, digest
from specscope_collectors.json_body import WrongBodyError, decode_json
from specscope_collectors.observations import HealthState, Launch
from specscope_collectors.redaction import redact

SOURCE = "vllm_info"
VERSION_PATH, MODELS_PATH = "/version", "/v1/models"
MAX_TEXT = 500
MAX_MODELS = 100


class NotVllmError(WrongBodyError):
    """The body is not what vLLM answers."""


@dataclass(frozen=True, slots=True)
class Models:
    """What ``/v1/models`` lists."""

    served: str | None = None
    root: str | None = None
    config: tuple[tuple[str, Any], ...] = ()


def read_info(version: Answer, models: Answer, time_ms: int, *, api_key: str | None) -> InfoReading:
    """Return what the two answers hold, redacted; never raises for their content."""
    if not version.ok:
        remedy = (
            "a proxy may hide /version: let it through" if version.state is HealthState.DISABLED else None
        )
        return InfoReading(health_of(version, SOURCE, time_ms, remedy=remedy))
    try:
        release = _version(version.body)
        listed = _models(models.body, api_key) if models.ok else Models()
    except NotVllmError as problem:
        state = HealthState.INVALID if problem.garbled else HealthState.NOT_THIS_ENGINE
        detail = f"{version.url} or {MODELS_PATH} is not vLLM's: {problem}"
        return InfoReading(health_of(version, SOURCE, time_ms, state=state, detail=detail))
    if models.ok:
        return InfoReading(health_of(version, SOURCE, time_ms), _told(release, listed))
    if models.state in PASSING:
        return InfoReading(health_of(models, SOURCE, time_ms))  # it may answer next time: not another launch
    state = HealthState.PARTIAL
    health = health_of(version, SOURCE, time_ms, state=state, detail=models.detail, remedy=models.remedy)
    return InfoReading(health, _told(release, listed))


def _told(version: str, models: Models) -> Told:
    config = dict(models.config)
    launch = Launch(
        key="",
        time_ms=0,
        engine="vllm",
        engine_version=version,
        version_source="version",
        model=models.root or models.served,
        served_model_name=models.served,
        config=config,
    )
    identity = Identity(
        source="server_info", process="not told by vLLM", configuration=digest([version, config])
    )
    return Told(identity=identity, launch=launch)


def _version(body: bytes) -> str:
    found = decode_json(body, NotVllmError)
    version = found.get("version") if isinstance(found, dict) else None
    if not isinstance(version, str) or not version:
        raise NotVllmError("JSON without a version")
    return version[:100]


def _models(body: bytes, api_key: str | None) -> Models:
    """Return the base model that is served first; adapters name it as their parent."""
    found = redact(decode_json(body, NotVllmError), known=(api_key,))
    listed = found.get("data") if isinstance(found, dict) else None
    if not isinstance(listed, list):
        raise NotVllmError("JSON without a list of models")
    cards = [card for card in listed[:MAX_MODELS] if isinstance(card, dict) and not card.get("parent")]
    first = cards[0] if cards else {}
    names = [name for card in cards if (name := _text(card.get("id")))]
    config = {
        "served_model_names": names,
        "root": _text(first.get("root")),
        "max_model_len": first.get("max_model_len"),
    }
    kept = {name: value for name, value in config.items() if value not in (None, [])}
    return Models(_text(first.get("id")), _text(first.get("root")), tuple(kept.items()))


def _text(value: Any) -> str | None:
    return value[:MAX_TEXT] if isinstance(value, str) and value else None
