"""Whatever is done to the log, the sink and the process: exactly the values of the log arrive, once each."""

from __future__ import annotations

import tempfile
from collections import Counter
from contextlib import suppress
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.collectors.follow.following import Follower, SinkDownError
from tests.collectors.log.reading import FIXTURES, captured
from tests.collectors.tailing.writing import Log

from specscope_collectors.observations import Level

CAPTURE = FIXTURES / "server-eagle3-chain-0.5.8.log"
LINES = CAPTURE.read_bytes().splitlines(keepends=True)

STEPS = (
    "write", "write", "write many", "half", "rename", "copytruncate", "compress", "step", "step", "sink down",
    "answer lost", "kill",
)  # fmt: skip


class Captured(Log):
    """Writes the lines of a capture instead of its own."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._at = 0
        self._rest = b""

    def write(self, count: int = 1) -> None:
        """Write the next lines."""
        self.finish()
        self._file.write(b"".join(LINES[self._at : self._at + count]))
        self._at += count

    def half(self) -> None:
        """Write half of the next line."""
        self.finish()
        for line in LINES[self._at : self._at + 1]:
            self._file.write(line[: len(line) // 2])
            self._rest = line[len(line) // 2 :]
        self._at += 1

    def finish(self) -> None:
        """Write the other half."""
        self._file.write(self._rest)
        self._rest = b""

    def write_rest(self) -> None:
        """Write all that is left."""
        self.write(len(LINES))


def _do(step: str, log: Captured, follower: Follower) -> None:
    actions = {
        "write": log.write,
        "write many": lambda: log.write(30),
        "half": log.half,
        "rename": log.rename,
        "copytruncate": log.copytruncate,
        "compress": log.compress,
        "kill": follower.restart,
    }
    if step in actions:
        actions[step]()
        return
    follower.sink.down_for = 2 if step == "sink down" else 0
    follower.sink.takes_but_fails = step == "answer lost"
    with suppress(SinkDownError):
        follower.step()
    follower.sink.down_for, follower.sink.takes_but_fails = 0, False


def _counted(levels: list[Level]) -> Counter[tuple[object, ...]]:
    return Counter((each.metric, each.time_ms, each.value, *sorted(each.labels.items())) for each in levels)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(STEPS), max_size=25))
def test_the_values_that_arrive_are_those_written(steps: list[str]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        log = Captured(Path(directory) / "sglang.log")
        follower = Follower(log.path, from_beginning=True)
        follower.step()
        for step in steps:
            _do(step, log, follower)
        log.write_rest()
        log.close()
        follower.drain()
        follower.close()
        whole = captured(CAPTURE.name)
        assert _counted(follower.sink.levels) == _counted(whole.levels)
        known = {launch.key: launch for launch in follower.sink.launches}
        assert known == {launch.key: launch for launch in whole.launches}
        sequences = [batch.sequence for batch in follower.sink.batches]
        assert sequences == list(range(1, len(sequences) + 1))
