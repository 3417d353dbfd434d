"""The streaming reader: any cut of the bytes gives the same events, and damage costs what is damaged only."""

from __future__ import annotations

import gzip
import io
import json
import zlib
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specscope_collectors.traces.bounds import Bounds, TraceError
from specscope_collectors.traces.columns import Sorter
from specscope_collectors.traces.events import TraceEvent
from specscope_collectors.traces.inflate import Inflated
from specscope_collectors.traces.reading import ReadFile, read_file
from specscope_collectors.traces.scan import Scan
from specscope_collectors.traces.summary import summarise

SMALL = Bounds(chunk_bytes=257)
NAMES = st.text(max_size=30) | st.sampled_from(
    ['"}, {"ph"', "}\n  },\n  {\n", "],", '\\"', '{"traceEvents": [', "é\u2028"]
)
VALUES = st.recursive(
    st.none() | st.integers(-9, 9) | NAMES, lambda inner: st.lists(inner, max_size=3), max_leaves=5
)
EVENTS = st.builds(
    lambda name, args, ts: kernel(ts, name=name, args=args),
    NAMES,
    st.dictionaries(NAMES, VALUES, max_size=4),
    st.floats(0, 1e15),
)  # fmt: skip


def kernel(ts: float = 1.0, **more: Any) -> dict[str, Any]:
    """Return an event that is kept."""
    return {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": ts, "dur": 2.0, **more}


def trace(events: list[dict[str, Any]], indent: int | None = None) -> bytes:
    """Return a trace as JSON."""
    header = {"schemaVersion": 1, "note": 'a "traceEvents": [ in a text', "distributedInfo": {"rank": 1}}
    return json.dumps({**header, "traceEvents": events, "traceName": "x"}, indent=indent).encode()


def scanned(pieces: list[bytes], bounds: Bounds = SMALL) -> tuple[list[TraceEvent], Scan]:
    """Return the events that are found in pieces of a trace, and the scan."""
    scan = Scan(pieces, bounds)
    return [event for batch in scan for event in batch], scan


def read(content: bytes, name: str = "t-TP-0.trace.json", bounds: Bounds | None = None) -> ReadFile:
    """Read a file's content."""
    return read_file(io.BytesIO(content), name, bounds or Bounds())


def cut(content: bytes, places: list[int]) -> list[bytes]:
    """Return the content in pieces."""
    edges = sorted({0, len(content), *(place % (len(content) + 1) for place in places)})
    return [content[start:end] for start, end in pairwise(edges)]


@settings(max_examples=100, deadline=None)
@given(
    st.lists(EVENTS, max_size=15),
    st.lists(st.integers(0, 1 << 20), max_size=12),
    st.sampled_from([None, 2]),
    st.integers(16, 3_000),
)
def test_any_cut_gives_the_same_events(
    events: list[dict[str, Any]], places: list[int], indent: int | None, chunk: int
) -> None:
    found, scan = scanned(cut(trace(events, indent), places), Bounds(chunk_bytes=chunk))
    assert [(event.name, event.ts) for event in found] == [(event["name"], event["ts"]) for event in events]
    assert (scan.trouble, scan.undecodable) == ("", 0)
    assert scan.header["distributedInfo"] == {"rank": 1}
    assert scan.header["traceName"] == "x"


@settings(max_examples=100, deadline=None)
@given(st.lists(EVENTS, min_size=1, max_size=12), st.integers(0, 1 << 20), st.sampled_from([None, 1]))
def test_a_trace_that_is_cut_off_gives_a_beginning_of_its_events(
    events: list[dict[str, Any]], place: int, indent: int | None
) -> None:
    content = trace(events, indent)
    place %= len(content)
    try:
        found, scan = scanned([content[:place]])
    except TraceError:
        assert content.find(b'"traceEvents": [', 60) + 16 > place  # cut before the first event
        return
    names = [event["name"] for event in events]
    assert [event.name for event in found] == names[: len(found)]
    assert scan.trouble or len(found) == len(events)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=300), st.integers(0, 1 << 20))
def test_garbage_within_never_hangs_or_breaks(garbage: bytes, place: int) -> None:
    content = trace([kernel(n) for n in range(20)])
    place = 150 + place % (len(content) - 150)
    try:
        found, _ = scanned([content[:place] + garbage + content[place:]])
    except TraceError:
        return
    assert len(found) <= 20 + len(garbage) // 2


def test_a_bare_array_is_a_trace_even_when_it_is_not_closed() -> None:
    content = json.dumps([kernel(n) for n in range(5)]).encode()
    for whole in (content, content[:-1], content[:-1] + b",\n"):
        found, scan = scanned([whole])
        assert (len(found), scan.trouble) == (5, "")


@pytest.mark.parametrize("bad", ["NaN", '"\\x"', "[1,", '"a\nb"', "{", "{]"])
def test_one_damaged_event_costs_at_most_what_follows(bad: str) -> None:
    events = [json.dumps(kernel(n)) for n in range(30)]
    events[10] = f'{{"ph": "X", "cat": "kernel", "name": {bad}}}'
    content = ('{"traceEvents": [' + ", ".join(events) + "]}").encode()
    found, scan = scanned([content])
    assert len(found) >= 10
    if bad in ("NaN", '"\\x"', '"a\nb"', "{]"):
        assert (len(found), scan.undecodable, scan.trouble) == (29, 1, "")
    else:
        assert scan.trouble


