"""A reference of all boundaries: small enough for the largest targets, and as good as in float32."""

from __future__ import annotations

import gzip
from typing import Any

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from specscope_collectors.observations import LnNorms, StateProfile
from specscope_collectors.references.document import (
    KIND_BYTES,
    MAX_FILE_BYTES,
    DocumentError,
    Reference,
    kind_of,
    packed,
    unpacked,
)
from specscope_collectors.references.projection import NAME, SIZE
from specscope_collectors.references.row_classes import sketch_of

ROWS, IDS = 8_192, 64


def floats(array: NDArray[Any]) -> bytes:
    """Return an array as it travels."""
    return np.ascontiguousarray(array, "<f4").tobytes()


def profile_of(boundary: int, hidden_size: int, random: np.random.Generator) -> StateProfile:
    """A profile with random directions around a mean, in which one channel holds half the energy."""
    mean = random.normal(size=hidden_size) * np.sqrt(0.5 / hidden_size)
    mean[7] = 0.7
    variance = random.gamma(2.0, 0.2 / hidden_size, hidden_size)
    variance[7] = 1e-5
    rows = random.integers(20, 900, IDS)
    vectors = rows[:, None] * (random.normal(size=(IDS, SIZE)) / 16)
    return StateProfile(
        time_ms=1, span_ms=1, labels={}, phase="calibration", row_class="other", boundary=boundary,
        hidden_size=hidden_size, rows=ROWS, requests=300,
        ln_norms=sketch_of(random.normal(boundary / 10, 0.2, ROWS).astype(np.float32)),
        token_ids=tuple(range(IDS)), token_rows=tuple((rows * ROWS // rows.sum()).tolist()),
        token_directions=floats(vectors), projection=NAME, direction_sum=floats(ROWS * mean),
        direction_sum_of_squares=floats(ROWS * (variance + mean * mean)),
        sum_of_squares=floats(ROWS * 50 * mean * mean),
    )  # fmt: skip


def reference_of(hidden_size: int, boundaries: int) -> Reference:
    """A reference of all boundaries."""
    random = np.random.default_rng(5)
    return Reference(
        kind="boundaries", name="all", made_ms=1, tool="test", container="", compression="none",
        dtype="bfloat16", hidden_size=hidden_size, boundaries=tuple(range(boundaries)), boundary_rule="",
        boundary_source="", files=1, requests=300, tokens=ROWS, rows=ROWS, budget_rows=ROWS, seed=1,
        fingerprint="", sink_limits=(None,) * boundaries, token_ids=tuple(range(IDS)),
        profiles=tuple(profile_of(boundary, hidden_size, random) for boundary in range(boundaries)),
    )  # fmt: skip


def test_62_boundaries_of_7168_channels_stay_within_5_mb() -> None:
    content = packed(reference_of(7168, 62))
    assert 3_500_000 < len(content) <= MAX_FILE_BYTES
    found = unpacked(content)
    assert (len(found.profiles), found.arrays) == (62, "float32")
    assert len(found.profiles[61].direction_sum) == 4 * 7168


def test_what_comes_back_is_as_good_as_what_was_packed() -> None:
    before = reference_of(48, 3)
    after = unpacked(packed(before))
    for one, other in zip(before.profiles, after.profiles, strict=True):
        [sums, squares, tokens], [sums_back, squares_back, tokens_back] = (
            [
                np.frombuffer(array, "<f4").astype(np.float64)
                for array in (each.direction_sum, each.direction_sum_of_squares, each.token_directions)
            ]
            for each in (one, other)
        )
        np.testing.assert_allclose(sums_back, sums, rtol=5e-4)
        np.testing.assert_allclose(tokens_back, tokens, rtol=5e-4, atol=1e-4)
        variance = squares / ROWS - (sums / ROWS) ** 2
        np.testing.assert_allclose(squares_back / ROWS - (sums_back / ROWS) ** 2, variance, rtol=5e-3)
        assert other.ln_norms == one.ln_norms
        assert other.sum_of_squares == b""


def test_packing_again_changes_nothing() -> None:
    once = unpacked(packed(reference_of(48, 3)))
    assert unpacked(packed(once)) == once


def test_the_kind_is_told_by_the_beginning() -> None:
    reference = reference_of(48, 3)
    slots = msgspec.structs.replace(reference, kind="slots")
    assert kind_of(packed(reference)[:KIND_BYTES]) == "boundaries"
    assert kind_of(packed(slots)[:KIND_BYTES]) == "slots"
    assert unpacked(packed(slots)) == slots


@pytest.mark.parametrize(
    ("array", "words"),
    [(b"\0\0\0", "cut off"), (b"\0\0\x80\x3f\0", "cut off"), (b"\0\0\x80\x7f\0\x3c", "not finite"),
     (b"\0\0\x80\x3f\0\x7c", "not finite"), (b"\0\0\x80\x3f\0\x3c", "unequal lengths")],
)  # fmt: skip
def test_what_is_no_array_is_refused(array: bytes, words: str) -> None:
    narrow = msgspec.json.decode(gzip.decompress(packed(reference_of(8, 1))), type=Reference)
    bad = msgspec.structs.replace(narrow.profiles[0], direction_sum=array)
    content = msgspec.json.encode(msgspec.structs.replace(narrow, profiles=(bad,)))
    with pytest.raises(DocumentError, match=words):
        unpacked(content)


def test_a_profile_that_is_not_finite_is_not_packed() -> None:
    reference = reference_of(8, 1)
    norms = LnNorms(sum=0, sum_of_squares=0, minimum=0, maximum=0, bins={0: ROWS})
    bad = msgspec.structs.replace(
        reference.profiles[0], ln_norms=norms, direction_sum=floats(np.full(8, np.inf))
    )
    with pytest.raises(DocumentError, match="not finite"):
        packed(msgspec.structs.replace(reference, profiles=(bad,)))
