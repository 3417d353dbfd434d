"""Reading a log must be limited by the disk, not by the reader, and be no slower than a plain script.

Compared in one run, in CPU seconds (neither uses threads), on logs in a file:

* **columns** and **records**: what `specscope import log` does up to the store: every value of each line with
  its metric, labels and time; what cannot be is refused; the books are kept for the summary. In columns, as
  values are kept until somebody asks for them, and as the records that the store is given.
* **a plain script**: ``for line in file``, one regular expression for all fields of a Decode line, another
  one for those of a Prefill line, numbers into a dict, the stamp by ``datetime.fromisoformat``. It knows one
  version and one prefix, no rank, launch or event, and believes every number.

Measured on a shared machine with two cores (MB/s, and times the plain script):

====================  ============  ============  ============
a Decode line is      columns       records       plain script
====================  ============  ============  ============
every line            120 (3.3 ×)   55 (1.5 ×)    36
every fourth line     120 (1.8 ×)   78 (1.2 ×)    66
every 200th line      180 (0.4 ×)   180 (0.4 ×)   455
====================  ============  ============  ============

In the last row the script looks for two words where the reader looks for twenty.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from specscope_collectors.sources.sglang_log import LogOptions, LogReader, Portion, Unpacked

SIZE_BYTES = 8_000_000
ROUNDS = 5
NUMBER = r"([\d.]+)"
STAMP = r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?: [^\]]*)?\] "
DECODE = re.compile(
    rf"{STAMP}Decode batch.*?#running-req: {NUMBER}, #token: {NUMBER}, token usage: {NUMBER}, "
    rf"accept len: {NUMBER}, accept rate: {NUMBER}, .*?gen throughput \(token/s\): {NUMBER}, "
    rf"#queue-req: {NUMBER}"
)
PREFILL = re.compile(
    rf"{STAMP}Prefill batch.*?#new-seq: {NUMBER}, #new-token: {NUMBER}, #cached-token: {NUMBER}, "
    rf"token usage: {NUMBER}, #running-req: {NUMBER}, #queue-req: {NUMBER}"
)
OF_DECODE = ("running", "tokens", "usage", "accept_length", "accept_rate", "throughput", "queued")
OF_PREFILL = ("sequences", "new_tokens", "cached_tokens", "usage", "running", "queued")
MIXES = {"every line": 1, "every fourth line": 4, "every 200th line": 200}
LEAST_RATIO = {"every line": 2.0, "every fourth line": 1.2, "every 200th line": 0.2}
"""Of columns to the plain script; lines read one by one have a fifth of it."""


def decode(stamp: str, order: random.Random) -> str:
    """Return a Decode line with D = 4."""
    length = order.uniform(1, 4)
    return (
        f"{stamp[:-1]} TP0] Decode batch, #running-req: {order.randint(1, 64)}, "
        f"#token: {order.randint(100, 200_000)}, token usage: {order.random():.2f}, "
        f"accept len: {length:.2f}, accept rate: {(length - 1) / 3:.2f}, cuda graph: True, "
        f"gen throughput (token/s): {order.random() * 3_000:.2f}, #queue-req: {order.randint(0, 20)}\n"
    )


def prefill(stamp: str, order: random.Random) -> str:
    """Return a Prefill line."""
    return (
        f"{stamp[:-1]} TP0] Prefill batch, #new-seq: {order.randint(1, 9)}, "
        f"#new-token: {order.randint(1, 4_000)}, #cached-token: {order.randint(0, 4_000)}, "
        f"token usage: {order.random():.2f}, #running-req: {order.randint(1, 64)}, "
        f"#queue-req: {order.randint(0, 20)}, #pending-token: {order.randint(0, 4_000)}, cuda graph: False, "
        f"input throughput (token/s): {order.random() * 9_000:.2f}\n"
    )


def access(stamp: str, order: random.Random) -> str:
    """Return a line of the HTTP server."""
    address = f"10.0.{order.randint(0, 255)}.{order.randint(0, 255)}:{order.randint(1_024, 65_000)}"
    return f'{stamp} INFO:     {address} - "POST /v1/chat/completions HTTP/1.1" 200 OK\n'


def log_lines(every: int) -> Iterator[str]:
    """Yield lines of which each ``every``-th is a Decode line, and one in eight others a Prefill line."""
    order = random.Random(1)
    size = at = 0
    while size < SIZE_BYTES:
        second = at // 16
        stamp = f"[2026-11-29 {second // 3600 % 24:02}:{second // 60 % 60:02}:{second % 60:02}]"
        if at % every == 0:
            line = decode(stamp, order)
        else:
            line = (prefill if at % 8 == 1 and every < 8 else access)(stamp, order)
        size, at = size + len(line), at + 1
        yield line


def plain_script(path: Path) -> int:
    """Read a log as a script would; return how many lines it read."""
    found: list[dict[str, float]] = []
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            names = OF_DECODE
            match = DECODE.search(line)
            if match is None:
                names, match = OF_PREFILL, PREFILL.search(line)
            if match is not None:
                moment = datetime.fromisoformat(match[1]).replace(tzinfo=UTC).timestamp()
                values = dict(zip(names, map(float, match.groups()[1:]), strict=True))
                found.append(values | {"time": moment})
    return len(found)


def columns(path: Path) -> int:
    """Read a log; return how many status lines it has."""
    return read(path, lambda portion: None)


def records(path: Path) -> int:
    """The same, and make every record."""
    return read(path, lambda portion: portion.observations)


def read(path: Path, use: Callable[[Portion], object]) -> int:
    """Read a log, use each portion; return how many status lines it has."""
    reader = LogReader(LogOptions(server="gpu1", fingerprint="f"))
    with path.open("rb") as file:
        for portion in reader.read(Unpacked(file)):
            use(portion)
    return reader.summary.decode_lines + reader.summary.prefill_lines


@pytest.mark.benchmark
@pytest.mark.parametrize("mix", MIXES)
def test_a_log_is_read_faster_than_by_a_plain_script(mix: str, tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_text("".join(log_lines(MIXES[mix])), encoding="utf-8")
    seconds: dict[str, list[float]] = {}
    lines = set()
    for _ in range(ROUNDS):
        for work in (plain_script, columns, records):
            start = time.process_time()
            lines.add(work(path))
            seconds.setdefault(work.__name__, []).append(time.process_time() - start)
    assert len(lines) == 1  # all read the same lines
    best = {name: min(times) for name, times in seconds.items()}
    megabytes = path.stat().st_size / 1e6
    told = ", ".join(
        f"{name} {megabytes / took:.0f} MB/s ({best['plain_script'] / took:.1f} ×)"
        for name, took in best.items()
    )
    print(f"\n{mix} is a Decode line: {told}")  # noqa: T201 — the measured figures are the point
    assert best["plain_script"] / best["columns"] >= LEAST_RATIO[mix]
