"""Wherever following is killed, what is stored in the end is what is stored without that."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.collectors.follow.following import Follower, MemorySink, SinkDownError
from tests.collectors.follow.test_requests import LINES, Requests
from tests.collectors.log.reading import FIXTURES

from specscope_collectors.observations import Batch, Level, Observation, SourceHealth

CAPTURES = ("server-eagle3-chain-0.5.23.log", "server-eagle3-chain-0.5.8.log", "server-base-0.5.23.log")
LOG_PIECES, REQUEST_PIECES = 60, 12
LEAST_BATCHES = 10


class KillingSink(MemorySink):
    """After batch number ``kill_at`` is stored, nobody hears of it."""

    def __init__(self, kill_at: int) -> None:
        super().__init__()
        self.kill_at = kill_at

    def apply(self, batch: Batch) -> bool:
        """Keep the batch."""
        is_new = super().apply(batch)
        if len(self.batches) == self.kill_at:
            raise SinkDownError
        return is_new


def rows(sink: MemorySink) -> list[tuple[str | None, Observation]]:
    """Return everything that was stored but what is about the following itself."""
    return [
        (batch.launch_key, each)
        for batch in sink.batches
        for each in batch.observations
        if not isinstance(each, SourceHealth)
        and not (isinstance(each, Level) and each.metric.startswith("scrape."))
    ]


def follow(follower: Follower, pieces: list[bytes], path: Path) -> MemorySink:
    """Write piece by piece and follow; begin anew, without any memory, when killed."""
    path.write_bytes(b"")
    for piece in pieces:
        with path.open("ab") as file:
            file.write(piece)
        for _ in range(2):
            try:
                follower.step(0.1)
            except SinkDownError:
                follower.restart()
                follower.step(0.1)
    follower.close()
    return follower.sink


def differing(make: Callable[[KillingSink], Follower], pieces: list[bytes], path: Path) -> list[int]:
    """Return the kills after which something else is stored in the end."""
    expected = follow(make(KillingSink(0)), pieces, path)
    assert len(expected.batches) >= LEAST_BATCHES
    return [
        kill_at
        for kill_at in range(1, len(expected.batches) + 1)
        if rows(follow(make(KillingSink(kill_at)), pieces, path)) != rows(expected)
    ]


@pytest.mark.parametrize("name", CAPTURES)
def test_a_log(tmp_path: Path, name: str) -> None:
    path, data = tmp_path / "sglang.log", (FIXTURES / name).read_bytes()
    size = len(data) // LOG_PIECES + 1
    pieces = [data[at : at + size] for at in range(0, len(data), size)]  # cut in mid-line
    assert differing(lambda sink: Follower(path, sink, from_beginning=True), pieces, path) == []


def test_exported_requests(tmp_path: Path) -> None:
    path = tmp_path / "sglang-request-metrics-20261130_00.log"
    data = b"".join(LINES[:10])
    size = len(data) // REQUEST_PIECES + 1
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    assert differing(lambda sink: Requests(tmp_path, sink, from_beginning=True), pieces, path) == []
