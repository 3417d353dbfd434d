"""Secrets never reach the store: everything that an engine says about itself passes through `redact` first.

Three rules work together, because each alone has holes:

1. a value under a secret name (``api_key``, ``HF_TOKEN``, ``AWS_…``) is replaced;
2. text is searched for secrets by their form: URL credentials, ``--api-key X``, ``TOKEN=X``, ``Bearer X``,
   well-known key prefixes; JSON inside text is opened;
3. every secret found by rule 1 or 2 (and the key that we send ourselves) is replaced wherever else it occurs.

Token *counts* (``max_total_tokens``), vocabulary tokens (``eos_token``) and paths are not secrets.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from specscope_collectors.secret_names import is_secret_name
from specscope_collectors.secret_text import find_in_text, strip_text

REDACTED = "[redacted]"
TOO_DEEP = "[too deep]"
MAX_DEPTH = 40
MAX_TEXT_CHARACTERS = 8_000
"""Longer text is cut at a blank: no setting is that long, and searching it must stay cheap."""
_SHORTEST_KNOWN = 6
_LARGEST_INTEGER = 2**63 - 1


def redact(value: Any, *, known: Iterable[str | None] = ()) -> Any:
    """Return a copy of a JSON value without secrets; ``known`` are removed wherever they occur."""
    found = {secret for secret in known if secret}
    _collect(value, found, depth=0)
    # Short ones would blot out innocent text; under their own names they are replaced anyhow.
    ordered = sorted((secret for secret in found if len(secret) >= _SHORTEST_KNOWN), key=len, reverse=True)
    return _replace(value, tuple(ordered), depth=0)


def redact_text(text: str, *, known: Iterable[str | None] = ()) -> str:
    """Return ``text`` (a command line, a log line, a message) without secrets."""
    return str(redact(text, known=known))


def _collect(value: Any, found: set[str], depth: int) -> None:
    """Gather secrets by name and by form."""
    if depth > MAX_DEPTH:
        return
    if isinstance(value, dict):
        if _is_entry(value):
            found.update(_strings(value["value"], depth))
        for key, item in value.items():
            if is_secret_name(str(key), item):
                found.update(_strings(item, depth))
            _collect(key, found, depth + 1)
            _collect(item, found, depth + 1)
    elif isinstance(value, list | tuple):
        found.update(_after_flags(value))
        for item in value:
            _collect(item, found, depth + 1)
    elif isinstance(value, str):
        found.update(find_in_text(_bounded(value)))


def _replace(value: Any, secrets: tuple[str, ...], depth: int) -> Any:
    if depth > MAX_DEPTH:
        return TOO_DEEP
    if isinstance(value, dict):
        return {
            _clean(str(key), secrets): REDACTED
            if is_secret_name(str(key), item) or (key == "value" and _is_entry(value))
            else _replace(item, secrets, depth + 1)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        hidden = set(_flag_positions(value))
        return [
            REDACTED if at in hidden else _replace(item, secrets, depth + 1) for at, item in enumerate(value)
        ]
    if isinstance(value, str):
        return _clean(value, secrets)
    if isinstance(value, int) and abs(value) > _LARGEST_INTEGER:
        return str(value)
    return value


def _clean(text: str, secrets: tuple[str, ...]) -> str:
    text = _bounded(text)
    for secret in secrets:
        text = text.replace(secret, REDACTED)
    return strip_text(text, REDACTED)


def _bounded(text: str) -> str:
    if len(text) <= MAX_TEXT_CHARACTERS:
        return text
    return text[:MAX_TEXT_CHARACTERS].rpartition(" ")[0] + " [cut: too long]"


def _strings(value: Any, depth: int) -> set[str]:
    """Every scalar inside a value that stands under a secret name."""
    if depth > MAX_DEPTH or value is None or isinstance(value, bool):
        return set()
    if isinstance(value, dict):
        return set().union(*(_strings(item, depth + 1) for item in value.values()))
    if isinstance(value, list | tuple):
        return set().union(*(_strings(item, depth + 1) for item in value))
    return {str(value)}


def _after_flags(items: list[Any] | tuple[Any, ...]) -> set[str]:
    """Secrets of an argument vector: ``["--api-key", "X"]``."""
    return {str(items[at]) for at in _flag_positions(items)}


def _is_entry(value: dict[Any, Any]) -> bool:
    """``{"name": "HF_TOKEN", "value": "X"}``, as Kubernetes writes an environment."""
    name = value.get("name", value.get("key"))
    return isinstance(name, str) and "value" in value and is_secret_name(name, value["value"])


def _flag_positions(items: list[Any] | tuple[Any, ...]) -> list[int]:
    if len(items) == 2 and all(isinstance(item, str) for item in items) and is_secret_name(*items):
        return [1]  # a header or a variable as a pair
    return [
        at + 1
        for at, item in enumerate(items[:-1])
        if isinstance(item, str)
        and item.startswith("-")
        and "=" not in item
        and is_secret_name(item, items[at + 1])
    ]
