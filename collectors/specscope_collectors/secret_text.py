"""Secrets inside text, known by their form."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from specscope_collectors.secret_names import is_secret_name

_VALUE = (
    r"""(?:"(?P<double>(?:\\.|[^"\\])*)"|'(?P<single>(?:\\.|[^'\\])*)'|\\+"(?P<escaped>[^"]*?)\\+\""""
    r"""|(?P<bare>(?!\\+")[^\s"',;&}\])]{1,64}))"""
)
_ASSIGNMENT = re.compile(
    # --api-key X, --api-key=X, HF_TOKEN=X, "api_key": "X", ?token=X, Authorization: X
    rf"""(?<![\w.-])(?P<name>-{{0,2}}[A-Za-z_][\w.-]*+)(?P<separator>\\*["']?\s*[=:]\s*|\s+){_VALUE}"""
)
_FORMS = re.compile(
    r"""(?P<scheme>\b[a-z][a-z0-9+.-]{1,20}://)(?P<credentials>[^\s/@"':]*:(?!\d{1,5}/)[^\s"',]{1,300}|[^\s/@"']+)(?=@)"""
    r"""|\b(?i:bearer|basic)\s+(?P<bearer>[A-Za-z0-9._~+/=-]{6,})"""
    r"""|(?P<known>\bhf_[A-Za-z0-9]{16,}|\bsk-[A-Za-z0-9_-]{16,}|\bgh[pousr]_[A-Za-z0-9]{20,}|\bglpat-[\w-]{16,}"""
    r"""|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bxox[abprs]-[\w-]{10,}|\bnvapi-[\w-]{16,}"""
    r"""|\beyJ[\w-]{10,}\.[\w-]{5,}\.[\w-]*"""
    r"""|-----BEGIN[ A-Z]*PRIVATE KEY-----[\s\S]*?(?:-----END[ A-Z]*PRIVATE KEY-----|\Z))"""
)
_ALREADY = "[redacted"
_TO_BLANK = re.compile(r"\S*")
_REST = re.compile(r"""[^\s"',;&}\])]*""")
"""Goes on with a bare value: matching all of it after every name would take quadratic time."""


def find_in_text(text: str) -> Iterator[str]:
    """Yield the secrets that can be told by their form or by the name in front of them."""
    for start, end in _spans(text):
        yield text[start:end]
    yield from _scalars_under_secret_names(_opened(text))


def strip_text(text: str, replacement: str) -> str:
    """Return ``text`` with the secrets of `find_in_text` replaced (in JSON: by their assignments)."""
    pieces: list[str] = []
    at = 0
    for start, end in sorted(_spans(text)):
        if start < at:
            continue
        pieces += (text[at:start], replacement)
        at = end
    return "".join((*pieces, text[at:]))


def _spans(text: str) -> list[tuple[int, int]]:
    return [*_form_spans(text), *_assignment_spans(text)]


def _form_spans(text: str) -> Iterator[tuple[int, int]]:
    for match in _FORMS.finditer(text):
        group = match.lastgroup or "known"
        yield match.span("credentials" if group == "scheme" else group)


def _assignment_spans(text: str) -> Iterator[tuple[int, int]]:
    """Spans of values after secret names, name by name: a value may be the name of the next value."""
    at = 0
    while match := _ASSIGNMENT.search(text, at):
        at = match.end("name")
        if (span := _value_span(match, text)) is not None:
            yield span
            at = span[1]


def _value_span(match: re.Match[str], text: str) -> tuple[int, int] | None:
    group = match.lastgroup or "bare"
    name, start, end = match["name"], *match.span(group)
    is_flag, blank_alone = name.startswith("-"), not match["separator"].strip()
    if blank_alone and (not is_flag or text.startswith("-", start)):
        return None  # "the token is" is prose; "--token --port" is a flag without a value
    if not is_secret_name(name, text[start:end]) or text.startswith(_ALREADY, start):
        return None
    if group == "bare":  # on a command line, joined without quotes, the value ends at the blank
        matched = (_TO_BLANK if is_flag else _REST).match(text, start)
        end = matched.end() if matched else end
    return start, end


def _opened(text: str) -> Any:
    """Return the JSON value that ``text`` holds, None when it holds none."""
    stripped = text.strip()
    if not stripped.startswith(("{", "[", '"{', '"[')):
        return None
    try:
        return json.loads(stripped)
    except (ValueError, RecursionError):
        return None


def _scalars_under_secret_names(value: Any) -> Iterator[str]:
    stack: list[tuple[Any, bool]] = [(value, False)]
    while stack:
        item, secret = stack.pop()
        if isinstance(item, str) and (inside := _opened(item)) is not None:
            item = inside  # JSON inside of JSON
        if isinstance(item, dict):
            stack += [(inner, secret or is_secret_name(str(key), inner)) for key, inner in item.items()]
        elif isinstance(item, list):
            stack += [(inner, secret) for inner in item]
        elif secret and isinstance(item, str | int | float) and not isinstance(item, bool):
            yield str(item)
