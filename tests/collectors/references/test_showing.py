"""A reference shows a few rows as they stand in the dump, of the places that it says."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.collectors.references.writers import FORMATS, write_dump

from specscope_collectors.references.building import Building, Order
from specscope_collectors.references.document import SampleRow, packed, unpacked
from specscope_collectors.references.inspecting import inspect


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, tuple[SampleRow, ...]]:
    """A dump and the rows that its reference shows."""
    root = tmp_path_factory.mktemp("dump")
    write_dump(root, FORMATS["hybrid"])
    reference = Building(Order(root=root, name="shown", made_ms=1_772_000_000_000)).run()
    assert unpacked(packed(reference)).samples == reference.samples
    return root, reference.samples


def test_two_rows_of_four_requests_are_shown_of_each_place(
    samples: tuple[Path, tuple[SampleRow, ...]],
) -> None:
    rows = samples[1]
    places = {(each.request, each.slot) for each in rows}
    assert places == {(request, slot) for request in range(4) for slot in (0, 1, 2, None)}
    assert len(rows) == 32
    assert all(each.position >= 4 and len(each.first_values) == 5 for each in rows)


def test_they_are_the_rows_of_the_dump(samples: tuple[Path, tuple[SampleRow, ...]]) -> None:
    root, rows = samples
    files = [inspect(path) for path in sorted(root.rglob("*.pt"))]
    for each in rows:
        place = 3 if each.slot is None else each.slot
        norms = [
            file.states[place].norms[each.position]
            for file in files
            if file.token_ids[each.position] == each.token_id
        ]
        assert any(norm == pytest.approx(each.norm, rel=1e-4) for norm in norms), each
        assert each.row_class == "other"
