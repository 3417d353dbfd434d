"""What every kind of condition shares. A kind is a file ``conditions/<kind>.py`` with ``Condition``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from specscope_server.alerts.rules.durations import Duration

if TYPE_CHECKING:
    from specscope_server.alerts.rules.reads import Need

MAX_PATTERN = 200
MAX_WINDOW_MS = 7 * 86_400_000
MIN_WINDOW_MS = 10_000


def _check_window(length_ms: int) -> int:
    if not MIN_WINDOW_MS <= length_ms <= MAX_WINDOW_MS:
        raise ValueError("a window is between 10s and 7d")
    return length_ms


Window: TypeAlias = Annotated[Duration, AfterValidator(_check_window)]
Pattern: TypeAlias = Annotated[str, Field(min_length=1, max_length=MAX_PATTERN)]


class ConditionBase(BaseModel):
    """Fields of every condition."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: str
    meaning: ClassVar[str] = ""
    """One sentence for the documentation."""

    def held(self, at_ms: int) -> tuple[Need, ...] | None:
        """Return what is read while the baseline stands still as it was at an instant, in the order of
        ``needs``; None = there is no baseline that moves.
        """
        return None


class SignalCondition(ConditionBase):
    """A condition about one signal."""

    signal: str = Field(
        min_length=1, max_length=100,
        description="Name of a signal, or `metric:NAME` for a metric of the catalogue (`metric:NAME:STAT` "
        "for another summary than its first)",
        examples=["acceptance.accept_length", "metric:requests.queued:max"],
    )  # fmt: skip
    window: Window = Field(300_000, description="The stretch before now that is summarised", examples=["5m"])
    match: Mapping[str, Pattern | list[Pattern]] = Field(
        default_factory=dict,
        max_length=10,
        description="Only series with these labels; `*` and `?` as in file names, a list means any of them",
        examples=[{"server": "gpu*"}],
    )
