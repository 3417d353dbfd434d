"""The parts of the probe, each of which can be missing, fail, or be switched off without the others."""

from __future__ import annotations

import logging
from enum import StrEnum

log = logging.getLogger("specscope_probe")


class State(StrEnum):
    """What a part is doing; a label value of ``specscope_probe_part``."""

    ON = "on"
    MISSING = "missing"
    """This engine has no place to measure it."""
    FAILED = "failed"
    """It raised; it is off for good."""
    OVER_BUDGET = "over_budget"
    """It cost more than the budget allows."""
    SIMULATED = "simulated"
    """The engine makes its numbers up (SGLANG_SIMULATE_ACC_LEN)."""
    NOT_HERE = "not_here"
    """Another rank reports it."""
    REMOVED = "removed"
    """The stop file was found."""


def words_of(error: BaseException) -> str:
    """Return kind and message; some exceptions cannot say theirs."""
    kind = type(error).__name__
    try:
        return f"{kind}: {error}"
    except Exception:
        return kind


class Part:
    """One thing that is measured. Only `is_on` is looked at on the way of a cycle."""

    __slots__ = ("errors", "is_on", "name", "reason", "refused", "state")

    def __init__(self, name: str, state: State = State.ON, reason: str = "") -> None:
        self.name = name
        self.state = state
        self.reason = reason
        self.is_on = state is State.ON
        self.errors = 0
        self.refused = 0
        """Impossible values that were not taken."""

    def fail(self, error: BaseException) -> None:
        """Switch off for good after an exception; it is logged once and never reaches the engine."""
        self.errors += 1
        if self.is_on:
            self.switch_off(State.FAILED, words_of(error))
            log.error(
                "specscope: %s is switched off: %s (the engine is not affected)",
                self.name,
                self.reason,
                exc_info=error,
            )

    def switch_off(self, state: State, reason: str) -> None:
        """Stop measuring."""
        self.is_on = False
        self.state = state
        self.reason = reason
