"""Read YAML that people write, carefully: data only, bounded, each value with the line it stands in.

Plain words are read as YAML 1.2 does: ``true`` and ``false`` are the only switches, so that ``on`` and ``no``
stay words. Anchors, aliases and tags are refused: nothing needs them, and aliases can blow up a small file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import yaml

MAX_BYTES = 8 * 1_048_576
MAX_DEPTH = 30
MAX_NODES = 1_000_000

Path: TypeAlias = tuple[str | int, ...]
"""Keys and indices from the top, e.g. ``("rules", 2, "condition", "above")``."""

_INT = re.compile(r"[-+]?[0-9]{1,300}", re.ASCII)
_FLOAT = re.compile(r"[-+]?(\.[0-9]{1,300}|[0-9]{1,300}(\.[0-9]{0,300})?)([eE][-+]?[0-9]{1,4})?", re.ASCII)
_WORDS = {"": None, "~": None, "null": None, "true": True, "false": False}
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class YamlError(ValueError):
    """Text that cannot be used; the message names line, reason and remedy."""


@dataclass(frozen=True, slots=True)
class Document:
    """What a text says."""

    value: Any
    lines: dict[Path, int] = field(default_factory=dict)
    """Path → line, from 1."""

    def line(self, path: Path) -> int:
        """Return the line of a value, or of the nearest that holds it."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


def read_yaml(text: str | bytes) -> Document:
    """Return the document. Raises `YamlError`."""
    if isinstance(text, bytes):
        try:
            text = text.decode()
        except UnicodeDecodeError as error:
            raise YamlError(f"byte {error.start} is no UTF-8; save the file as UTF-8") from None
    if len(text.encode(errors="surrogatepass")) > MAX_BYTES:
        raise YamlError(f"it is larger than the limit of {MAX_BYTES:,} bytes; split it up")
    try:
        _check_events(text)
        node = yaml.compose(text, Loader=_LOADER)
    except yaml.YAMLError as error:
        raise YamlError(_syntax(error)) from None
    lines: dict[Path, int] = {}
    return Document(None if node is None else _value(node, (), lines), lines)


def _check_events(text: str) -> None:
    """Refuse what could grow or run, before anything is built."""
    depth = 0
    for count, event in enumerate(_events(text)):
        line = event.start_mark.line + 1
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise YamlError(
                f"line {line}: anchors and aliases (& and *) are not read here; write it out, or quote it"
            )
        if getattr(event, "tag", None):
            raise YamlError(f"line {line}: tags (!) are not read here; leave it out, or quote the value")
        if depth > MAX_DEPTH or count > 3 * MAX_NODES:
            raise YamlError(
                f"line {line}: more than {MAX_DEPTH} levels or {MAX_NODES:,} values; split the file up"
            )


def _events(text: str) -> Iterator[Any]:
    yield from yaml.parse(text, Loader=_LOADER)


def _syntax(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    reason = getattr(error, "problem", None) or str(error).splitlines()[0]
    where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    return f"{where}this is no YAML: {reason}; check indentation, and quote texts with ':' or '#' in them"


def _value(node: Any, path: Path, lines: dict[Path, int]) -> Any:
    lines[path] = node.start_mark.line + 1
    if isinstance(node, yaml.SequenceNode):
        return [_value(child, (*path, index), lines) for index, child in enumerate(node.value)]
    if isinstance(node, yaml.MappingNode):
        return _mapping(node, path, lines)
    return _scalar(node)


def _mapping(node: Any, path: Path, lines: dict[Path, int]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key_node, child in node.value:
        line = key_node.start_mark.line + 1
        if not isinstance(key_node, yaml.ScalarNode):
            raise YamlError(f"line {line}: a name must be a single word")
        key = str(key_node.value)
        if key in found:
            raise YamlError(f"line {line}: {key[:60]!r} stands twice in the same place; keep one of them")
        found[key] = _value(child, (*path, key), lines)
        lines[(*path, key)] = line
    return found


def _scalar(node: Any) -> Any:
    text = str(node.value)
    if node.style not in (None, ""):  # quoted, or a block: the two loaders write a plain word differently
        return text
    if text in _WORDS:
        return _WORDS[text]
    if _INT.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text
