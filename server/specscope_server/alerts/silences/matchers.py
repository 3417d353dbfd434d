"""Which alerts a silence is about: conditions on labels, all of which must hold (pure).

Patterns are RE2, which takes time linear in the label whatever the pattern is; Python's own may never end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import lru_cache
from typing import Any

import re2
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, model_validator

MAX_VALUE = 500
MAX_MATCHERS = 20
PATTERN_MEMORY = 1 << 20


class Operator(StrEnum):
    """How the label is compared."""

    IS = "="
    IS_NOT = "!="
    LIKE = "=~"
    NOT_LIKE = "!~"


class Matcher(BaseModel):
    """A condition on one label; a label that an alert does not have is empty."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    label: str = Field(pattern=r"^[a-zA-Z_][a-zA-Z0-9_]{0,59}$", examples=["server"])
    operator: Operator = Field(
        Operator.IS,
        description="`=`, `!=`, or with a regular expression (RE2, of the whole value) `=~`, `!~`",
    )
    value: str = Field(max_length=MAX_VALUE, examples=["gpu1:30000"])

    @model_validator(mode="after")
    def _pattern_is_one(self) -> Matcher:
        if self.operator in (Operator.LIKE, Operator.NOT_LIKE):
            _pattern(self.value)
        return self

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Tell whether the condition holds for these labels."""
        found = labels.get(self.label, "")
        match self.operator:
            case Operator.IS:
                return found == self.value
            case Operator.IS_NOT:
                return found != self.value
            case Operator.LIKE:
                return _pattern(self.value).fullmatch(found) is not None
            case Operator.NOT_LIKE:
                return _pattern(self.value).fullmatch(found) is None

    def __str__(self) -> str:
        return f'{self.label}{self.operator.value}"{self.value}"'


MATCHERS: TypeAdapter[list[Matcher]] = TypeAdapter(list[Matcher])


def all_hold(matchers: Sequence[Matcher], labels: Mapping[str, str]) -> bool:
    """Tell whether every condition holds; of no conditions, none does."""
    return bool(matchers) and all(matcher.holds(labels) for matcher in matchers)


@lru_cache(maxsize=1_024)
def _pattern(text: str) -> Any:
    """Return the compiled pattern. Raises ValueError with the reason."""
    options = re2.Options()
    options.max_mem, options.log_errors = PATTERN_MEMORY, False
    try:
        return re2.compile(text, options)
    except re2.error as error:
        reason = error.args[0].decode("utf-8", "replace") if error.args else "not RE2"
        raise ValueError(
            f"{text[:60]!r} is no regular expression ({reason}); see RE2's syntax (no look-around, no "
            "back-references)"
        ) from None
