"""Rows, layers, projection, norms and equal rows: the parts of state profiles that need no device."""

from __future__ import annotations

import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specscope_probe.states.capture import draft_layers, effective_layers, read_capture
from specscope_probe.states.invariants import Comparison, is_embedding
from specscope_probe.states.options import MEBIBYTE, StateOptions, read_state_options
from specscope_probe.states.projection import NAME, SIZE, matrix
from specscope_probe.states.rows import choose_prefill, choose_verify
from specscope_probe.states.sketch import BIN_WIDTH, NormSketch, median, sink_limit

Lengths = st.lists(st.tuples(st.integers(0, 9), st.integers(1, 40)), min_size=1, max_size=8)


@given(Lengths, st.data(), st.integers(8, 64), st.integers(0, 100))
def test_chosen_rows_of_a_prefill(lengths: list[tuple[int, int]], data: Any, budget: int, turn: int) -> None:
    prefixes, news = [each[0] for each in lengths], [each[1] for each in lengths]
    skipped = data.draw(st.lists(st.booleans(), min_size=len(news), max_size=len(news)))
    rows, owners = choose_prefill(prefixes, news, skipped, budget, turn)
    assert len(rows) == len(owners) <= budget
    assert len(set(rows.tolist())) == len(rows)
    starts = np.cumsum([0, *news])
    for row, owner in zip(rows.tolist(), owners.tolist(), strict=True):
        assert starts[owner] <= row < starts[owner + 1]
        assert not skipped[owner]
    whole = sum(new for new, skip in zip(news, skipped, strict=True) if not skip)
    heads = sum(min(max(4 - p, 0), n) for p, n, s in zip(prefixes, news, skipped, strict=True) if not s)
    if whole <= budget and heads <= budget // 4:
        assert len(rows) == whole


def test_first_positions_of_a_prefill_are_kept() -> None:
    rows, owners = choose_prefill([0, 100], [1_000, 1_000], [False, False], 64, 5)
    assert rows[:4].tolist() == [0, 1, 2, 3]
    assert 50 < len(rows) <= 64
    assert set(owners.tolist()) == {0, 1}


