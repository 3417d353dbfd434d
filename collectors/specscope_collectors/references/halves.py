"""Arrays of a reference of all boundaries, as they stand in its file: half as wide, to stay within 5 MB.

An array is a power of two as float32, by which it was divided, and its values as float16: 11 bits of each,
over nine decades. Σu² does not travel: where a channel hardly varies, Σu²/n − (Σu/n)² is what rounding
left of it: n times the variance travels in its place, and Σu² is made of it again.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from specscope_collectors.observations import StateProfile

SCALE_BYTES, HALF_BYTES = 4, 2
LARGEST = 2.0**15
"""Largest value of an array when it is divided: float16 reaches to twice that."""

Floats = NDArray[np.float64]


class HalfError(ValueError):
    """Bytes that are no array of this kind."""


def narrowed(profile: StateProfile) -> StateProfile:
    """Return a profile with narrow arrays, without Σh². Raises HalfError for what is not finite."""
    sums, squares = _read(profile.direction_sum), _read(profile.direction_sum_of_squares)
    variance = np.maximum(squares - _squared(sums, profile), 0.0) if len(squares) else squares
    return msgspec.structs.replace(
        profile, direction_sum=_packed(sums), direction_sum_of_squares=_packed(variance),
        token_directions=_packed(_read(profile.token_directions)), sum_of_squares=b"",
    )  # fmt: skip


def widened(profile: StateProfile) -> StateProfile:
    """Return the profile as all others are, float32. Raises HalfError."""
    sums, variance = _unpacked(profile.direction_sum), _unpacked(profile.direction_sum_of_squares)
    if len(variance) not in (0, len(sums)):
        raise HalfError("the means and variances of a profile are of unequal lengths")
    squares = variance + _squared(sums, profile) if len(variance) else variance
    return msgspec.structs.replace(
        profile, direction_sum=_wide(sums), direction_sum_of_squares=_wide(squares),
        token_directions=_wide(_unpacked(profile.token_directions)),
    )  # fmt: skip


def _squared(sums: Floats, profile: StateProfile) -> Floats:
    """Return (Σu)²/n of each channel; n are the rows that have a norm."""
    rows = max(sum(profile.ln_norms.bins.values()), 1)
    found: Floats = sums * sums / rows
    return found


def _scale(values: Floats) -> float:
    largest = float(np.abs(values).max(initial=0.0))
    if not np.isfinite(largest):
        raise HalfError("an array of a profile is not finite")
    return 2.0 ** np.ceil(np.log2(largest / LARGEST)) if largest > 0 else 1.0


def _packed(values: Floats) -> bytes:
    if not len(values):
        return b""
    scale = np.float32(_scale(values))
    content: bytes = scale.astype("<f4").tobytes() + (values / scale).astype("<f2").tobytes()
    return content


def _unpacked(content: bytes) -> Floats:
    if not content:
        return np.zeros(0)
    if len(content) < SCALE_BYTES or (len(content) - SCALE_BYTES) % HALF_BYTES:
        raise HalfError("an array of a profile is cut off")
    with np.errstate(invalid="ignore"):
        scale = np.frombuffer(content[:SCALE_BYTES], "<f4").astype(np.float64)[0]
        values: Floats = np.frombuffer(content[SCALE_BYTES:], "<f2").astype(np.float64) * scale
    if not np.isfinite(values).all():
        raise HalfError("an array of a profile is not finite")
    return values


def _read(content: bytes) -> Floats:
    return np.frombuffer(content, "<f4").astype(np.float64)


def _wide(values: NDArray[Any]) -> bytes:
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(values, "<f4").tobytes()
