"""Whatever is done to a log and to who follows it: what is read is exactly what was written."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.collectors.tailing.writing import Log, Reader

STEPS = (
    "write", "write many", "half", "rename", "rename late", "reopen", "copytruncate", "compress", "look",
    "look", "look and die", "restart", "drain",
)  # fmt: skip


def _do(step: str, log: Log, reader: Reader) -> None:
    actions = {
        "write": log.write,
        "write many": lambda: log.write(120),
        "half": log.half,
        "rename": log.rename,
        "reopen": log.reopen,
        "copytruncate": log.copytruncate,
        "compress": log.compress,
        "look": reader.look,
        "look and die": lambda: reader.look(store=False),
        "restart": reader.restart,
        "drain": reader.drain,
    }
    if step == "rename late":
        log.rename(reopen=False)
        log.write(2)
        reader.look()
        log.reopen()
    else:
        actions[step]()


@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from(STEPS), max_size=30))
def test_every_line_is_read_once_and_in_order(steps: list[str]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        log = Log(Path(directory) / "app.log")
        reader = Reader(log.path)
        reader.look()
        for step in steps:
            _do(step, log, reader)
        log.write()
        log.close()
        reader.drain()
        reader.tail.close()
        assert reader.lines == log.lines
        assert reader.lost == []
