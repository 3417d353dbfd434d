"""What the probe pushes itself equals what a `[[probe]]` job makes of the same file."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import msgspec
import pytest
from tests.collectors.probe.files import SEED, T0, content, profile

from specscope_collectors.observations import Event, Launch, StateProfile
from specscope_collectors.sources.probe import belonging as theirs
from specscope_collectors.sources.probe.reading import read_state_file
from specscope_collectors.sources.probe.records import last_part, profile_parts
from specscope_probe.states import batches


@pytest.mark.parametrize("calibration", [False, True])
def test_records_are_the_same(tmp_path: Path, calibration: bool) -> None:
    rows = [
        {"phase": "prefill", "slot": 0, "position": n, "norm": 2.5, "first_values": [1.0, None]}
        for n in range(300)
    ]
    capture = {**content()["capture"], "is_calibration": calibration}
    file = content(rows=rows, capture=capture, profiles=[profile(slot=slot) for slot in range(3)])
    path = tmp_path / "file"
    path.write_bytes(gzip.compress(json.dumps(file).encode()))
    read = read_state_file(path)
    expected = [*[each for part in profile_parts(read) for each in part], *last_part(read, None)]
    made = [record for part in batches.parts_of(file, None) for record in part]
    decoder = msgspec.json.Decoder(Event | StateProfile)
    assert [decoder.decode(json.dumps(record)) for record in made] == [
        decoder.decode(msgspec.json.encode(record)) for record in expected
    ]


def test_a_known_capture_is_not_told_again() -> None:
    key = batches.capture_key(content())
    kinds = [record.get("kind") for record in batches.parts_of(content(), key)[-1]]
    assert "state_capture" not in kinds
    assert batches.capture_key(content(random_seed=1)) != key


def test_parts_are_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "PART_BYTES", 400)
    parts = batches.parts_of(content(profiles=[profile(slot=slot) for slot in range(7)]), None)
    assert len(parts) > 2
    assert [record["slot"] for part in parts for record in part if "slot" in record] == list(range(7))


@pytest.mark.parametrize("created", [-1, 0, 599_999, 600_001])
@pytest.mark.parametrize(
    "seeds", [(SEED, SEED), (SEED, SEED + 1), (None, SEED), (SEED, None), (42, 43)], ids=str
)
@pytest.mark.parametrize("now", [0, 600_000, 1_200_000])
def test_files_belong_by_the_same_rule(
    tmp_path: Path, created: int, seeds: tuple[int | None, int | None], now: int
) -> None:
    file = content(random_seed=seeds[0], created_ms=T0 + created)
    path = tmp_path / "file"
    path.write_bytes(gzip.compress(json.dumps(file).encode()))
    launch = Launch(key="a", time_ms=T0, engine="sglang", config={"random_seed": seeds[1]})
    expected = theirs.belonging(read_state_file(path), launch, T0 + now)
    assert batches.belonging(file, seeds[1], T0, T0 + now).name == expected.name