@given(
    st.integers(1, 12),
    st.lists(st.booleans(), min_size=1, max_size=40),
    st.integers(8, 64),
    st.integers(0, 99),
)
def test_chosen_rows_of_a_verify(depth: int, skipped: list[bool], budget: int, turn: int) -> None:
    rows, owners = choose_verify(depth, skipped, budget, turn)
    assert len(rows) == len(owners) <= budget
    assert (rows // depth == owners).all()
    assert not any(skipped[owner] for owner in owners.tolist())
    if not all(skipped):
        assert len(rows) >= min(depth, budget)


def test_all_requests_get_their_turn() -> None:
    seen = {owner for turn in range(16) for owner in choose_verify(8, [False] * 64, 32, turn)[1].tolist()}
    assert seen == set(range(64))


def test_the_projection_can_be_built_from_its_description() -> None:
    """Plain integers and the standard library, as the docstring says it."""
    mask = 2**64 - 1

    def mix(z: int) -> int:
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        return z ^ (z >> 31)

    def uniform(counter: int) -> float:
        return ((mix((20_260_401 + counter * 0x9E3779B97F4A7C15) & mask) >> 11) + 0.5) * 2.0**-53

    made = matrix(600)
    for row, pair in [(0, 0), (0, 127), (3, 5), (511, 1), (512, 0), (599, 127)]:
        n = 128 * row + pair
        radius, angle = math.sqrt(-2 * math.log(uniform(2 * n + 1))), 2 * math.pi * uniform(2 * n + 2)
        expected = [radius * math.cos(angle) / 16, radius * math.sin(angle) / 16]
        assert made[row, 2 * pair : 2 * pair + 2].tolist() == pytest.approx(expected, rel=1e-6)
    assert (matrix(10) == made[:10]).all()
    assert NAME == "gauss-256-20260401"


def test_the_projection_keeps_angles() -> None:
    made = matrix(2_048).astype(np.float64)
    assert made.mean() == pytest.approx(0, abs=1e-4)
    assert made.var() * SIZE == pytest.approx(1, abs=0.01)
    vectors = np.random.default_rng(1).standard_normal((50, 2_048))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors[1] = 0.8 * vectors[0] + 0.6 * vectors[1]
    projected = vectors @ made
    cosine = projected[0] @ projected[1] / np.linalg.norm(projected[0]) / np.linalg.norm(projected[1])
    assert cosine == pytest.approx(vectors[0] @ vectors[1] / np.linalg.norm(vectors[1]), abs=0.1)


Norms = st.lists(st.floats(-40, 40, width=32), max_size=60)


@given(Norms, Norms)
def test_sketches_add_up(first: list[float], second: list[float]) -> None:
    parts = [NormSketch(), NormSketch(), NormSketch()]
    for sketch, values in zip(parts, (first, second, first + second), strict=True):
        sketch.add(np.array(values, np.float32))
    one, two, both = parts
    added = {place: one.bins.get(place, 0) + two.bins.get(place, 0) for place in one.bins | two.bins}
    assert added == both.bins
    assert one.sum + two.sum == pytest.approx(both.sum, abs=1e-6)
    assert min(one.minimum, two.minimum) == both.minimum
    assert both.rows == len(first) + len(second)
    json.dumps(both.described(), allow_nan=False)
    for value in first:
        assert math.floor(np.float64(np.float32(value)) / BIN_WIDTH) in both.bins


def test_the_limit_of_sinks() -> None:
    sketch = NormSketch()
    assert sink_limit(sketch.bins, 10) is None
    assert sink_limit(sketch.bins, 1_000) == math.inf
    values = np.random.default_rng(2).normal(5, 0.1, 2_000).astype(np.float32)
    sketch.add(values)
    middle = float(np.median(values))
    spread = float(np.median(np.abs(values - middle)))
    assert median(sketch.bins) == pytest.approx(middle, abs=BIN_WIDTH)
    assert sink_limit(sketch.bins, 2_000) == pytest.approx(middle + 10 * spread, abs=0.15)
    flat = NormSketch()
    flat.add(np.full(300, 3.0, np.float32))
    assert sink_limit(flat.bins, 300) == pytest.approx(3.0 + 10 * BIN_WIDTH, abs=BIN_WIDTH)


def row(seed: int, scale: float = 1.0) -> Any:
    """Return the sketch of a row."""
    return (np.random.default_rng(seed).standard_normal(16) * scale).astype(np.float32)


def compare(comparison: Comparison, token: int, position: int, sketch: Any, ln_norm: float) -> None:
    """Compare one row."""
    comparison.add(
        np.array([token]), np.array([position]), sketch[np.newaxis], np.array([ln_norm], np.float32)
    )


def test_rows_of_one_sample_are_compared_as_if_they_came_one_by_one() -> None:
    one_by_one, together = Comparison(), Comparison()
    random = np.random.default_rng(5)
    ids, positions = random.integers(0, 5, 60), random.integers(0, 9, 60)
    sketches = np.stack([row(seed) for seed in random.integers(0, 7, 60)])
    for at in range(60):
        compare(one_by_one, ids[at], positions[at], sketches[at], 1.5)
    together.add(ids, positions, sketches, np.full(60, 1.5, np.float32))
    assert together.counts == one_by_one.counts
    assert all(together.counts.values())


def test_rows_that_are_equal_with_different_tokens() -> None:
    comparison = Comparison()
    for position, (token, seed) in enumerate([(1, 7), (2, 8), (3, 7), (1, 7)]):
        compare(comparison, token, position, row(seed), 2.0)
    assert comparison.counts["duplicate_rows"] == 1
    assert comparison.counts["equal_id_pairs"] == comparison.counts["equal_id_pairs_identical"] == 1


def test_a_shared_prefix_is_no_pair() -> None:
    comparison = Comparison()
    for _ in range(5):
        compare(comparison, 1, 17, row(7), 2.0)
    assert comparison.counts["equal_id_pairs"] == 0


def test_rows_of_one_token_that_differ_a_little_are_not_the_embedding() -> None:
    comparison = Comparison()
    for position in range(20):
        sketch = row(7) + np.float32(1e-2) * row(position + 100)
        compare(comparison, 1, position, sketch, 2.0)
    counts = comparison.counts
    assert (counts["equal_id_pairs"], counts["equal_id_pairs_identical"]) == (19, 0)
    assert is_embedding(8, 5)
    assert not is_embedding(8, 4)
    assert not is_embedding(7, 7)


def test_what_is_remembered_is_bounded() -> None:
    comparison = Comparison()
    for token in range(5_000):
        compare(comparison, token, token, row(token), 1.0)
    assert len(comparison._by_bytes) == len(comparison._by_id) == 1_024


def runner(decoder: Any, path: tuple[str, ...] = ("model",), **more: Any) -> Any:
    """Return a model runner whose decoder stands at that path."""
    for name in reversed(path):
        decoder = SimpleNamespace(**{name: decoder})
    return SimpleNamespace(model=decoder, model_config=SimpleNamespace(hidden_size=16), **more)


@pytest.mark.parametrize("path", [("model",), ("language_model", "model"), ("model", "language_model")])
def test_layers_are_read_where_the_model_keeps_them(path: tuple[str, ...]) -> None:
    decoder = SimpleNamespace(layers_to_capture=[30, 2, 57], layers=[object()] * 60)
    capture = read_capture(runner(decoder, path), 48)
    assert capture.layers == (30, 2, 57)
    assert capture.boundaries == (2, 30, 57), "slots are in ascending order"
    assert capture.slots == 3


def test_flags_on_layers_are_what_is_in_force() -> None:
    """In 0.5.8 a model with flags captures default and configured layers together."""
    layers = [SimpleNamespace(_is_layer_to_capture=index in (2, 5, 7, 9)) for index in range(12)]
    decoder = SimpleNamespace(layers_to_capture=[5, 7], layers=layers)
    assert effective_layers(SimpleNamespace(model=decoder)) == (2, 5, 7, 9)


def test_a_width_that_cannot_be_is_refused_and_one_that_does_not_fit_is_said() -> None:
    decoder = SimpleNamespace(layers_to_capture=[2, 4, 4], layers=[])
    assert read_capture(runner(decoder), 32).boundaries == (2, 4)
    odd = read_capture(runner(decoder), 48)
    assert odd.boundaries is None
    assert "2 layers" in odd.rule
    assert read_capture(runner(SimpleNamespace()), 48).boundaries is None
    with pytest.raises(ValueError, match="40 wide"):
        read_capture(runner(decoder), 40)


def test_what_the_draft_asked_for() -> None:
    decoder = SimpleNamespace()
    assert draft_layers(runner(decoder, eagle_aux_hidden_state_layer_ids=[1, 29])) == (1, 29)
    config = SimpleNamespace(eagle_aux_hidden_state_layer_ids=[1, 2, 3])
    assert draft_layers(runner(decoder, spec_aux_config=config)) == (1, 2, 3)
    assert draft_layers(runner(decoder, spec_aux_config=None)) is None
    assert draft_layers(runner(decoder, eagle_aux_hidden_state_layer_ids="ab")) is None


def test_settings(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert not read_state_options({}).is_on
    ids = tmp_path / "ids.json"
    ids.write_text(json.dumps([5, 3, 5, *range(1_000, 1_200)]))
    found = read_state_options(
        {
            "SPECSCOPE_SPOOL": "/s",
            "SPECSCOPE_PROBE_TOKEN_IDS": str(ids),
            "SPECSCOPE_PROBE_CALIBRATE": "1",
            "SPECSCOPE_PROBE_STATES_ROWS": "128",
            "SPECSCOPE_PROBE_STATES_SPOOL_MEBIBYTES": "2",
            "SPECSCOPE_PROBE_STATES_VERIFY_EVERY": "often",
        }
    )
    assert found.is_on
    assert found.is_calibrating
    assert found.token_ids[:3] == (5, 3, 1_000)
    assert len(found.token_ids) == 128
    assert (found.rows, found.spool_bytes) == (128, 2 * MEBIBYTE)
    assert found.verify_every == StateOptions().verify_every
    assert "VERIFY_EVERY" in caplog.text


@pytest.mark.parametrize("text", ["{}", "[1.5]", "[-1]", "[true]", "[1", "[99999999999]"])
def test_token_ids_that_are_none_are_told_and_left(
    text: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ids = tmp_path / "ids.json"
    ids.write_text(text)
    assert read_state_options({"SPECSCOPE_PROBE_TOKEN_IDS": str(ids)}).token_ids == ()
    assert "the commonest are found" in caplog.text
