"""Describe answers in OpenAPI: an example for each, and every error that the endpoint can give."""

from __future__ import annotations

from typing import Any

from specscope_server.kit.web.problems import MEDIA_TYPE

_ERRORS = {
    401: ("Unauthorized", "a token is needed; send Authorization: Bearer TOKEN"),
    403: ("Forbidden", "the token 'gpu1' has the scope read, and POST /api/v1/ingest needs admin or ingest"),
    404: ("Not found", "there is no server 'gpu1'; see /api/v1/servers"),
    408: ("Request timeout", "the body did not arrive within 30 s; send smaller ones"),
    409: ("Conflict", "rule 'low-acceptance' is at version 3, and you changed version 2; read it again"),
    413: ("Too large", "the body is over max_push_bytes=33554432; send it in parts"),
    415: ("Unsupported media type", "Content-Type 'text/plain' is not read here; send application/json"),
    422: ("Invalid input", "from='yesterday' is not a time; write ISO 8601, now-6h or -30m"),
    503: ("Unavailable", "the database did not answer; try again, and see /readyz"),
}


def answers(
    example: Any,
    *errors: int,
    csv: str | None = None,
    more: tuple[str, ...] = (),
    media_type: str = "application/json",
    needs_token: bool = True,
) -> dict[int | str, dict[str, Any]]:
    """Return FastAPI's ``responses``: the good answer with an example, and problem documents for ``errors``.

    ``csv``: an example, for answers that are also given as CSV and NDJSON. ``more``: further media types.

    503 is possible everywhere and always added, and so is 401 unless the path is open to all.
    """
    content: dict[str, Any] = {media_type: {"example": example}}
    if csv is not None:
        content["text/csv"] = {"example": csv, "schema": {"type": "string"}}
        content["application/x-ndjson"] = {"schema": {"type": "string"}}
    content |= {name: {"schema": {"type": "string"}} for name in more}
    documented: dict[int | str, dict[str, Any]] = {200: {"description": "The answer", "content": content}}
    for status in sorted({*errors, 503} | ({401} if needs_token else set())):
        documented[status] = _problem(status)
    return documented


def _problem(status: int) -> dict[str, Any]:
    title, detail = _ERRORS[status]
    example = {
        "type": f"urn:specscope:problem:{title.lower().replace(' ', '-')}",
        "title": title,
        "status": status,
        "detail": detail,
        "instance": "/api/v1/…",
    }
    schema = {"$ref": "#/components/schemas/Problem"}
    return {"description": title, "content": {MEDIA_TYPE: {"schema": schema, "example": example}}}
