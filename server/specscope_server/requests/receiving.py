"""Take answers in: parse, check, store what is good, and say of the rest what is wrong with it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
import structlog
from sqlalchemy import Engine

from specscope_collectors.observations import RequestRecord
from specscope_collectors.sources.requests import (
    HealthCheckError,
    RefusedError,
    UnreadableError,
    checked_labels,
    records_of,
)
from specscope_server.kit.errors import InvalidInput
from specscope_server.kit.web.bodies import JsonBody
from specscope_server.requests.schemas import Receipt, Refused
from specscope_server.store.refusal import Reason
from specscope_server.store.request_writer import store_requests

log = structlog.get_logger(__name__)
MAX_REFUSED = 100
WORDS = {
    Reason.FUTURE: "it finished more than a day ahead of this server's clock; check the clocks",
    Reason.TOO_OLD: "it finished before what is kept; raise retention_requests_days to keep it",
    Reason.HISTOGRAM_MISMATCH: "the histogram does not add up to the verify calls and accepted drafts",
    Reason.ACCEPTED_ABOVE_PROPOSED: "more drafts are accepted than were proposed",
}
"""Reason of the store → what is wrong; the others say it by their names."""


@dataclass(slots=True)
class Read:
    """Records with the place of the answer that each came from, and what was left out."""

    records: list[RequestRecord] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    causes: Counter[str] = field(default_factory=Counter)
    """Refusals by reason, in one word each."""
    health_checks: int = 0


def items_of(body: JsonBody) -> Iterator[tuple[int, Any]]:
    """Yield (place, answer); an answer that is no JSON is a `RefusedError`. Raises `InvalidInput`."""
    if body.is_lines:
        yield from lines_of(body.content.split(b"\n"))
        return
    try:
        document = parse(body.content)
    except ValueError as error:
        raise InvalidInput(f"the body is not JSON: {error}; send an answer or a list of them") from None
    yield from enumerate(document if isinstance(document, list) else [document])


def lines_of(lines: Sequence[bytes] | Iterator[bytes]) -> Iterator[tuple[int, Any]]:
    """Yield (line from 0, object) of JSON lines; a line that is no JSON becomes an `UnreadableError`."""
    for place, line in enumerate(lines):
        if not line.strip():
            continue
        try:
            yield place, parse(line)
        except ValueError as error:
            yield place, UnreadableError(f"the line is not JSON ({error}); it may have been cut")


def parse(text: bytes) -> Any:
    """Return what JSON says; raise ValueError. Python writes NaN and Infinity, which are no JSON: null."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        if b"NaN" not in text and b"Infinity" not in text:
            raise
        try:
            return json.loads(text, parse_constant=lambda _: None)
        except RecursionError:
            raise error from None


def read(items: Iterator[tuple[int, Any]], labels: Mapping[str, str], received_ms: int) -> Read:
    """Return the records of the answers; ``labels`` go to all, an answer's own ``labels`` before them."""
    found = Read()
    for place, item in items:
        try:
            records = _records(item, labels, received_ms)
        except HealthCheckError:
            found.health_checks += 1
        except RefusedError as error:
            found.refused.append(Refused(index=place, reason=str(error)))
            found.causes[error.cause] += 1
        else:
            found.records += records
            found.places += [place] * len(records)
    return found


def _records(item: Any, labels: Mapping[str, str], received_ms: int) -> list[RequestRecord]:
    if isinstance(item, RefusedError):
        raise item
    own = checked_labels(item.get("labels")) if isinstance(item, Mapping) else {}
    return records_of(item, labels={**labels, **own}, received_ms=received_ms)


def store(engine: Engine, server: str, found: Read, now_ms: int, oldest_ms: int) -> Receipt:
    """Store the records and return what became of all answers; ``found.causes`` then counts all refusals."""
    stored = store_requests(engine, server, found.records, now_ms=now_ms, oldest_ms=oldest_ms)
    refused = [
        Refused(index=found.places[index], reason=WORDS.get(reason, str(reason).replace("_", " ")))
        for index, reason in stored.refused.items()
    ]
    found.causes.update(str(reason) for reason in stored.refused.values())
    if found.refused or refused:
        log.warning("refused requests", server=server, refused=len(found.refused) + len(refused))
    everything = sorted([*found.refused, *refused], key=lambda entry: entry.index)
    return Receipt(
        server=server,
        accepted=stored.accepted,
        duplicates=stored.duplicates,
        health_checks=found.health_checks,
        without_counts=stored.without_counts,
        refused_total=len(everything),
        refused=everything[:MAX_REFUSED],
    )
