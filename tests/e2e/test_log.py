"""The log of a real engine says what its answers, its export and its metrics say, as far as a log can say it.

The engine prints a line for every cycle and runs one request at a time, so each line's accept length is that
of one cycle, and the histogram of the log is exact.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable
from itertools import accumulate, pairwise
from pathlib import Path
from threading import Event, Thread
from typing import Any

import httpx
import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.sglang_cpu.oracle import Counts, count_requests
from tests.support.rig import Answer, Request, RunningRig, log_tail

pytestmark = [pytest.mark.rig, pytest.mark.xdist_group("rig")]

REQUESTS = [Request(f"The {index}th cup of tea", 12 + index) for index in range(20)]
SECONDS = 30.0
ACCEPT, RUNNING, THROUGHPUT = "spec.accept_length", "requests.running", "throughput.generated"
GAUGES = {"spec_accept_length": ACCEPT, "num_running_reqs": RUNNING, "gen_throughput": THROUGHPUT}


def imported(kind: str, path: Path) -> list[dict[str, Any]]:
    """Return what `specscope import` reads of a file, record by record."""
    command = [sys.executable, "-m", "specscope", "import", kind, str(path), "--server", "rig", "--dry-run"]
    done = subprocess.run(command, capture_output=True, check=True)
    return [msgspec.json.decode(line) for line in done.stdout.splitlines()]


def lines_of(records: Iterable[dict[str, Any]]) -> list[dict[str, float]]:
    """Return metric → value of each Decode line."""
    lines: dict[int, dict[str, float]] = {}
    for record in records:
        if record["type"] == "level":
            lines.setdefault(record["time_ms"], {})[record["metric"]] = record["value"]
    return [line for line in lines.values() if THROUGHPUT in line]


def written_since(engine: RunningRig, start: int, lines: int, path: Path) -> Path:
    """Copy what the log says since ``start``, as soon as it has so many Decode lines; the last comes late."""
    deadline = time.monotonic() + SECONDS
    while (data := engine.log_path.read_bytes()[start:]).count(b"Decode batch") < lines:
        assert time.monotonic() < deadline, log_tail(engine.log_path)
        time.sleep(0.1)
    path.write_bytes(data)
    return path


def exported(engine: RunningRig, answers: list[Answer], path: Path) -> Path:
    """Copy the lines that the engine exported of these requests."""
    assert engine.export_folder is not None
    wanted = {answer["meta_info"]["id"].encode() for answer in answers}
    lines = [
        line
        for file in sorted(engine.export_folder.glob("*.log"))
        for line in file.read_bytes().splitlines()
        if msgspec.json.decode(line)["id"].encode() in wanted
    ]
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path


def histogram_of(counts: Iterable[Iterable[int]], num_steps: int) -> tuple[int, ...]:
    """Return the sum of histograms, which may be shorter than K + 1."""
    total = Counter(dict.fromkeys(range(num_steps + 1), 0))
    for histogram in counts:
        total.update(dict(enumerate(histogram)))
    return tuple(total[place] for place in range(num_steps + 1))


def survival_and_length(histogram: tuple[int, ...]) -> tuple[list[float], float]:
    """Return S_1 … S_K and τ = 1 + ΣS_k."""
    reached = list(accumulate(reversed(histogram)))[::-1]
    survival = [count / reached[0] for count in reached[1:]]
    return survival, 1 + sum(survival)


def test_log_export_and_answers_give_the_oracles_histogram(shared_rig: RunningRig, tmp_path: Path) -> None:
    start = shared_rig.log_path.stat().st_size
    answers = shared_rig.generate(REQUESTS)
    expected: Counts = count_requests((answer["output_ids"] for answer in answers), shared_rig.num_steps)
    told = [answer["meta_info"]["spec_correct_drafts_histogram"] for answer in answers]
    log = imported("log", written_since(shared_rig, start, expected.verify_calls, tmp_path / "engine.log"))
    lengths = [line[ACCEPT] for line in lines_of(log)]
    assert all(length == int(length) for length in lengths)
    records = imported("requests", exported(shared_rig, answers, tmp_path / "exported.log"))
    assert len(records) == len(REQUESTS)

    size = shared_rig.num_steps
    by_source = {
        "answers": histogram_of(told, size),
        "export": histogram_of((record["accepted_histogram"] for record in records), size),
        "log": tuple(Counter(lengths)[accepted + 1] for accepted in range(size + 1)),
    }
    assert by_source == dict.fromkeys(by_source, expected.histogram)
    survival, length = survival_and_length(expected.histogram)
    for histogram in by_source.values():
        assert survival_and_length(histogram) == (survival, length)
    assert length == pytest.approx(1 + expected.accepted_drafts / expected.verify_calls, rel=1e-12)
    assert sum(lengths) / len(lengths) == pytest.approx(length, rel=1e-12)


def test_the_log_agrees_with_the_gauges_of_the_same_print(shared_rig: RunningRig, tmp_path: Path) -> None:
    """Metrics are read while a request runs; each reading is one of the printed lines, rounded."""
    start = shared_rig.log_path.stat().st_size
    readings: list[dict[str, float]] = []
    is_over = Event()
    reader = Thread(target=read_gauges, args=(shared_rig, readings, is_over))
    reader.start()
    answers = shared_rig.generate([Request("A long cup of tea", 300), Request("Another cup", 200)])
    is_over.set()
    reader.join()
    expected = count_requests((answer["output_ids"] for answer in answers), shared_rig.num_steps)
    path = written_since(shared_rig, start, expected.verify_calls, tmp_path / "engine.log")
    printed = [tuple(line[metric] for metric in GAUGES.values()) for line in lines_of(imported("log", path))]
    seen = {
        tuple(round(reading[name], 2) for name in GAUGES)
        for reading in readings
        if reading["num_running_reqs"] and reading["gen_throughput"]  # both fall to 0 when the engine idles
    }
    assert len(seen.intersection(printed)) >= 5
    assert [values for values in seen if not is_of_a_print(values, printed)] == []


def is_of_a_print(values: tuple[float, ...], printed: list[tuple[float, ...]]) -> bool:
    """Whether they are those of one line, or of two in a row: gauges are set one after the other."""
    return any(
        all(value in either for value, either in zip(values, zip(*two, strict=True), strict=True))
        for two in pairwise(printed)
    )


def read_gauges(engine: RunningRig, readings: list[dict[str, float]], is_over: Event) -> None:
    """Read the metrics until it is over."""
    with httpx.Client(base_url=engine.base_url, timeout=30.0) as client:
        while not is_over.wait(0.05):
            families = text_string_to_metric_families(client.get("/metrics/").text)
            found = {
                sample.name.removeprefix("sglang:"): sample.value
                for family in families
                for sample in family.samples
            }
            if found.keys() >= GAUGES.keys():
                readings.append({name: found[name] for name in GAUGES})
