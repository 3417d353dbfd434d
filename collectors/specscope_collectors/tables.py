"""Reads one TOML table into a frozen struct, and says all that is wrong with it at once."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

import msgspec

S = TypeVar("S", bound=msgspec.Struct)
_VARIABLE = re.compile(r"\$(\$|\{([A-Za-z_][A-Za-z0-9_]*)\})")
_SECRET = re.compile(r"key|token|secret|password", re.IGNORECASE)
_SHOWN = 60


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """Return ``" Did you mean 'x'?"`` (leading blank), or an empty string when nothing is near."""
    near = get_close_matches(given, list(known), n=1, cutoff=0.6)
    return f" Did you mean {near[0]!r}?" if near else ""


def read_table(table: Mapping[str, Any], kind: type[S], where: str, problems: list[str]) -> S | None:
    """Return ``table`` as ``kind``; None when something is wrong: then it was appended to ``problems``.

    ``where`` names file and table. A key that is unknown, missing or of the wrong type is named with the
    reason and the remedy, and so is what the struct itself refuses.
    """
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    found = [_unknown(key, fields, where) for key in table if key not in fields]
    values = {key: interpolate(value, f"{where}: {key}", found) for key, value in table.items()}
    for key, field in fields.items():
        if key in table:
            found += _type_problems(values[key], key, field.type, where)
        elif field.required:
            found.append(f"{where}: the key {key!r} is missing; add {key} = …")
    if not found:
        try:
            return convert(values, kind)
        except (msgspec.ValidationError, ValueError) as error:
            found.append(f"{where}: {_reason(error)}")
    problems += found
    return None


def convert(values: Any, kind: type[S]) -> S:
    """Return TOML values as ``kind``; raises msgspec.ValidationError."""
    return msgspec.convert(values, kind, dec_hook=_path)


def interpolate(value: Any, where: str, problems: list[str]) -> Any:
    """Replace ``${NAME}`` in strings by the environment variable, ``$$`` by ``$``; whole TOML values only.

    This is done after TOML was read, so that a variable cannot bring keys or tables. One that is not set is
    appended to ``problems``.
    """
    if isinstance(value, str):
        return _VARIABLE.sub(lambda match: _variable(match, where, problems), value)
    if isinstance(value, list):
        return [interpolate(each, where, problems) for each in value]
    if isinstance(value, dict):
        return {key: interpolate(each, f"{where}.{key}", problems) for key, each in value.items()}
    return value


def _variable(match: re.Match[str], where: str, problems: list[str]) -> str:
    if match[1] == "$":
        return "$"
    value = os.environ.get(match[2])
    if value is None:
        problems.append(f"{where}: the environment variable {match[2]} is not set; set it, or write $${{…}}")
    return value or ""


def _unknown(key: str, known: Iterable[str], where: str) -> str:
    names = sorted(known)
    return f"{where}: there is no key {key!r}.{did_you_mean(key, names)} Known keys: {', '.join(names)}"


def _type_problems(value: Any, key: str, kind: Any, where: str) -> list[str]:
    try:
        convert(value, kind)
    except (msgspec.ValidationError, ValueError) as error:
        shown = "" if _SECRET.search(key) else f" = {_short(value)}"
        return [f"{where}: {key}{shown}: {_reason(error)}"]
    return []


def _path(kind: type[Any], value: Any) -> Any:
    if kind is Path and isinstance(value, str):
        return Path(value)
    raise NotImplementedError(f"no {kind} can be read from TOML")


def _reason(error: Exception) -> str:
    text = str(error)
    return text[0].lower() + text[1:] if text.startswith("Expected") else text


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
