"""Lines read together say exactly what they say one by one: records, order, ends of portions and summary."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.collectors.log.reading import FIXTURES, LINE, Read, read
from tests.collectors.log.test_laws import PIECES, WRITERS, values

from specscope_collectors.logs import blocks
from specscope_collectors.sources.sglang_log import columns, reading, runs
from specscope_collectors.sources.sglang_log.shapes import learn

DUMP = (
    "server_args=ServerArgs(model_path='m', speculative_algorithm='EAGLE3', speculative_num_draft_tokens=4)"
)
STAMPS = (
    "[2026-10-25 {clock}{tags}]",
    "[2026-10-25 {clock}.{digits}{tags}]",
    "[{clock}{tags}]",
    "2026-10-25T{clock}.{digits}{digits}{digits}Z [2026-10-25 {clock}{tags}]",
    "2026-10-25T{clock}+02:00 stderr F [2026-10-25 {clock}{tags}]",
    "2026-10-25T{clock}-0530 [2026-10-25 {clock}{tags}]",
    "Oct 25 {clock} host python[{digits}]: ",
    "2026-10-25 {clock},{digits} INFO sglang: ",
    "(Actor pid={digits}, ip=10.0.0.{digits}) [2026-10-25 {clock}{tags}]",
    "[2026-10-25 {clock}] [2026-10-25 {clock}{tags}]",
    "2026-10-25T{clock}+25:00 [2026-10-25 {clock}{tags}]",
    "",
)
TAGS = ("", " TP0", " TP1", " DP0 TP0", " DP1 TP4", " DP10 TP40 EP7", " PP1 TP2", " TP99999")
OTHERS = (
    "[2026-10-25 00:00:00] INFO:     10.0.0.7:51234 - \"POST /generate HTTP/1.1\" 200 OK",
    "Traceback (most recent call last):",
    "torch.OutOfMemoryError: CUDA out of memory",
    "[2026-10-25 00:00:07] Adaptive spec params updated: steps 3 -> 7 (ema_accept_len=2.71)",
    "[2026-10-25 00:00:08] The server is fired up and ready to roll!",
    f"[2026-10-25 00:00:01] {DUMP}",
    f"[2026-10-25 00:00:09] Receive: obj=GenerateReqInput(text='{LINE}')",
    LINE[:-20],
    f"{LINE}{LINE}",
    LINE.replace("TP0", "TP0").replace("accept len: 3.33", "accept len: 9.99"),
    LINE.replace("accept len: 3.33, accept rate: 0.78", "accept len: 0.00, accept rate: 0.00"),
    LINE.replace("token usage: 0.31", "token usage: 1.31"),
    LINE.replace("#token: 18432", "#token: 12345678901234567"),
    LINE.replace("#running-req: 8", "#running-req: -8"),
    LINE.replace("20:50:45", "20:50:60"),
    LINE.replace("2026-11-29", "2026-02-30"),
    LINE.replace("2026-11-29", "0001-01-01"),
    LINE + " é",
    "Prefill batch [7], #new-seq: 3, token usage: 0.31, #running-req: 8, #queue-req: 2, #pending-token: 512",
    "",
)  # fmt: skip
clocks = st.one_of(
    st.integers(0, 20).map(lambda second: f"00:00:{second:02}"),
    st.sampled_from(["02:59:59", "02:00:00", "01:59:59", "23:59:59", "24:00:00", "00:00:61"]),
)
status_lines = st.builds(
    lambda stamp, clock, tags, digits, version, value: (
        stamp.format(clock=clock, tags=tags, digits=digits) + " " + WRITERS[version](value)
    ),
    st.sampled_from(STAMPS), clocks, st.sampled_from(TAGS), st.sampled_from(["007", "250", "999"]),
    st.sampled_from(sorted(WRITERS)), values,
)  # fmt: skip
logs = st.lists(
    status_lines | st.sampled_from(OTHERS) | st.lists(st.sampled_from(PIECES), max_size=4).map(
        lambda pieces: b"".join(pieces).decode(errors="replace")
    ),
    max_size=25,
)  # fmt: skip
ONE_BY_ONE = sys.maxsize


@pytest.fixture(autouse=True, scope="module")
def _small_runs_and_blocks() -> Iterator[None]:
    """Let few lines be read together, so that small logs hold all there is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "MIN_RUN", 1)
        patch.setattr(blocks, "BLOCK_BYTES", 2_000)
        patch.setattr(reading, "PORTION_LEVELS", 20)
        yield


