"""The rate that the engine printed, over time: each value under the definition of the launch that printed it.

A window may hold launches of several versions, whose rates mean different things. They are never averaged:
where two launches share a bucket, the newer one's rate stands.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from specscope_server.acceptance.counts import constant_draft_tokens
from specscope_server.acceptance.engine_rates import UNDETERMINED, Formula
from specscope_server.acceptance.gather import LaunchData
from specscope_server.acceptance.measure import decision_for, inferred_draft_tokens
from specscope_server.acceptance.schemas import RateDefinition
from specscope_server.acceptance.statistics import Floats
from specscope_server.acceptance.windows import group_mean
from specscope_server.kit.engines import engine_title
from specscope_server.kit.timeparse import to_iso
from specscope_server.kit.timerange import Window
from specscope_server.kit.versions import version_text


@dataclass(frozen=True, slots=True)
class Definition:
    """What one or more launches printed."""

    formula: str
    engine: str
    engine_version: str
    """As it is shown."""
    reason: str
    launch_ids: list[int]

    def same_as(self, other: Definition) -> bool:
        """Tell whether the same was printed by the same engine."""
        mine = (self.formula, self.engine, self.engine_version)
        return mine == (other.formula, other.engine, other.engine_version)


@dataclass(frozen=True, slots=True)
class PrintedRates:
    """Arrays of shape (buckets,)."""

    value: Floats
    """The rate, NaN = none was printed."""
    floor: Floats
    """1/D beside a rate τ/D whose D is known, else NaN."""
    which: NDArray[np.int64]
    """Place in ``definitions``, -1 = none."""
    definitions: list[Definition]

    def of(self, index: int) -> Definition | None:
        """Return the definition of the rate of one bucket."""
        place = int(self.which[index])
        return None if place < 0 else self.definitions[place]


def printed_rates(launches: Sequence[LaunchData], window: Window, parts: int) -> PrintedRates:
    """Return the printed rates in the buckets of ``window``; the data's buckets are ``parts`` times finer."""
    size = window.buckets
    value, floor = np.full(size, np.nan), np.full(size, np.nan)
    which, definitions = np.full(size, -1, dtype=np.int64), list[Definition]()
    for data in launches:
        rate = group_mean(data.gauge("spec.engine_accept_rate"), parts)
        seen = ~np.isnan(rate)
        if seen.any():
            definition, lowest = _definition(data)
            value[seen], floor[seen], which[seen] = rate[seen], lowest, _place(definitions, definition)
    return PrintedRates(value, floor, which, definitions)


def described(rates: PrintedRates, window: Window) -> list[RateDefinition]:
    """Return each definition with the time span from its first point to its last, oldest first."""
    found = []
    for place, definition in enumerate(rates.definitions):
        indices = np.flatnonzero(rates.which == place)
        if len(indices):
            first, last = (window.from_ms + int(index) * window.step_ms for index in indices[[0, -1]])
            found.append((first, min(last + window.step_ms, window.to_ms), definition))
    return [
        RateDefinition.model_validate(
            {
                "formula": definition.formula, "engine": definition.engine,
                "engine_version": definition.engine_version,
                "reason": definition.reason, "launch_ids": definition.launch_ids,
                "from": to_iso(first), "to": to_iso(end),
            }
        )
        for first, end, definition in sorted(found, key=lambda one: one[0])
    ]  # fmt: skip


def _definition(data: LaunchData) -> tuple[Definition, float]:
    """Return (what this launch printed, 1/D or NaN)."""
    launch, decision = data.launch, decision_for(data)
    draft_tokens = constant_draft_tokens(data) or inferred_draft_tokens(data)
    formula = decision.formula.value if decision.formula else UNDETERMINED
    version = version_text(launch.engine_version, launch.version_source) or "of unknown version"
    has_floor = decision.formula is Formula.WITH_BONUS and draft_tokens
    floor = 1 / draft_tokens if has_floor and draft_tokens else np.nan
    return Definition(formula, engine_title(launch.engine), version, decision.reason, [launch.id]), floor


def _place(definitions: list[Definition], wanted: Definition) -> int:
    """Return the place of an equal definition, whose launches grow by this one; else add it."""
    for place, known in enumerate(definitions):
        if known.same_as(wanted):
            known.launch_ids.extend(wanted.launch_ids)
            return place
    definitions.append(wanted)
    return len(definitions) - 1
