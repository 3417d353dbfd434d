"""What is wrong with a rule, in words: which rule, which field, why, and what to write instead."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import orjson
from pydantic import BaseModel, ValidationError

from specscope_server.alerts.rules.kinds import kinds
from specscope_server.alerts.rules.schema import Rule
from specscope_server.alerts.rules.signals import signals
from specscope_server.kit.names import did_you_mean
from specscope_server.kit.yaml_text import Path

MAX_DEPTH = 3
MAX_CONDITIONS = 16
MAX_PROBLEMS = 30
"""Said of one rule: more help nobody, and a body of a million wrong names would get an answer as long."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that must be changed."""

    rule: str
    path: Path
    """From the rule, e.g. ``("condition", "above")``."""
    reason: str
    """With the remedy."""

    @property
    def field(self) -> str:
        """Return the path as people write it: ``condition.above``."""
        return ".".join(str(part) for part in self.path)

    @property
    def text(self) -> str:
        """Return the whole sentence."""
        where = f"{self.field}: " if self.path else ""
        return f"rule {self.rule!r}: {where}{self.reason}"


class RuleError(ValueError):
    """A rule that cannot be used."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(problem.text for problem in self.problems))


def read_rule(body: Any) -> Rule:
    """Return the rule that a document means. Raises `RuleError` with everything that is wrong."""
    name = _name(body)
    if not isinstance(body, dict):
        raise RuleError([Problem(name, (), "a rule is a table with name, title and condition")])
    endless = list(islice(_endless(body), MAX_PROBLEMS))
    if endless:  # to JSON they would be nothing at all, as if they had not been given
        raise RuleError(
            [Problem(name, path, "is no finite number; give one, or leave it out") for path in endless]
        )
    try:
        # Strictly, as JSON: a number in quotes is no number, and "yes" is no switch.
        rule = Rule.model_validate_json(orjson.dumps(body), strict=True)
    except ValidationError as error:
        raise RuleError(_worded(name, body, error)) from None
    except TypeError as error:
        raise RuleError([Problem(name, (), f"it holds what JSON cannot hold: {error}")]) from None
    problems = list(_checked(name, rule.condition, ("condition",), 1))
    if sum(1 for _ in _all(rule.condition)) > MAX_CONDITIONS:
        problems.append(Problem(name, ("condition",), f"at most {MAX_CONDITIONS} conditions in all"))
    if rule.runbook and not rule.runbook.startswith(("https://", "http://", "/")):
        problems.append(Problem(name, ("runbook",), "an address begins with https://, http:// or /"))
    if rule.page and not rule.page.startswith("/"):
        problems.append(Problem(name, ("page",), "a page is a path of this product, e.g. /acceptance"))
    if problems:
        raise RuleError(problems)
    return rule


def _name(body: Any) -> str:
    name = body.get("name") if isinstance(body, dict) else None
    return str(name)[:80] if name else "(without a name)"


def _endless(body: Any) -> Iterator[Path]:
    """Yield where infinities and NaN stand, whatever the depth."""
    left: list[tuple[Path, Any]] = [((), body)]
    while left:
        path, value = left.pop()
        if isinstance(value, float) and not math.isfinite(value):
            yield path
        elif isinstance(value, dict):
            left += [((*path, key), child) for key, child in value.items()]
        elif isinstance(value, list):
            left += [((*path, index), child) for index, child in enumerate(value)]


def _all(condition: Any) -> Iterator[Any]:
    yield condition
    for child in getattr(condition, "conditions", ()):
        yield from _all(child)


def _checked(name: str, condition: Any, path: Path, depth: int) -> Iterator[Problem]:
    """Yield what the schema cannot know: signals that do not exist, labels that they do not have."""
    if depth > MAX_DEPTH:
        yield Problem(name, path, f"conditions stand in conditions at most {MAX_DEPTH} deep")
        return
    for index, child in enumerate(getattr(condition, "conditions", ())):
        yield from _checked(name, child, (*path, "conditions", index), depth + 1)
    wanted = getattr(condition, "signal", None)
    if wanted is None:
        return
    found = signals().get(wanted)
    if found is None:
        hint = did_you_mean(wanted, signals())
        yield Problem(name, (*path, "signal"), f"there is no signal {wanted!r}.{hint} {WHERE}")
    elif condition.kind == "threshold" and condition.on == "interval" and not found.has_interval:
        yield Problem(name, (*path, "on"), f"{wanted} has no interval; write `on: value`")


WHERE = "They are listed at /api/v1/alerts/signals"


def _worded(name: str, body: Mapping[str, Any], error: ValidationError) -> list[Problem]:
    found = []
    for item in error.errors(include_url=False)[:MAX_PROBLEMS]:
        path = plain_path(item["loc"])
        found.append(Problem(name, path, _reason(item, path, body)))
    more = error.error_count() - len(found)
    if more:
        found.append(Problem(name, (), f"{more:,} more problems are not shown; mend these first"))
    return found


def plain_path(location: Iterable[int | str]) -> Path:
    """Return a location without the kinds that stand in it after a condition."""
    parts, known = list(location), kinds()
    kept: list[str | int] = []
    for index, part in enumerate(parts):
        before = parts[index - 1] if index else None
        if part in known and (before == "condition" or isinstance(before, int)):
            continue
        kept.append(part)
    return tuple(kept)


def _reason(item: Mapping[str, Any], path: Path, body: Any) -> str:
    kind = item["type"]
    field = str(path[-1]) if path else ""
    if kind == "extra_forbidden":
        known = _fields(path[:-1], body)
        return (
            f"{field[:60]!r} is not known here.{did_you_mean(field, known)} Known: {', '.join(sorted(known))}"
        )
    if kind == "missing":
        return f"{field!r} is missing; give it"
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        given = item["input"].get("kind") if isinstance(item["input"], dict) else None
        hint = did_you_mean(str(given), kinds()) if given else ""
        told = f"there is no kind of condition {str(given)[:60]!r}.{hint}" if given else "'kind' is missing."
        return f"{told} Kinds: {', '.join(kinds())}"
    message = str(item["msg"]).removeprefix("Value error, ")
    return f"{message} (given: {str(item['input'])[:60]!r})"


def _fields(path: Path, body: Any) -> list[str]:
    """Return the names that are known at a place."""
    model: type[BaseModel] = Rule
    if "condition" in path:
        here: Any = body
        for part in path:
            try:
                here = here[part]
            except (KeyError, IndexError, TypeError):
                return []
        chosen = kinds().get(str(here.get("kind"))) if isinstance(here, dict) else None
        if chosen is None:
            return []
        model = chosen.Condition
    elif path:
        return ["target", "equal"]
    return [field.alias or name for name, field in model.model_fields.items()]
