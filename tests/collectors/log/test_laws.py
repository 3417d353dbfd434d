"""Whatever is written as a version of SGLang writes it is read back; whatever else there is never raises."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.collectors.log.reading import LINE, read

from specscope_collectors.sources.sglang_log.server_args import read_dump

START = datetime(2026, 3, 1, tzinfo=UTC)
Values = dict[str, float]

hundredths = st.integers(100, 900).map(lambda number: number / 100)
shares = st.integers(0, 100).map(lambda number: number / 100)
values = st.fixed_dictionaries(
    {
        "requests.running": st.integers(0, 2000).map(float),
        "kv.used_tokens": st.integers(0, 10**7).map(float),
        "kv.usage": shares,
        "spec.accept_length": hundredths,
        "spec.engine_accept_rate": st.integers(2, 100).map(lambda number: number / 100),
        "throughput.generated": st.integers(0, 10**7).map(lambda number: number / 100),
        "requests.queued": st.integers(0, 500).map(float),
    }
)


def _head(value: Values) -> str:
    return (
        f"#running-req: {value['requests.running']:.0f}, #token: {value['kv.used_tokens']:.0f}, "
        f"token usage: {value['kv.usage']:.2f}, accept len: {value['spec.accept_length']:.2f}, "
    )


def _tail(value: Values, graph: str) -> str:
    return (
        f"{graph}: True, gen throughput (token/s): {value['throughput.generated']:.2f}, "
        f"#queue-req: {value['requests.queued']:.0f}"
    )


def _rate(value: Values) -> str:
    return f"accept rate: {value['spec.engine_accept_rate']:.2f}, "


WRITERS: dict[str, Callable[[Values], str]] = {
    "0.4.6": lambda value: "Decode batch. " + _head(value) + _tail(value, "cuda graph"),
    "0.5.2": lambda value: "Decode batch. " + _head(value) + _tail(value, "cpu graph") + ", ",
    "0.5.8": lambda value: (
        "Decode batch [7], " + _head(value) + _rate(value) + _tail(value, "cuda graph") + ", "
    ),
    "0.5.15": lambda value: (
        "Decode batch, " + _head(value) + _rate(value) + "pre-allocated usage: 0.10, #prealloc-req: 3, "
        "#transfer-req: 0, #retracted-req: 0, " + _tail(value, "cuda graph") + ", fwd occupancy: nan%"
    ),
    "0.5.23": lambda value: (
        "Decode batch [1234], " + _head(value) + _rate(value) + "waiting-image-req: 2, "
        + _tail(value, "npu graph")
        + ", est. decode TFLOPS/s (per GPU): 1.00, est. read BW (GB/s per GPU): 2.00"
    ),
    "a fork": lambda value: (
        "Decode batch, " + _head(value) + _rate(value) + "my field: on, spec mode: a/b, "
        + _tail(value, "cuda graph") + ", #extra-req: 12, note: none"
    ),
}  # fmt: skip
RATELESS = ("0.4.6", "0.5.2")
PREFIXES = {
    "plain": "{stamp}",
    "compose": "sglang-1  | {stamp}",
    "docker": "{rfc3339} {stamp}",
    "CRI": "{rfc3339} stderr F {stamp}",
    "journald": "Mar  1 00:00:00 host python[12]: {stamp}",
    "ray": "\x1b[36m(Actor pid=12, ip=10.0.0.1)\x1b[0m {stamp}",
    "doubled": "{stamp} {stamp}",
    "progress": "Loading:  50%|#####     | 1/2 [00:01<00:01, 1.2it/s]{stamp}",
    "returns": "Capturing:  50%\rCapturing: 100%\r{stamp}",
}
lines = st.tuples(st.sampled_from(sorted(WRITERS)), st.sampled_from(sorted(PREFIXES)), values)
noise = st.one_of(
    st.text(st.characters(exclude_characters="\n\r\x1b", exclude_categories=("Cs",)), max_size=60),
    st.sampled_from(
        [
            "",
            "Traceback (most recent call last):",
            "[2026-03-01 00:00:00] INFO: GET /health",
            "\x1b[31mred\x1b[0m",
        ]
    ),
)


def _written(at: int, version: str, prefix: str, value: Values) -> str:
    moment = START + timedelta(seconds=at)
    stamp = f"[{moment:%Y-%m-%d %H:%M:%S} DP0 TP0]"
    front = PREFIXES[prefix].format(stamp=stamp, rfc3339=f"{moment:%Y-%m-%dT%H:%M:%S.000000000Z}")
    return f"{front} {WRITERS[version](value)}"


def _expected(at: int, version: str, value: Values) -> dict[tuple[str, int], float]:
    time_ms = round((START + timedelta(seconds=at)).timestamp() * 1000)
    left_out = {"spec.engine_accept_rate"} if version in RATELESS else set()
    return {(metric, time_ms): number for metric, number in value.items() if metric not in left_out}


@given(
    st.lists(lines, min_size=1, max_size=6), st.lists(noise, max_size=6), st.randoms(use_true_random=False)
)
def test_lines_of_any_version_behind_any_prefix_amid_noise_are_read_back(
    written: list[tuple[str, str, Values]], others: list[str], order: random.Random
) -> None:
    valid = [_written(at, *line) for at, line in enumerate(written)]
    mixed = list(valid)
    for other in others:
        mixed.insert(order.randint(0, len(mixed)), other)
    found = read("\n".join(mixed) + "\n")
    expected: dict[tuple[str, int], float] = {}
    for at, (version, _, value) in enumerate(written):
        expected |= _expected(at, version, value)
    assert {(level.metric, level.time_ms): level.value for level in found.levels} == expected
    assert len(found.levels) == len(expected)
    assert found.summary.decode_lines == len(written)


@given(values, st.integers(1, 400))
def test_a_cut_line_gives_no_wrong_value(value: Values, length: int) -> None:
    """Of a line cut anywhere, each value is that of the whole line, or is not there.

    One thing cannot be known: whether a line that ends with a line end after `#queue-req: 1` was to say 10.
    """
    line = _written(0, "0.5.23", "plain", value)
    for end in ("\n", ""):
        found = read(line[:length] + end)
        known = [level for level in found.levels if not (end and level.metric == "requests.queued")]
        assert all(level.value == value[level.metric] for level in known)
        refused = sum(found.summary.refused.values())
        assert refused + found.summary.decode_lines in (0, 1)


PIECES = (
    b"[2026-03-01 00:00:00 TP0] ",
    b"Decode batch, ",
    b"Prefill batch. ",
    b"#running-req: 8, ",
    b"accept len: 3.33",
    b", ",
    b": ",
    b"\n",
    b"\r",
    b"\x1b[31m",
    b"\xff\xfe",
    b"server_args=ServerArgs(",
    b"server_args={",
    b"'",
    b'"',
    b"(",
    b")",
    b"}",
    b"model_path='m', ",
    b"'model_path': 'm', ",
    b"\\",
    b" stderr P ",
    b"2026-03-01T00:00:00.1Z stderr P ",
    b'{"log":"',
    b'","stream":"stderr","time":"x"}',
    b"Adaptive spec params updated: steps 3 -> 99999999999",
    b"KV cache pool is full. Retract requests. #retracted_reqs: 3",
    b"OutOfMemoryError",
    b"The server is fired up",
    b"accept len: 99999999999999999999999999999, ",
    b"[99:99:99] ",
    b"0000-00-00T00:00:00Z ",
    b"token usage: -1, ",
    b"[0001-01-01 00:00:00] ",
    b"9999-12-31T23:59:59-12:00 ",
    b"\x1f\x8b\x08",
    b"#queue-req: 1",
    b"obj=",
)


@settings(max_examples=300)
@given(st.lists(st.sampled_from(PIECES) | st.binary(max_size=20), max_size=25).map(b"".join))
def test_garbage_never_raises(log: bytes) -> None:
    found = read(log)
    assert all(level.value >= 0 for level in found.levels)
    assert found.summary.bytes_read >= 0
    assert found.ends == sorted(set(found.ends))


@given(st.text(max_size=200))
def test_a_garbled_dump_never_raises(text: str) -> None:
    dump = read_dump(f"server_args=ServerArgs(model_path='m', {text}")
    assert dump is None or "model_path" in dump.config


@given(st.lists(st.booleans(), min_size=1, max_size=30), st.integers(1, 5_000))
def test_reading_again_from_where_it_ended_gives_the_rest(kinds: list[bool], cut: int) -> None:
    """What a first reading of a part of the log gave, and a second of all of it, is all of it, once."""
    log = "".join(
        (f"[2026-03-01 00:00:{at:02} TP0] " + LINE.partition("] ")[2] if is_line else "noise") + "\n"
        for at, is_line in enumerate(kinds)
    )
    ends = [at + 1 for at, character in enumerate(log) if character == "\n"]
    known = max([end for end in ends if end <= cut], default=0)
    first, second = read(log[:known]), read(log, done_to=known)
    whole = read(log)
    key = [(level.metric, level.time_ms, level.value) for level in (*first.levels, *second.levels)]
    assert key == [(level.metric, level.time_ms, level.value) for level in whole.levels]
