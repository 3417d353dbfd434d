"""Rules in YAML files: every problem of a file at once, each with its line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any

from specscope_server.alerts.rules.problems import RuleError, read_rule
from specscope_server.alerts.rules.schema import Rule
from specscope_server.kit.names import did_you_mean
from specscope_server.kit.yaml_text import Document, YamlError, read_yaml

MAX_RULES = 20_000
SECTIONS = ("rules", "channels", "routes")
"""What an alerts file may hold; channels and routes are read by those who know them."""


class AlertsFileError(ValueError):
    """A file that cannot be used; ``problems`` names file, line, rule, field, reason and remedy."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


@dataclass(frozen=True, slots=True)
class RulesFile:
    """What a file says."""

    document: Document
    rules: list[Rule]


def read_rules_file(path: FilePath) -> RulesFile:
    """Read a file. Raises `AlertsFileError`."""
    try:
        content = path.read_bytes()
    except OSError as error:
        reason = error.strerror or error
        raise AlertsFileError([f"{path}: it cannot be read: {reason}; check path and rights"]) from None
    return read_rules(content, str(path))


def read_rules(text: str | bytes, name: str) -> RulesFile:
    """Return what a text says; ``name`` stands in messages. Raises `AlertsFileError`."""
    try:
        document = read_yaml(text)
    except YamlError as error:
        raise AlertsFileError([f"{name}: {error}"]) from None
    value = document.value
    problems = _outside(value, document, name)
    entries = [] if problems else value.get("rules") or []
    if not isinstance(entries, list) or len(entries) > MAX_RULES:
        problems.append(f"{name}: rules: a list of at most {MAX_RULES:,} rules is expected")
        entries = []
    rules = _rules(entries, document, name, problems)
    if problems:
        raise AlertsFileError(problems)
    return RulesFile(document, rules)


def _outside(value: Any, document: Document, name: str) -> list[str]:
    """Return what is wrong around the rules.

    Nothing is never meant by an empty file: one that is being saved, or was cut off, looks like that.
    """
    if value in (None, {}):
        return [f"{name}: it is empty, as if it were being saved or cut off; write 'rules: []' to have none"]
    if not isinstance(value, dict):
        return [f"{name}: a table with 'rules' (and 'channels') is expected"]
    bare = [key for key in SECTIONS if key in value and value[key] is None]
    return [
        f"{name}:{document.line((key,))}: {key!r} has no value, as if the file were cut off; write "
        f"'{key}: []' to have none"
        for key in bare
    ] + [
        f"{name}:{document.line((key,))}: {key[:60]!r} is not known here.{did_you_mean(key, SECTIONS)} "
        f"Known: {', '.join(SECTIONS)}"
        for key in value
        if key not in SECTIONS
    ]


def _rules(entries: Sequence[Any], document: Document, name: str, problems: list[str]) -> list[Rule]:
    rules: list[Rule] = []
    lines: dict[str, int] = {}
    for index, body in enumerate(entries):
        try:
            rule = read_rule(body)
        except RuleError as error:
            problems += [
                f"{name}:{document.line(('rules', index, *problem.path))}: {problem.text}"
                for problem in error.problems
            ]
            continue
        line = document.line(("rules", index))
        if rule.name in lines:
            problems.append(
                f"{name}:{line}: rule {rule.name!r}: the name stands in line {lines[rule.name]} already; "
                "names are unique, so choose another"
            )
        lines.setdefault(rule.name, line)
        rules.append(rule)
    return rules
