"""Write answers as JSON, CSV or NDJSON, with ETags on ranges that are closed."""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson
from fastapi import Request, Response

from specscope_server.kit.web.params import Format

_OPTIONS = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
MEDIA_TYPES = {
    Format.JSON: "application/json",
    Format.CSV: "text/csv; charset=utf-8",
    Format.NDJSON: "application/x-ndjson",
}


def dump_json(value: Any) -> bytes:
    """Return JSON; NumPy arrays become arrays, NaN becomes null."""
    return orjson.dumps(value, option=_OPTIONS)


def safe_cell(value: Any) -> Any:
    """Return what a spreadsheet shows as text: labels are untrusted, and ``=1+1`` would run as a formula.

    Truth values are written as in JSON.
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping | list | tuple):
        value = dump_json(value).decode()
    if isinstance(value, str) and value.startswith(_FORMULA_STARTS):
        return f"'{value}"
    return value


def to_csv(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> bytes:
    """Return CSV with a header line; None is an empty cell."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(columns)
    writer.writerows([safe_cell(row.get(column)) for column in columns] for row in rows)
    return out.getvalue().encode()


def to_ndjson(rows: Iterable[Mapping[str, Any]]) -> bytes:
    """Return one JSON object a line."""
    return b"".join(dump_json(row) + b"\n" for row in rows)


def respond(
    request: Request,
    chosen: Format,
    document: Any,
    columns: Sequence[str],
    rows: Iterable[Mapping[str, Any]],
    *,
    closed: bool = False,
) -> Response:
    """Return ``document`` as JSON, or its ``rows`` as CSV or NDJSON."""
    if chosen is Format.JSON:
        body = dump_json(document)
    elif chosen is Format.CSV:
        body = to_csv(columns, rows)
    else:
        body = to_ndjson({column: row.get(column) for column in columns} for row in rows)
    return cached(request, body, MEDIA_TYPES[chosen], closed=closed)


def cached(request: Request, body: bytes, media_type: str, *, closed: bool) -> Response:
    """Return ``body``; for a closed range with an ETag, and 304 when the caller has it already.

    The age is short although the range is closed: a collector that was cut off pushes late.
    """
    if not closed:
        return Response(body, headers={"Cache-Control": "no-store"}, media_type=media_type)
    etag = f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'
    headers = {"ETag": etag, "Cache-Control": "private, max-age=60"}
    known = {tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")}
    if etag in known or "*" in known:
        return Response(status_code=304, headers=headers)
    return Response(body, headers=headers, media_type=media_type)
