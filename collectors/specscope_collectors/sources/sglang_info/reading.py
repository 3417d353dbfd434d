"""Answers of ``/server_info`` → what was read, and in which state the source is."""

from __future__ import annotations

from dataclasses import dataclass

from specscope_collectors.fetch import Answer
from specscope_collectors.health import health_of
from specscope_collectors.observations import HealthState, SourceHealth
from specscope_collectors.sources.sglang_info.body import NotServerInfoError, ServerInfo, parse_info

SOURCE = "sglang_info"


@dataclass(frozen=True, slots=True)
class InfoReading:
    """``info`` is None when the engine did not say what it is."""

    health: SourceHealth
    info: ServerInfo | None = None


def read_info(answer: Answer, time_ms: int, *, api_key: str | None) -> InfoReading:
    """Return what ``answer`` holds, redacted; never raises for its content."""
    if not answer.ok:
        remedy = None
        if answer.state is HealthState.DISABLED:
            remedy = "no SGLang answers there, or a proxy hides /server_info: let it through"
        return InfoReading(health_of(answer, SOURCE, time_ms, remedy=remedy))
    try:
        info = parse_info(answer.body, known_secrets=(api_key,))
    except NotServerInfoError as problem:
        state = HealthState.INVALID if problem.garbled else HealthState.NOT_THIS_ENGINE
        detail = f"{answer.url} is not SGLang's server info: {problem}"
        remedy = "" if problem.garbled else "give --watch the base URL of an SGLang server"
        return InfoReading(health_of(answer, SOURCE, time_ms, state=state, detail=detail, remedy=remedy))
    return InfoReading(health_of(answer, SOURCE, time_ms), info)
