"""Profiles of hidden states, as they travel (a part of `specscope_collectors.observations`)."""

from __future__ import annotations

import msgspec

from specscope_collectors.records import Labels, Record


class LnNorms(msgspec.Struct, frozen=True, kw_only=True):
    """Sketch of ln‖h‖ (nats) over rows: moments, and counts in bins of equal width. Sketches add up.

    Bin i holds rows with ``i·bin_width <= ln‖h‖ < (i + 1)·bin_width``, so that a quantile of the norm is
    known to a relative error of bin_width (as a DDSketch of the norm). Rows of norm 0 or not finite are not
    in it.
    """

    sum: float
    sum_of_squares: float
    minimum: float
    maximum: float
    bins: dict[int, int]
    """Bin index → rows. Σ over bins = rows of the sketch."""
    bin_width: float = 0.02


class StateProfile(Record, frozen=True, kw_only=True, tag="state_profile"):
    """Hidden states of one place, phase and class of rows over ``(time_ms - span_ms, time_ms]``, as sums.

    Two profiles of the same place add up field by field. Arrays are little-endian float32. u = h / ‖h‖, in
    float32. No token text and no whole state travels.
    """

    time_ms: int
    span_ms: int
    labels: Labels
    """Rank labels."""
    phase: str
    """``prefill``, ``verify_accepted``, ``verify_rejected``, or ``calibration``."""
    row_class: str
    """``head`` (the first four positions), ``sink`` (massive norm), ``other``; never pooled."""
    slot: int | None = None
    """Place in the concatenated auxiliary state, from 0."""
    boundary: int | None = None
    """Residual stream after this many decoder layers; None = the engine did not say."""
    hidden_size: int
    rows: int
    requests: int
    """Requests that the rows are of, at least (one that spans two windows counts in both)."""
    new_requests: int | None = None
    """Those of them that were in no earlier window of this place; they add up. None = the sender does not
    know, and of several windows only the largest number of requests is certain."""
    ln_norms: LnNorms
    token_ids: tuple[int, ...] = ()
    """The commonest token ids."""
    token_rows: tuple[int, ...] = ()
    token_directions: bytes = b""
    """Σu of the rows of each token id, projected: shape (len(token_ids), projection_size)."""
    projection: str = ""
    """Name of the projection, e.g. ``gauss-256-20260401``: only equal names compare. Empty = none needed."""
    direction_sum: bytes = b""
    """Σu per channel, shape (hidden_size,)."""
    direction_sum_of_squares: bytes = b""
    """Σu² per channel."""
    sum_of_squares: bytes = b""
    """Σh² per channel; where ``distinct_rows`` are counted, of these rows alone."""
    invariants: dict[str, int] = {}
    """Counts of what cannot be in healthy states, and of what was looked at: ``nonfinite_rows``,
    ``zero_rows``, ``duplicate_rows``, ``equal_id_pairs``, ``equal_id_pairs_identical``, ``distinct_rows``:
    the first with its token id at its position, so that a prefix that requests share counts once."""