def test_names_that_are_no_text_are_kept_with_a_mark() -> None:
    content = trace([kernel(name="good"), kernel(name="MARK")]).replace(b"MARK", b"\xff\xfe")
    found, scan = scanned([content])
    assert [event.name for event in found] == ["good", "\ufffd\ufffd"]
    assert scan.undecodable == 0


@pytest.mark.parametrize(
    "content", [b"", b"<html>", b"{}", b'{"a": 1}', b"PK\x03\x04", b'{"traceEvents": 3}']
)
def test_what_is_no_trace_is_refused_with_a_remedy(content: bytes) -> None:
    with pytest.raises(TraceError, match=r"x\.json: .*(name a Kineto or Chrome trace|capture again)"):
        read(content, "x.json")


def test_a_trace_without_events_is_refused() -> None:
    with pytest.raises(TraceError, match="holds no events; capture again, under load"):
        read(trace([]))


def test_gzip_that_is_cut_off_is_read_as_far_as_it_goes() -> None:
    whole = gzip.compress(trace([kernel(n, name=f"k{n * 7919 % 104729}") for n in range(20_000)]))
    found = read(whole[: len(whole) // 2])
    assert 5_000 < found.file.events < 15_000
    assert "the gzip data is cut off after" in found.file.trouble
    summary = summarise([found], "x", 0)
    assert any("cut off" in note for note in summary.notes)


def test_damage_within_gzip_ends_the_reading_there() -> None:
    whole = bytearray(gzip.compress(trace([kernel(n, name=f"k{n * 7919 % 104729}") for n in range(20_000)])))
    middle = len(whole) // 2
    whole[middle : middle + 40] = bytes(40)
    found = read(bytes(whole))
    assert 1_000 < found.file.events < 20_000
    assert found.file.trouble


def test_several_gzip_members_and_a_foreign_end() -> None:
    content = trace([kernel(n) for n in range(50)])
    two = gzip.compress(content[:900]) + gzip.compress(content[900:])
    assert (read(two).file.events, read(two).file.trouble) == (50, "")
    foreign = read(gzip.compress(content) + b"something else")
    assert foreign.file.events == 50
    assert "not gzip follows" in foreign.file.trouble


def bomb(megabytes: int) -> Iterator[bytes]:
    """Yield a gzip file of one event with a name of zeros, without holding it unpacked."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    yield packer.compress(b'{"traceEvents": [' + json.dumps(kernel()).encode() + b', {"name": "')
    for _ in range(megabytes):
        yield packer.compress(b"0" * 1_048_576)
    yield packer.compress(b'"}]}') + packer.flush()


def test_zip_bombs_are_refused_early_and_say_what_to_do() -> None:
    content = b"".join(bomb(400))
    assert len(content) < 500_000
    inflated = Inflated(io.BytesIO(content), Bounds())
    with pytest.raises(TraceError, match="looks like a zip bomb; if you trust it, unpack it yourself"):
        for _ in inflated:
            pass
    assert inflated.unpacked_bytes < 200 * 1_048_576
    small = read(content)  # as a trace, the endless event is what ends it
    assert small.file.events == 1
    assert "an event is over" in small.file.trouble


def test_more_bytes_than_allowed_are_refused() -> None:
    with pytest.raises(TraceError, match="unpacks to more than 10,000 bytes; capture fewer steps"):
        read(gzip.compress(trace([kernel(n) for n in range(500)])), bounds=Bounds(max_bytes=10_000))


def test_what_cannot_be_is_refused_and_counted() -> None:
    events = [
        kernel(1), kernel(2, dur=-1.0), kernel(3, dur=-0.5), kernel(4, dur=None), kernel("soon"),
        kernel("5.5", dur="2"), {**kernel(6), "ph": "B"},
    ]  # fmt: skip
    found = read(trace(events))
    [(_, columns)] = found.ranks
    assert dict(columns.refused) == {
        "negative duration": 2, "without a time or duration": 2, "begin and end apart": 1
    }  # fmt: skip
    assert list(columns.kernels["ts"]) == [1.0, 5.5]
    summary = summarise([found], "x", 0)
    assert "Refused: 1 events begin and end apart, 2 events negative duration" in " ".join(summary.notes)


def test_events_beyond_the_bound_are_left_out_and_it_says_so() -> None:
    found = read(trace([kernel(n) for n in range(100)]), bounds=Bounds(max_kept=30))
    assert found.ranks[0][1].kept == 30
    assert "70 events beyond the bound are left out" in found.file.trouble


def test_very_many_names_are_not_all_held() -> None:
    sorter = Sorter(10_000_000)
    for start in range(0, 60_000, 1_000):
        sorter.add([TraceEvent(ph="X", cat="kernel", name=f"k{n}" * 90, ts=1.0, dur=1.0)
                    for n in range(start, start + 1_000)])  # fmt: skip
    names = sorter.ranks[""].names.texts
    assert len(names) == 50_001
    assert max(map(len, names)) <= 300
