"""Above or below a limit."""

from __future__ import annotations

from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from specscope_server.alerts.rules.condition import SignalCondition


class Condition(SignalCondition):
    """The value, or the whole interval, lies above or below a limit."""

    meaning: ClassVar[str] = "The value, or its whole interval, lies above or below a limit."

    kind: Literal["threshold"] = "threshold"
    above: float | None = Field(None, allow_inf_nan=False, description="Breach when higher than this")
    below: float | None = Field(None, allow_inf_nan=False, description="Breach when lower than this")
    on: Literal["value", "interval"] = Field(
        "value",
        description="`interval`: only when the whole 95 % interval lies beyond the limit. Where no interval "
        "is known, the value decides, and the alert says so",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.above is None) == (self.below is None):
            raise ValueError("give exactly one of above and below")
        return self
