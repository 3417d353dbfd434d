"""A dump: whatever tool wrote it, its profile is the one that its rows give."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.collectors.references.writers import (
    FORMATS,
    LAYERS,
    WEIGHT,
    Format,
    H,
    config_of_our_own,
    config_v1,
    made,
    normed,
    write_dump,
)
from tests.support.dumps import safetensors_bytes, tensor, torch_bytes, write

from specscope_collectors.observations import StateProfile
from specscope_collectors.references.building import Building, Order
from specscope_collectors.references.document import Reference, packed, unpacked
from specscope_collectors.references.errors import AmbiguousWidthError, DumpError
from specscope_collectors.references.final_norm import read_norm_weight
from specscope_collectors.references.manifests import manifest_of, read_manifest

NOW = 1_790_000_000_000
HYBRID = FORMATS["hybrid"]


def built(root: Path, **options: Any) -> Reference:
    """Build a reference."""
    return Building(Order(root=root, name="ref", made_ms=NOW, manifest=manifest_of(root), **options)).run()


def only(reference: Reference, slot: int | None, row_class: str, answers: bool = False) -> StateProfile:
    """Return the profile of one place."""
    profiles = reference.answer_profiles if answers else reference.profiles
    [found] = [each for each in profiles if (each.slot, each.row_class) == (slot, row_class)]
    return found


@pytest.mark.parametrize("name", FORMATS)
def test_every_writers_dump_gives_the_profile_of_its_rows(name: str, tmp_path: Path) -> None:
    layout = FORMATS[name]
    write_dump(tmp_path, layout)
    reference = built(tmp_path, hidden_size=H if layout.needs_size else None)
    assert (reference.tool, reference.hidden_size, len(reference.boundaries)) == (
        layout.tool,
        H,
        layout.slots,
    )
    assert (reference.requests, reference.rows, reference.files) == (20, 800, 20)
    assert reference.answer_rows == (400 if layout.has_mask else None)
    assert reference.last is not None
    assert reference.last.norm == layout.last
    for slot in range(layout.slots):
        _expect_sums(only(reference, slot, "other"), [made(i).states[slot] for i in range(20)])
    lasts = [made(i).normed if layout.is_normed else made(i).last for i in range(20)]
    if name != "EAGLE":  # its float16 is not bfloat16's
        _expect_sums(only(reference, None, "other"), lasts, tolerance=1e-2 if layout.is_normed else 1e-5)


def _expect_sums(profile: StateProfile, states: list[Any], tolerance: float = 1e-5) -> None:
    rows = np.concatenate([each[4:] for each in states]).astype(np.float64)
    norms = np.linalg.norm(rows, axis=1)
    units = rows / norms[:, None]
    assert profile.rows == len(rows)
    assert profile.ln_norms.sum == pytest.approx(np.log(norms).sum(), rel=tolerance)
    assert sum(profile.ln_norms.bins.values()) == len(rows)
    scale = np.abs(units.sum(axis=0)).max()
    sums = np.frombuffer(profile.direction_sum, "<f4")
    np.testing.assert_allclose(sums, units.sum(axis=0), atol=tolerance * scale)
    squares = np.frombuffer(profile.sum_of_squares, "<f4")
    np.testing.assert_allclose(squares, (rows * rows).sum(axis=0), rtol=tolerance)
    both = np.frombuffer(profile.direction_sum_of_squares, "<f4")
    assert both.sum() == pytest.approx(len(rows), rel=tolerance)


def test_massive_rows_are_sinks_and_first_positions_apart(tmp_path: Path) -> None:
    reference = built(write_dump(tmp_path, HYBRID))
    assert only(reference, 1, "sink").rows == 20
    assert only(reference, 1, "head").rows == 60
    assert only(reference, 0, "head").rows == 80
    assert not [each for each in reference.profiles if (each.slot, each.row_class) == (0, "sink")]
    assert only(reference, 1, "other").requests == 20


def test_answers_are_told_apart_by_the_mask(tmp_path: Path) -> None:
    reference = built(write_dump(tmp_path, HYBRID))
    answers = only(reference, 2, "other", answers=True)
    rows = np.concatenate([made(i).states[2][20:] for i in range(20)])
    assert answers.rows == 400
    units = rows / np.linalg.norm(rows, axis=1)[:, None]
    np.testing.assert_allclose(np.frombuffer(answers.direction_sum, "<f4"), units.sum(axis=0), atol=1e-3)


def test_the_commonest_ids_have_directions(tmp_path: Path) -> None:
    reference = built(write_dump(tmp_path, HYBRID))
    profile = only(reference, 0, "other")
    counts = Counter(np.concatenate([made(i).ids[4:] for i in range(20)]).tolist())
    assert set(reference.token_ids) == set(profile.token_ids) == set(counts)
    assert dict(zip(profile.token_ids, profile.token_rows, strict=True)) == counts
    assert len(profile.token_directions) == 4 * 256 * len(profile.token_ids)


def test_token_ids_can_be_given(tmp_path: Path) -> None:
    reference = built(write_dump(tmp_path, HYBRID), token_ids=(9, 5, 100_000))
    assert reference.token_ids == (5, 9, 100_000)
    assert only(reference, 0, "other").token_ids == (5, 9)


def test_the_manifest_of_speculators_is_turned_into_boundaries(tmp_path: Path) -> None:
    write_dump(tmp_path, FORMATS["speculators v1"])
    config_v1(tmp_path, [5, 2, 4, LAYERS - 1])
    reference = built(tmp_path)
    assert reference.boundaries == (3, 5, 6)
    assert reference.last is not None
    assert reference.last.boundary == LAYERS
    assert "b = X + 1" in reference.boundary_rule
    assert reference.boundary_source == "data_config.json"
    assert reference.provenance == {"layer_ids": f"5,2,4,{LAYERS - 1}"}
    assert (reference.tool, reference.model) == ("speculators 0.4.0", "org/model")


def test_a_manifest_with_boundaries_is_taken_as_it_is(tmp_path: Path) -> None:
    write_dump(tmp_path, HYBRID)
    config_of_our_own(tmp_path)
    reference = built(tmp_path)
    assert reference.boundaries == (2, 4, 5)
    assert reference.last is not None
    assert reference.last.boundary == LAYERS
    assert only(reference, 1, "other").boundary == 4


@pytest.mark.parametrize(("name", "boundaries"), [("speculators 0.5", (2, 4, 5)), ("AngelSlim", (3, 5, 6))])
def test_ids_of_a_draft_mean_what_the_writer_means(
    name: str, boundaries: tuple[int, ...], tmp_path: Path
) -> None:
    write_dump(tmp_path / "dump", FORMATS[name])
    config = write(
        tmp_path / "config.json", json.dumps({"eagle_aux_hidden_state_layer_ids": [2, 4, 5]}).encode()
    )
    assert built(tmp_path / "dump", draft=read_manifest(config)).boundaries == boundaries


def test_boundaries_that_are_told_win_and_must_fit(tmp_path: Path) -> None:
    write_dump(tmp_path, HYBRID)
    config_of_our_own(tmp_path)
    assert built(tmp_path, boundaries=(1, 3, 6)).boundaries == (1, 3, 6)
    with pytest.raises(DumpError, match="names 2, and the dump has 3 slots and the last state"):
        built(tmp_path, boundaries=(1, 3))


@pytest.mark.parametrize("gemma", [False, True])
@pytest.mark.parametrize(("name", "norm"), [("SpecForge, gzip", "post_norm"), ("hybrid", "pre_norm")])
def test_the_weight_of_the_final_norm_tells_what_the_last_state_is(
    name: str, norm: str, gemma: bool, tmp_path: Path
) -> None:
    write_dump(tmp_path / "dump", FORMATS[name])
    config_of_our_own(tmp_path / "dump")
    weight = safetensors_bytes({"model.norm.weight": tensor(WEIGHT - 1 if gemma else WEIGHT, "float32")})
    found = read_norm_weight(write(tmp_path / "model.safetensors", weight))
    last = built(tmp_path / "dump", norm_weight=found).last
    assert last is not None
    assert last.norm == norm
    assert last.boundary == (None if norm == "post_norm" else LAYERS)
    if norm == "post_norm":
        assert last.median_square == pytest.approx(1, abs=0.02)
        assert ("1 + w" in last.rule) == gemma


def test_a_width_that_may_be_anything_is_asked_and_not_guessed(tmp_path: Path) -> None:
    states = np.ones((5, 21_504), np.float32)
    content = torch_bytes({"input_ids": tensor(np.arange(5) + 2), "hidden_states": tensor(states[None])})
    write(tmp_path / "data_0.ckpt", content)
    with pytest.raises(AmbiguousWidthError, match=r"21504 wide.* 1 × 21504 or 3 × 7168.*--hidden-size"):
        built(tmp_path)
    assert len(built(tmp_path, hidden_size=7168).boundaries) == 3
    assert len(built(tmp_path, hidden_size=5376).boundaries) == 4
    alone = built(tmp_path, hidden_size=21_504)
    assert (len(alone.boundaries), alone.last is not None) == (0, True)
    with pytest.raises(DumpError, match="no multiples of the hidden size 5000"):
        built(tmp_path, hidden_size=5000)


def test_files_of_another_model_are_left_out_and_counted(tmp_path: Path) -> None:
    write_dump(tmp_path, HYBRID)
    other = [tensor(np.ones((40, 12), np.float32))] * 4
    write(
        tmp_path / "rows_0-2000/data_99.pt", torch_bytes({"input_ids": tensor(np.arange(40) + 2), "h": other})
    )
    mixed = [tensor(np.ones((40, width), np.float32)) for width in (16, 16, 12, 16)]
    write(
        tmp_path / "rows_0-2000/data_98.pt", torch_bytes({"input_ids": tensor(np.arange(40) + 2), "h": mixed})
    )
    short = [tensor(np.ones((30, 16), np.float32))] * 4
    write(
        tmp_path / "rows_0-2000/data_97.pt", torch_bytes({"input_ids": tensor(np.arange(40) + 2), "h": short})
    )
    write(tmp_path / "rows_0-2000/data_96.pt", b"")
    reference = built(tmp_path)
    assert (reference.requests, sum(reference.refused.values())) == (20, 4)
    words = " ".join(reference.notes)
    assert "30 rows for 40 token ids" in words
    assert "0 bytes" in words
    assert any("one dump is of one model" in reason for reason in reference.refused)


def test_what_is_no_sample_is_not_looked_at(tmp_path: Path) -> None:
    write_dump(tmp_path, HYBRID)
    for name in (
        "vocab_mapping/vocab_mapping.pt",
        "token_freq.pt",
        "optimizer.pt",
        "README.md",
        ".data_5.pt",
    ):
        write(tmp_path / name, b"no dump")
    reference = built(tmp_path)
    assert (reference.files, reference.refused) == (20, {})


def test_the_budget_bounds_the_requests_and_spreads_them(tmp_path: Path) -> None:
    write_dump(tmp_path, Format(HYBRID.content, lambda i: f"data_{i}.pt", ""), requests=60, tokens=100)
    reference = built(tmp_path, budget_rows=640)
    assert (reference.files, reference.requests, reference.rows) == (60, 10, 640)
    assert only(reference, 0, "head").rows == 40
    assert built(tmp_path, budget_rows=640) == reference
    assert built(tmp_path, budget_rows=640, seed=1).fingerprint != reference.fingerprint


def test_a_build_that_is_stopped_goes_on_where_it_was(tmp_path: Path) -> None:
    write_dump(tmp_path / "dump", HYBRID)
    whole = built(tmp_path / "dump")
    order = Order(root=tmp_path / "dump", name="ref", made_ms=NOW, checkpoint=tmp_path / "out.partial")

    def stop(done: int, total: int) -> None:
        if done == 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Building(order).run(stop)
    seen: list[int] = []
    again = Building(order).run(lambda done, total: seen.append(done))
    assert seen[0] == 7
    assert again == whole


def test_a_checkpoint_of_another_order_or_a_broken_one_is_not_taken(tmp_path: Path) -> None:
    write_dump(tmp_path / "dump", HYBRID)
    (tmp_path / "out.partial").write_bytes(b"PK\x03\x04 broken")
    order = Order(root=tmp_path / "dump", name="ref", made_ms=NOW, checkpoint=tmp_path / "out.partial")
    assert Building(order).run() == built(tmp_path / "dump")


def test_the_embedding_is_known_by_equal_rows_of_equal_ids(tmp_path: Path) -> None:
    table = np.random.default_rng(1).normal(size=(30, H)).astype(np.float32)
    for index in range(20):
        request = made(index)
        states = [tensor(table[request.ids]), *(tensor(each) for each in request.states[1:])]
        write(tmp_path / f"d{index}.pt", torch_bytes({"input_ids": tensor(request.ids), "h": states}))
    reference = built(tmp_path)
    found = [only(reference, slot, "other").invariants for slot in (0, 1)]
    assert found[0]["equal_id_pairs"] == found[0]["equal_id_pairs_identical"] > 100
    assert found[1]["equal_id_pairs_identical"] == 0


def test_rows_that_cannot_be_are_counted(tmp_path: Path) -> None:
    for index in range(20):
        request = made(index)
        states = [each.copy() for each in request.states]
        states[0][10] = 0
        states[1][11, 3] = np.nan
        states[2][12] = states[2][13]
        ids = request.ids.copy()
        ids[12:14] = 4, 5
        tree = {"input_ids": tensor(ids), "h": [tensor(each, "float32") for each in states]}
        write(tmp_path / f"d{index}.pt", torch_bytes(tree))
    reference = built(tmp_path)
    assert only(reference, 0, "other").invariants["zero_rows"] == 20
    assert only(reference, 1, "other").invariants["nonfinite_rows"] == 20
    assert only(reference, 2, "other").invariants["duplicate_rows"] == 20
    assert sum(only(reference, 1, "other").ln_norms.bins.values()) == only(reference, 1, "other").rows - 20
    assert np.isfinite(np.frombuffer(only(reference, 1, "other").sum_of_squares, "<f4")).all()


def test_a_reference_comes_back_from_its_file_and_is_small(tmp_path: Path) -> None:
    reference = built(write_dump(tmp_path, HYBRID))
    content = packed(reference)
    assert unpacked(content) == reference
    assert packed(reference) == content
    assert len(content) < 5_000_000


def test_one_file_is_a_dump_too(tmp_path: Path) -> None:
    write_dump(tmp_path, HYBRID)
    reference = built(tmp_path / "rows_0-2000/data_3.pt")
    assert (reference.files, reference.requests) == (1, 1)
    assert any("Requests read: 1." in note for note in reference.notes)


def test_a_dump_of_which_nothing_can_be_read_says_why(tmp_path: Path) -> None:
    write(tmp_path / "data_0.pt", b"")
    with pytest.raises(DumpError, match=r"none of the 1 files.*0 bytes"):
        built(tmp_path)


def test_the_norm_that_the_tests_apply_is_one() -> None:
    values = normed(made(0).last) / WEIGHT
    np.testing.assert_allclose((values * values).mean(axis=1), 1, rtol=1e-5)
