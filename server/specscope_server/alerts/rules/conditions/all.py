"""All of several conditions."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from specscope_server.alerts.rules.condition import ConditionBase

if TYPE_CHECKING:
    from specscope_server.alerts.rules.kinds import AnyCondition


class Condition(ConditionBase):
    """All of several conditions hold at once. Joined on the labels that all of them have."""

    meaning: ClassVar[str] = (
        "All of several conditions hold at once. They are joined on the labels that all of them have "
        "(at least `server`)."
    )

    kind: Literal["all"] = "all"
    conditions: list[AnyCondition] = Field(min_length=2, max_length=8)
