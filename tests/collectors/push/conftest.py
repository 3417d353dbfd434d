"""Pushers without a network."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.collectors.push.far import Bench


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Bench]]:
    made: list[Bench] = []

    def build(**options: Any) -> Bench:
        made.append(Bench(tmp_path / "spool", **options))
        return made[-1]

    yield build
    for bench in made:
        bench.spool.close()


@pytest.fixture
def bench(make: Callable[..., Bench]) -> Bench:
    return make(health_seconds=10**9)