def same(log: str | bytes, **options: object) -> Read:
    """Read it both ways; return what it gave."""
    together = read(log, together_from_bytes=0, **options)
    singly = read(log, together_from_bytes=ONE_BY_ONE, **options)
    assert together.observations == singly.observations
    assert together.ends == singly.ends
    assert together.summary == singly.summary
    return together


@settings(max_examples=400)
@given(logs, st.booleans(), st.sampled_from(["UTC", "Europe/Berlin", "Australia/Lord_Howe"]))
def test_any_log(lines: list[str], has_end: bool, zone: str) -> None:
    found = same("\n".join(lines) + "\n" * has_end, zone=ZoneInfo(zone))
    assert found.ends == sorted(set(found.ends))


@settings(max_examples=200)
@given(st.lists(st.sampled_from(PIECES) | st.binary(max_size=20), max_size=25).map(b"".join))
def test_any_bytes(log: bytes) -> None:
    assert same(log).summary.bytes_read >= 0


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 1100), st.integers(0, 2)), max_size=60))
def test_any_order_of_stamps(moments: list[tuple[int, int, int]]) -> None:
    """Times of one rank and second are told apart in the same way, also where a clock goes back."""
    lines = [
        LINE.replace("20:50:45 TP0", f"20:50:4{second}.{min(ms, 999):03} DP{rank} TP{rank}")
        for second, ms, rank in moments
    ]
    assert same("".join(line + "\n" for line in lines)).summary.decode_lines == len(lines)


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*.*")), ids=lambda path: path.name)
def test_every_capture(path: Path) -> None:
    assert same(path.read_bytes()).summary.lines > 0


def test_long_logs_with_their_real_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of lines of many ranks, with switches, dumps and what must be refused in between."""
    monkeypatch.setattr(runs, "MIN_RUN", 24)
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 100_000)
    order = random.Random(5)
    lines = []
    for at in range(6_000):
        rank = order.choice(["DP0 TP0", "DP0 TP1", "DP1 TP2"])
        line = LINE.replace("20:50:45 TP0", f"{at // 600:02}:{at // 10 % 60:02}:{at % 60:02} {rank}")
        line = line.replace("3.33", f"{order.uniform(1, 4):.2f}").replace(
            "1085.39", f"{order.random() * 999:.2f}"
        )
        lines.append(order.choice(OTHERS) if order.random() < 0.005 else line)
    found = same("\n".join(lines))
    assert found.summary.decode_lines > 5_500


def test_most_lines_are_read_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the tests above compare two ways and not one with itself."""
    seen = []
    numbers = columns.Table.numbers

    def counted(self: columns.Table, *given: object) -> object:
        seen.append(len(given[1]))  # type: ignore[arg-type]
        return numbers(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(columns.Table, "numbers", counted)
    for version in sorted(WRITERS):
        value = {
            "requests.running": 8.0, "kv.used_tokens": 1e4, "kv.usage": 0.5, "spec.accept_length": 2.5,
            "spec.engine_accept_rate": 0.5, "throughput.generated": 100.25, "requests.queued": 0.0,
        }  # fmt: skip
        same(f"[2026-03-01 00:00:00 TP0] {WRITERS[version](value)}\n" * 3)
    assert sum(seen) == 3 * len(WRITERS)


@pytest.mark.parametrize("other", ["", "x", "server_args=", f"{LINE}{LINE}", f"{LINE}é", "Decode batch"])
def test_a_shape_is_learnt_from_sure_lines_only(other: str) -> None:
    assert learn(LINE.encode()) is not None
    assert learn(other.encode()) is None
