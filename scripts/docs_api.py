"""The API page, from the OpenAPI document of the application."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from docs_markdown import code, page, table
from sqlalchemy import create_engine

from specscope_server.app import create_app
from specscope_server.settings import Settings

Document = dict[str, Any]

METHODS = ("get", "post", "put", "patch", "delete")

INTRODUCTION = """
Every operation, from the OpenAPI document that the server gives at `/api/v1/openapi.json`. How to use them,
with examples to copy: [Query by REST](../guide/rest.md). Errors have one shape, `application/problem+json`
(RFC 9457): `title`, `status` and a `detail` that names the input, the reason and the remedy. Fields that are
null are left out of the examples here; in answers they are there.
"""


def api_page() -> str:
    """Return the page."""
    document = openapi_document()
    return page("API", INTRODUCTION, [_section(document, *found) for found in operations(document)])


def openapi_document() -> Document:
    """Return the OpenAPI document of the application as it is served; its store stays empty and in memory."""
    schema: Document = create_app(Settings.model_validate({}), engine=create_engine("sqlite://")).openapi()
    return schema


def operations(document: Document) -> Iterator[tuple[str, str, Document]]:
    """Yield (method, path, operation) by path."""
    for path in sorted(document["paths"]):
        for method in METHODS:
            if method in document["paths"][path]:
                yield method.upper(), path, document["paths"][path][method]


def _section(document: Document, method: str, path: str, operation: Document) -> str:
    parts = [f"## `{method} {path}`", operation.get("description") or operation.get("summary", "")]
    parameters = [_resolve(document, parameter) for parameter in operation.get("parameters", [])]
    if parameters:
        parts.append(
            table(["parameter", "in", "type", "meaning"], [_parameter(document, p) for p in parameters])
        )
    good = {status: answer for status, answer in operation["responses"].items() if status.startswith("2")}
    bad = {status: answer for status, answer in operation["responses"].items() if status not in good}
    parts += [_answer(document, status, answer) for status, answer in sorted(good.items())]
    parts.append(_errors(document, bad))
    return "\n\n".join(part for part in parts if part)


def _parameter(document: Document, parameter: Document) -> list[str]:
    schema = parameter.get("schema", {})
    required = " (required)" if parameter.get("required") else ""
    meaning = parameter.get("description") or schema.get("description", "")
    default = schema.get("default")
    tail = f" (default: {code(json.dumps(default))})" if default is not None else ""
    return [code(parameter["name"]) + required, parameter["in"], type_name(document, schema), meaning + tail]


def type_name(document: Document, schema: Document) -> str:
    """Return a short name of a JSON schema: `integer`, `string or null`, an enum's words, …"""
    schema = _resolve(document, schema)
    for key in ("anyOf", "oneOf", "allOf"):
        if key in schema:
            return " or ".join(dict.fromkeys(type_name(document, option) for option in schema[key]))
    if "enum" in schema:
        return " or ".join(code(value) for value in schema["enum"])
    if schema.get("type") == "array":
        return f"array of {type_name(document, schema.get('items', {}))}"
    return str(schema.get("type", "any"))


def _answer(document: Document, status: str, answer: Document) -> str:
    media = _resolve(document, answer).get("content", {})
    parts = [f"Answer ({status}): " + (", ".join(code(name) for name in media) or "no content") + "."]
    for content in media.values():
        example = first_example(content)
        if example is not None:
            parts.append(_fenced(example))
    return "\n\n".join(parts)


def _errors(document: Document, answers: Document) -> str:
    named = {status: _resolve(document, answer)["description"] for status, answer in sorted(answers.items())}
    words = [f"{status} {description}" for status, description in named.items()]
    return f"Errors: {', '.join(words)}." if words else ""


def first_example(content: Document) -> Any:
    """Return the example of one media type, or None."""
    if "example" in content:
        return content["example"]
    for example in content.get("examples", {}).values():
        return example.get("value")
    return None


def _fenced(example: object) -> str:
    if isinstance(example, str):
        return "```\n" + "\n".join(example.splitlines()) + "\n```"
    return f"```json\n{json.dumps(example, indent=2, ensure_ascii=False)}\n```"


def _resolve(document: Document, part: Document) -> Document:
    while "$ref" in part:
        target: Any = document
        for name in part["$ref"].removeprefix("#/").split("/"):
            target = target[name]
        part = target
    return part
