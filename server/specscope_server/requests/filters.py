"""Which requests are meant: a server, a range, launches, labels and a search text, as conditions in SQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
from sqlalchemy import func, or_
from sqlalchemy.orm import Session
from sqlalchemy.sql import ColumnElement

from specscope_collectors.observations import CANARY_ID_PREFIX
from specscope_server.kit.errors import InvalidInput
from specscope_server.kit.web.params import TimeRange
from specscope_server.models import Launch, Request
from specscope_server.store.canary import is_traffic
from specscope_server.store.identity import canonical
from specscope_server.store.lookup import choose_launches, server_by_name

MAX_SEARCH_CHARACTERS = 500


@dataclass(frozen=True, slots=True)
class Scope:
    """Requests of one server that finished inside [from_ms, to_ms) and match what was asked for."""

    server_id: int
    from_ms: int
    to_ms: int
    launches: Mapping[int, Launch]
    """Launches that are meant, by id. With ``of_any_launch`` they are only those seen in the range."""
    of_any_launch: bool = True
    labels: Mapping[str, str] = field(default_factory=dict)
    search: str = ""
    canaries: bool = False
    """Requests of canaries, too; only lists may show them."""

    @property
    def is_filtered(self) -> bool:
        """Tell whether labels or a text narrow the requests down."""
        return bool(self.labels or self.search)

    def conditions(self) -> list[ColumnElement[bool]]:
        """Return the conditions on `Request`."""
        kept = [] if self.canaries else [is_traffic()]
        return [*self.unfiltered(), *kept, *_with_labels(self.labels), *_searched(self.search)]

    def unfiltered(self) -> list[ColumnElement[bool]]:
        """Return the conditions without labels and search."""
        found = [
            Request.server_id == self.server_id,
            Request.time_ms >= self.from_ms,
            Request.time_ms < self.to_ms,
        ]
        if not self.of_any_launch:
            found.append(Request.launch_id.in_(list(self.launches)))
        return found


def scope_of(
    session: Session, server: str, launch: str | None, span: TimeRange, labels: Sequence[str] = (),
    search: str = "", *, canaries: bool = False,
) -> Scope:  # fmt: skip
    """Return the scope, without the requests of canaries unless asked for.

    Raises `NotFound` for a server or launch that is not there, `InvalidInput` for labels or a text that
    cannot be meant.
    """
    row = server_by_name(session, server)
    launches = choose_launches(session, row.id, launch, span.from_ms, span.to_ms)
    text = search.strip()
    if len(text) > MAX_SEARCH_CHARACTERS or "\0" in text:
        raise InvalidInput(
            f"search={text[:40]!r} is no text to search for; write at most {MAX_SEARCH_CHARACTERS} characters"
        )
    return Scope(
        server_id=row.id,
        from_ms=span.from_ms,
        to_ms=span.to_ms,
        launches={item.id: item for item in launches},
        of_any_launch=launch in (None, "", "all"),
        labels=parse_filters(labels),
        search=text,
        canaries=canaries or text.startswith(CANARY_ID_PREFIX),
    )


def parse_filters(texts: Sequence[str]) -> dict[str, str]:
    """Return the labels that requests must have; raise `InvalidInput` for what is not NAME=VALUE."""
    pairs = [text.partition("=") for text in texts]
    for name, equals, _ in pairs:
        if not equals or not name:
            raise InvalidInput(f"label={name[:60]!r} is not NAME=VALUE; write e.g. label=tenant=search")
    return {name: value for name, _, value in pairs}


def _with_labels(labels: Mapping[str, str]) -> list[ColumnElement[bool]]:
    return [_has_label(name, value) for name, value in labels.items()]


def _has_label(name: str, value: str) -> ColumnElement[bool]:
    """Labels are kept as JSON without blanks, in which no text can look like another pair of name and value.

    A replacement that changes the text is a search that knows upper from lower case on both databases.
    """
    pair = canonical({name: value})[1:-1]
    return func.replace(Request.labels, pair, "") != Request.labels


def _searched(text: str) -> list[ColumnElement[bool]]:
    """An id that begins so, or the label ``NAME=VALUE``, or a text that stands anywhere in the labels."""
    if not text:
        return []
    name, equals, value = text.partition("=")
    begins: ColumnElement[bool] = Request.request_id.startswith(text, autoescape=True)
    if equals:
        return [or_(begins, _has_label(name.strip(), value.strip()))]
    written: Any = orjson.dumps(text).decode()[1:-1]
    return [or_(begins, Request.labels.icontains(written, autoescape=True))]
