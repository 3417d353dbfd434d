"""The outcome of evaluating many rules at one instant: what
``evaluate.evaluate(session, state, rules: Sequence[StoredRule], now_ms) -> Evaluation`` returns.

It never raises for one rule: that rule's readings are then errors with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field

from specscope_server.alerts.rules.reading import LabelKey, Reading


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Readings at ``now_ms``. Most of many rules are fine, so those readings are only made when asked for."""

    now_ms: int
    notable: list[Reading]
    """Everything that is not ``ok``."""
    keys_ok: Callable[[], Iterator[tuple[str, LabelKey]]]
    make_ok: Callable[[str, LabelKey], Reading | None]
    """The reading of a rule and label set that is ``ok``; None = no such series now."""
    seconds: float = 0.0
    reads: int = 0
    problems: list[str] = field(default_factory=list)
    """What could not be read, in words; each also stands as ``error`` in ``notable``."""

    def readings(self, active: Collection[tuple[str, LabelKey]]) -> list[Reading]:
        """Return what moves states: everything notable, and the ok readings of alerts that are not normal.

        ``active``: keys of those alerts. One that is in no reading has vanished.
        """
        known = {reading.key for reading in self.notable}
        rest = [self.make_ok(*key) for key in active if key not in known]
        return [*self.notable, *(reading for reading in rest if reading is not None)]

    def __iter__(self) -> Iterator[Reading]:
        """Yield every reading, ok ones too."""
        yield from self.notable
        for key in self.keys_ok():
            reading = self.make_ok(*key)
            if reading is not None:
                yield reading
