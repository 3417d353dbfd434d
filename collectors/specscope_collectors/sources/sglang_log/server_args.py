"""The dump of the server's arguments, ``ServerArgs(a=1, …)`` or ``{'a': 1, …}``: literals, never run."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from specscope_collectors.redaction import redact
from specscope_collectors.sources.sglang_log.versions import DICT_DUMP, REPR_DUMP

_START = re.compile(r"server_args=(?:ServerArgs\(|(?P<dict>\{))")
_NAME = re.compile(r"\s*(?:'(?P<key>[^'\\]{1,200})'|(?P<name>[A-Za-z_]\w{0,199}))\s*(?P<mark>[=:])")
_TOKEN = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|[()\[\]{},'\"]", re.DOTALL)
_SIMPLE: dict[str, Any] = {"None": None, "True": True, "False": False}
_CLOSES = {"(": ")", "[": "]", "{": "}"}
MAX_LITERAL_CHARACTERS = 64_000
MAX_NESTING = 30
MAX_FIELDS = 5_000


@dataclass(frozen=True, slots=True)
class Dump:
    """Arguments of one start, without secrets."""

    config: dict[str, Any]
    form: str
    """How it is written, see `versions.BOUNDS`."""
    is_cut: bool
    """The line ends before the dump does; what was whole is here."""


def find_dump(line: str) -> int:
    """Return where a dump begins in the line; -1 = nowhere."""
    match = _START.search(line) if "server_args=" in line else None
    return match.start() if match else -1


def read_dump(line: str) -> Dump | None:
    """Return the arguments; None when the line holds no dump that names a model."""
    match = _START.search(line)
    if match is None:
        return None
    closing = "}" if match["dict"] else ")"
    raw: dict[str, Any] = {}
    is_cut = True
    for text, is_whole, is_last in _fields(line, match.end(), closing):
        is_cut = not is_last
        name = _NAME.match(text)
        if name and is_whole and len(raw) < MAX_FIELDS:
            raw[name["key"] or name["name"]] = _value(text[name.end() :].strip())
    form = DICT_DUMP if match["dict"] else REPR_DUMP
    return Dump(redact(raw), form, is_cut) if "model_path" in raw else None


def _fields(line: str, start: int, closing: str) -> Iterator[tuple[str, bool, bool]]:
    """Yield (text, it is whole, it was the last before the end of the dump) of each top-level field."""
    stack: list[str] = []
    begin = start
    for token in _TOKEN.finditer(line, start):
        mark = token[0]
        if mark in _CLOSES:
            stack.append(_CLOSES[mark])
        elif stack and mark == stack[-1]:
            stack.pop()
        elif not stack and mark == closing:
            yield line[begin : token.start()], True, True
            return
        elif not stack and mark == ",":
            yield line[begin : token.start()], True, False
            begin = token.end()
    yield line[begin:], False, False


def _value(text: str) -> Any:
    """Return a literal as JSON knows it; anything else (an object's repr) as its text."""
    if text in _SIMPLE:
        return _SIMPLE[text]
    if len(text) > MAX_LITERAL_CHARACTERS or _nesting(text) > MAX_NESTING:
        return text
    try:
        return _plain(ast.literal_eval(text))
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return text


def _nesting(text: str) -> int:
    """The deepest nesting of brackets; runs of signs nest too for the parser."""
    depth = deepest = 0
    for token in re.finditer(r"[(\[{]|[)\]}]|[-+~]{8,}", text):
        mark = token[0]
        depth += 1 if mark in "([{" else -1 if mark in ")]}" else 0
        deepest = max(deepest, depth, len(mark))
    return deepest


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted(map(str, value))
    if isinstance(value, float) and value - value != 0:  # NaN and infinities are no JSON
        return str(value)
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
