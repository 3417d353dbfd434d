"""The sum of profiles of one place, as one profile: windows and ranks add up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specscope_collectors.observations import LnNorms, StateProfile
from specscope_collectors.states.sums import added, counted, sums_of


def merged(profiles: Sequence[StateProfile], token_ids: Sequence[int] | None = None) -> StateProfile:
    """Return the sum. Raises UnequalError for none, or unequal hidden sizes.

    ``token_ids``: keep directions of these alone. Requests are those that are certain: see `added`.
    """
    whole = added([sums_of(each) for each in profiles])
    kept = (
        np.isin(whole.token_ids, token_ids) if token_ids is not None else np.ones(len(whole.token_ids), bool)
    )
    kept &= whole.token_rows > 0
    first = min(each.time_ms - each.span_ms for each in profiles)
    last = max(each.time_ms for each in profiles)
    norms = [each.ln_norms for each in profiles if each.ln_norms.bins]
    bins = {whole.norms.first + place: int(count) for place, count in enumerate(whole.norms.counts) if count}
    return StateProfile(
        time_ms=last, span_ms=last - first, labels={}, phase=profiles[0].phase,
        row_class=profiles[0].row_class, slot=profiles[0].slot, boundary=profiles[0].boundary,
        hidden_size=whole.hidden_size, rows=whole.rows, requests=min(whole.requests, whole.rows),
        ln_norms=LnNorms(
            sum=whole.norms.sum, sum_of_squares=whole.norms.sum_of_squares,
            minimum=min((each.minimum for each in norms), default=0.0),
            maximum=max((each.maximum for each in norms), default=0.0),
            bins=bins, bin_width=whole.norms.width,
        ),
        token_ids=tuple(whole.token_ids[kept].tolist()), token_rows=tuple(whole.token_rows[kept].tolist()),
        token_directions=_bytes(whole.token_directions[kept]),
        projection=whole.projection if kept.any() else "", direction_sum=_bytes(whole.directions),
        direction_sum_of_squares=_bytes(whole.direction_squares), sum_of_squares=_bytes(whole.energy),
        invariants=counted(each.invariants for each in profiles),
    )  # fmt: skip


def _bytes(array: NDArray[Any]) -> bytes:
    return np.ascontiguousarray(array, "<f4").tobytes()
