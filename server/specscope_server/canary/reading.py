"""Read what the canary's requests counted."""

from __future__ import annotations

from dataclasses import dataclass

import orjson
from sqlalchemy import select
from sqlalchemy.orm import Session

from specscope_collectors.observations import CanaryLabel
from specscope_server.models import Request
from specscope_server.store.canary import is_canary

_LABELS = (CanaryLabel.RUN, CanaryLabel.SET, CanaryLabel.PROMPT, CanaryLabel.OUTPUT)
MAX_REQUESTS = 20_000
"""Newest requests of canaries that one answer is computed from."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One prompt of one run."""

    run_ms: int
    prompt_set: str
    prompt: str
    output: str
    launch_id: int | None
    cycles: int | None
    accepted: int | None
    e2e_seconds: float | None


def asked_between(session: Session, server_id: int, from_ms: int, to_ms: int) -> list[Asked]:
    """Return the newest answers of the range, newest first."""
    columns = (
        Request.launch_id, Request.verify_calls, Request.accepted_drafts, Request.e2e_seconds, Request.labels,
    )  # fmt: skip
    query = (
        select(*columns)
        .where(Request.server_id == server_id, Request.time_ms >= from_ms, Request.time_ms < to_ms)
        .where(is_canary())
        .order_by(Request.time_ms.desc(), Request.id.desc())
        .limit(MAX_REQUESTS)
    )
    found = (_asked(*row) for row in session.execute(query))
    return [each for each in found if each is not None]


def _asked(
    launch_id: int | None, cycles: int | None, accepted: int | None, e2e_seconds: float | None, labels: str
) -> Asked | None:
    """Return None for a request that only pretends to be a canary's: whoever may report can name it so."""
    given = orjson.loads(labels)
    names = [given.get(name) for name in _LABELS]
    if not all(isinstance(name, str) for name in names) or not _is_time(names[0]):
        return None
    run, prompt_set, prompt, output = names
    return Asked(int(run), prompt_set, prompt, output, launch_id, cycles, accepted, e2e_seconds)


def _is_time(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 16
