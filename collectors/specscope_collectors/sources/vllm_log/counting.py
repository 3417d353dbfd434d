"""From what vLLM printed to counts over intervals.

An interval of the V1 engine ends with its line and began with the one before: vLLM divides the drafted tokens
by its length and prints the quotient, so drafted / throughput is how long it was. It is cut where it would
reach behind the rank's line before, and taken from that line where no throughput is printed.

Counts of which a part is not certain carry the label ``lacks``: without cycles they say nothing about τ,
without positions nothing about single drafts. Whoever divides takes only counts that have both.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from specscope_collectors.observations import Increment, Labels, Level
from specscope_collectors.sources.vllm_log.cycles import derived
from specscope_collectors.sources.vllm_log.lines import Interval, Totals

LACKS_ACCEPTED = {"lacks": "accepted"}
DEFAULT_INTERVAL_MS = 10_000
"""vLLM's own print interval, for a first line that does not tell its own."""
VARYING = frozenset({"ngram", "ngram_gpu", "suffix"})
"""Methods that propose differently many drafts from cycle to cycle."""
ROUNDING_MS = 1_000
"""Stamps are cut to whole seconds."""


@dataclass(frozen=True, slots=True)
class Counted:
    """What one line gives."""

    values: list[Increment | Level]
    cycles: int | None
    """None: several numbers of cycles fit what was printed."""


@dataclass(slots=True)
class Counting:
    """Of one launch."""

    method: str | None = None
    """How drafts are made, as vLLM calls it; None = not said."""
    last_ms: dict[str | None, int] = field(default_factory=dict)
    """Rank → time of its last line about speculation."""
    totals: tuple[Totals, int] | None = None

    def of_interval(
        self, interval: Interval, rank: str | None, labels: Labels, time_ms: int
    ) -> Counted | None:
        """Return the counts of a line of the V1 engine; None if they cannot be."""
        if interval.accepted > interval.drafted:
            return None
        time_ms, span_ms = self._span(interval, rank, time_ms)
        plain = labels
        exact = derived(interval, is_depth_fixed=self.method is not None and self.method not in VARYING)
        lacking = "cycles" if exact is None else "" if exact.by_position else "positions"
        labels = labels | ({"lacks": lacking} if lacking else {})
        values: list[Increment | Level] = []

        def add(metric: str, value: float, more: Labels | None = None) -> None:
            own = labels | (more or {})
            values.append(
                Increment(metric=metric, labels=own, time_ms=time_ms, span_ms=span_ms, value=float(value))
            )

        add("spec.drafts_proposed", interval.drafted)
        if exact is not None and exact.by_position:
            for position, count in enumerate(exact.by_position, start=1):
                add("spec.drafts_accepted", count, {"position": str(position)})
        else:
            add("spec.drafts_accepted", interval.accepted)
        if exact is not None:
            add("spec.cycles", exact.cycles)
        levels = {
            "spec.accept_length": interval.length,
            "spec.engine_accept_rate": None if interval.percent is None else interval.percent / 100,
            "spec.num_steps": float(len(interval.rates)) or None,
        }
        values += [
            Level(metric=metric, labels=plain, time_ms=time_ms, value=value)
            for metric, value in levels.items()
            if value is not None
        ]
        return Counted(values, exact.cycles if exact else None)

    def of_totals(self, totals: Totals, labels: Labels, time_ms: int) -> list[Increment | Level] | None:
        """Return what grew since the V0 engine's last line; None if that cannot be.

        Cycles are drafted / K, since V0 drafts K tokens each time. How many drafts were accepted *in a row*
        it does not say (its accepted tokens are judged one by one), but τ = emitted / cycles needs no more.
        """
        before, self.totals = self.totals, (totals, time_ms)
        if before is None or time_ms <= before[1]:
            return []
        drafted, emitted = totals.drafted - before[0].drafted, totals.emitted - before[0].emitted
        if drafted < 0 or emitted < 0 or drafted % totals.depth or totals.depth != before[0].depth:
            return None
        cycles = drafted // totals.depth
        if not cycles <= emitted <= cycles * (totals.depth + 1):
            return None
        span_ms, own = time_ms - before[1], labels | LACKS_ACCEPTED
        values: list[Increment | Level] = [
            Increment(metric=metric, labels=own, time_ms=time_ms, span_ms=span_ms, value=float(value))
            for metric, value in (("spec.drafts_proposed", drafted), ("spec.cycles", cycles))
        ]
        if cycles:
            values.append(
                Level(metric="spec.accept_length", labels=labels, time_ms=time_ms, value=emitted / cycles)
            )
        return values

    def _span(self, interval: Interval, rank: str | None, time_ms: int) -> tuple[int, int]:
        """Return (end, length in ms) of the interval; ends of one rank grow strictly."""
        before = self.last_ms.get(rank)
        if before is not None and time_ms <= before:
            time_ms = before + 1
        self.last_ms[rank] = time_ms
        told = interval.drafted / interval.drafted_per_second * 1_000 if interval.drafted_per_second else None
        if before is None:
            return time_ms, max(round(told or DEFAULT_INTERVAL_MS), 1)
        gap = time_ms - before
        is_gap_close = told is None or abs(told - gap) <= ROUNDING_MS
        return time_ms, gap if is_gap_close else max(min(round(told or gap), gap), 1)
