"""All of several conditions."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from specscope_server.alerts.rules.condition import ConditionBase

if TYPE_CHECKING:
    from specscope_server.alerts.rules.kinds import AnyCondition


class Condition(ConditionBase):
    """All of several conditions hold at once. For each value of some labels."""

    meaning: ClassVar[str] = (
        "All of several conditions hold at once. They are joined by server, or by the labels that `by` names."
    )

    kind: Literal["all"] = "all"
    conditions: list[AnyCondition] = Field(min_length=2, max_length=8)
    by: list[str] = Field(
        default_factory=lambda: ["server"], min_length=1, max_length=10,
        description="Labels by which series of the conditions belong together, by default `server`; each "
        "value has its own alert",
    )  # fmt: skip
