"""An import of a log that is killed after any of its batches and begun again stores all of it once."""

from __future__ import annotations

import pytest
from tests.collectors.log.reading import FIXTURES, read

from specscope_collectors.sources.sglang_log import reading


@pytest.mark.parametrize("name", sorted(path.name for path in FIXTURES.glob("*.*") if path.suffix != ".md"))
def test_killed_after_any_portion(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "PORTION_LEVELS", 1)
    data = (FIXTURES / name).read_bytes()
    whole = read(data)
    assert whole.ends
    for end in whole.ends:
        before = read(data[:end])
        after = read(data, done_to=end)
        assert after.ends[-1] == whole.ends[-1]
        assert before.observations + after.observations == whole.observations, end
