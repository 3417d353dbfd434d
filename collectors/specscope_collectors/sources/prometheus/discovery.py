"""Which metrics of known engines are there, and of which servers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from specscope_collectors.engines import titles
from specscope_collectors.observations import HealthState
from specscope_collectors.sources.prometheus.api import Api, ApiProblem
from specscope_collectors.sources.prometheus.engines import (
    BESIDE,
    engine_names,
    is_engine,
    pattern,
    spelt_as,
)
from specscope_collectors.sources.prometheus.selectors import named, selector

MAX_SERVERS = 1_000
MAX_NAME = 200
_SHOWN = 12
_PREFIX = re.compile(r"[a-zA-Z]+[:_]?")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Found:
    """What one API holds of engines."""

    names: frozenset[str]
    """Names to ask for."""
    servers: dict[str, str]
    """Name of the server → value of the server label."""
    left_out: tuple[str, ...] = ()
    """Values that can be no server, in words."""


@dataclass(frozen=True, slots=True)
class Question:
    """What to look for."""

    matchers: Sequence[str]
    label: str
    template: str
    from_ms: int
    to_ms: int
    only: Sequence[str] = ()


async def discover(api: Api, question: Question) -> Found:
    """Return what is there; raise `ApiProblem`, also when there is nothing."""
    span = question.from_ms, question.to_ms
    look = selector(f'__name__=~"{pattern()}"', *question.matchers)
    there = frozenset(await api.label_values("__name__", [look], *span)) & engine_names()
    if not is_engine(there):
        raise await _nothing(api, question)
    values = await api.label_values(question.label, [selector(named(there), *question.matchers)], *span)
    if question.only:
        values = [value for value in values if value in question.only]
    if not values:
        raise _no_servers(question)
    servers, left_out = _named_servers(values, question.template)
    return Found(spelt_as(there) | BESIDE, servers, left_out)


def _named_servers(values: Sequence[str], template: str) -> tuple[dict[str, str], tuple[str, ...]]:
    servers: dict[str, str] = {}
    left_out = []
    for value in values[:MAX_SERVERS]:
        name = template.replace("{value}", value).strip()
        if not name or len(name) > MAX_NAME or _CONTROL.search(name):
            left_out.append(f"{value[:40]!a} can be no name of a server")
        elif name in servers:
            left_out.append(f"{value[:40]!a} has the same name as another server")
        else:
            servers[name] = value
    if len(values) > MAX_SERVERS:
        left_out.append(f"{len(values) - MAX_SERVERS} servers beyond {MAX_SERVERS}")
    return servers, tuple(left_out)


async def _nothing(api: Api, question: Question) -> ApiProblem:
    match = [selector(*question.matchers)] if question.matchers else []
    names = await api.label_values("__name__", match, question.from_ms, question.to_ms)
    prefixes = Counter(head[0] for name in names if (head := _PREFIX.match(name)))
    shown = ", ".join(f"{prefix}… ({count})" for prefix, count in prefixes.most_common(_SHOWN))
    detail = (
        f"{api.url} holds no metric of {titles()} in that time; the names there begin {shown or '(none)'}"
    )
    remedy = (
        "let it scrape the engine's /metrics (SGLang: --enable-metrics), ask for another time, "
        "or drop what `match` asks for"
    )
    return ApiProblem(HealthState.NOT_THIS_ENGINE, detail, remedy, answer=api.last)


def _no_servers(question: Question) -> ApiProblem:
    detail = f"no series of {titles()} has the label {question.label!r}"
    if question.only:
        detail += f" with a value among {', '.join(map(ascii, question.only[:5]))}"
    remedy = "name another label (server_label) or other servers; see one series in the API"
    return ApiProblem(HealthState.NOT_THIS_ENGINE, detail, remedy)
