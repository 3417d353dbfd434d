"""Logs of any size and any content are read with bounded memory; what is lost is counted."""

from __future__ import annotations

import gzip
import io
import random
import resource
import tracemalloc

import pytest
from tests.collectors.log.reading import EXPECTED, LINE, STAMP, by_metric, read

from specscope_collectors.logs.blocks import BLOCK_BYTES, MAX_LINE_BYTES, read_blocks
from specscope_collectors.sources.sglang_log import LogOptions, LogReader, Unpacked

MIB = 1024 * 1024


class Repeated:
    """A stream of so many bytes, made while it is read."""

    def __init__(self, pattern: bytes, size: int) -> None:
        self.pattern, self.left = pattern, size

    def read(self, size: int, /) -> bytes:
        """Return the next bytes."""
        given = min(size, self.left)
        self.left -= given
        return (self.pattern * (given // len(self.pattern) + 1))[:given]


def read_stream(stream: Repeated) -> tuple[LogReader, int, int]:
    """Return (reader, levels, most bytes of memory)."""
    reader = LogReader(LogOptions(server="gpu1", fingerprint="f"))
    tracemalloc.start()
    count = sum(len(portion.observations) for portion in reader.read(Unpacked(stream)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return reader, count, peak


def test_a_line_of_100_mb_is_read_in_pieces() -> None:
    reader, count, peak = read_stream(Repeated(b"x" * 1000, 100 * MIB))
    assert count == 0
    assert reader.summary.refused == {"line too long: read in pieces": 1}
    assert (reader.summary.lines, reader.summary.bytes_read) == (1, 100 * MIB)
    assert peak < 16 * MIB


def test_a_log_without_a_line_end_stays_within_bounds() -> None:
    """Without tracing, which would take long: what the process holds at most must hardly grow."""
    reader = LogReader(LogOptions(server="gpu1", fingerprint="f"))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    portions = list(reader.read(Unpacked(Repeated(b"x" * 4096, 256 * MIB))))
    grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert portions == []
    assert (reader.summary.lines, reader.summary.bytes_read) == (1, 256 * MIB)
    assert grown_kib < 64 * 1024


@pytest.mark.parametrize("kind", ["noise", "status lines"])
def test_ever_new_shapes_of_lines_are_forgotten_again(kind: str) -> None:
    """Words differ in letters line by line, in front of what says nothing or of a status line."""
    order = random.Random(3)
    words = ("".join(order.choices("abcdefgh", k=40)) for _ in range(12_000))
    body = LINE if kind == "status lines" else "[2026-11-29 20:50:45] INFO: GET /health"
    log = io.BytesIO("".join(f"{word} {body}\n" for word in words).encode())
    reader = LogReader(LogOptions(server="gpu1", fingerprint="f"))
    tracemalloc.start()
    lines = 0
    for _ in reader.read(Unpacked(log)):
        lines = reader.summary.decode_lines
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert lines == (12_000 if kind == "status lines" else 0)
    assert peak < 64 * MIB


def test_what_stands_around_a_long_line_is_read() -> None:
    found = read(f"{LINE}\n{'x' * (3 * MAX_LINE_BYTES)}\n{LINE.replace('20:50:45', '20:50:46')}\n")
    assert found.values("spec.accept_length") == [3.33, 3.33]
    assert found.summary.lines == 3


def test_memory_does_not_grow_with_the_log() -> None:
    noise = b"[2026-11-29 20:50:45] INFO: GET /health\n" * 400
    small = read_stream(Repeated(noise + LINE.encode() + b"\n", 4 * MIB))[2]
    large = read_stream(Repeated(noise + LINE.encode() + b"\n", 40 * MIB))[2]
    assert large < small + 8 * MIB


@pytest.mark.parametrize("seed", range(3))
def test_binary_files_give_nothing_and_do_not_raise(seed: int) -> None:
    found = read(b"\0" + random.Random(seed).randbytes(300_000))
    assert found.levels == []
    assert found.summary.bytes_read == 300_001


def test_invalid_utf8_around_a_line_does_no_harm() -> None:
    found = read(b"\xff\xfe\x80 " + LINE.encode() + b"\n\xc3(\n")
    assert by_metric(found) == EXPECTED


def test_what_is_no_text_around_lines_of_a_large_log_does_no_harm() -> None:
    """The same where lines are read together: each valid line says what it says, and nothing else does."""
    order = random.Random(7)
    lines, valid = [], 0
    for at in range(3_000):
        stamp = f"[2026-11-29 {at // 3600:02}:{at // 60 % 60:02}:{at % 60:02} TP0]"
        is_valid = order.random() < 0.6
        valid += is_valid
        rubbish = order.randbytes(order.randint(0, 300)).replace(b"\n", b" ").replace(b"\r", b" ")
        lines.append(LINE.replace(STAMP, stamp).encode() if is_valid else rubbish)
    found = read(b"\n".join(lines) + b"\n")
    assert found.summary.decode_lines == valid
    assert found.values("spec.accept_length") == [3.33] * valid
    assert not found.summary.refused


@pytest.mark.parametrize(("mark", "encoding"), [(b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")])
def test_utf16_gives_what_utf8_gives(mark: bytes, encoding: str) -> None:
    log = f"Größe 😀\n{LINE}\n"
    whole = read(mark + log.encode(encoding) + b"\x00")
    assert whole.levels == read(log).levels
    large = read(mark + (log * 20_000).encode(encoding))
    assert large.summary.decode_lines == 20_000


@pytest.mark.parametrize("year", ["2099", "9999", "0001", "1969"])
def test_times_far_away_are_read_as_they_are_and_judged_by_the_store(year: str) -> None:
    together = read(f"{LINE.replace('2026', year)}\n" * 2, together_from_bytes=0)
    assert together.observations == read(f"{LINE.replace('2026', year)}\n" * 2).observations
    assert len(together.values("spec.accept_length")) == 2


def test_gzip_is_told_by_its_content_and_may_have_several_members() -> None:
    second = LINE.replace("20:50:45", "20:50:46")
    packed = gzip.compress(LINE.encode() + b"\n") + gzip.compress(second.encode() + b"\n")
    found = read(packed)
    assert found.values("spec.accept_length") == [3.33, 3.33]
    assert found.summary.damage == []


@pytest.mark.parametrize(("spoil", "words"), [("cut", "ends too early"), ("flip", "damaged")])
def test_a_damaged_gzip_gives_what_can_be_read_and_says_so(spoil: str, words: str) -> None:
    order = random.Random(1)
    noise = "\n".join(f"{order.random()}" for _ in range(200_000))
    packed = bytearray(gzip.compress(f"{LINE}\n{noise}\n".encode()))
    half = len(packed) // 2
    data = (
        bytes(packed[:half]) if spoil == "cut" else bytes(packed[:half]) + b"\xff" * 64 + bytes(packed[half:])
    )
    found = read(data)
    assert by_metric(found) == EXPECTED
    assert len(found.summary.damage) == 1
    assert words in found.summary.damage[0]


def test_a_small_gzip_bomb_is_read_piece_by_piece() -> None:
    packed = gzip.compress(b"\0" * (64 * MIB))
    reader = LogReader(LogOptions(server="gpu1", fingerprint="f"))
    tracemalloc.start()
    portions = list(reader.read(Unpacked(io.BytesIO(packed))))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert portions == []
    assert reader.summary.bytes_read == 64 * MIB
    assert peak < 16 * MIB


def test_an_empty_log_has_nothing() -> None:
    found = read(b"")
    assert (found.observations, found.summary.lines, found.summary.launches) == ([], 0, [])


def test_the_last_line_counts_only_what_is_whole() -> None:
    assert by_metric(read(LINE)) == {name: EXPECTED[name] for name in EXPECTED if name != "requests.queued"}
    assert by_metric(read(LINE + "\n")) == EXPECTED


def test_lines_over_the_edge_of_a_block_are_whole() -> None:
    filler = "y" * (BLOCK_BYTES - len(LINE) // 2) + "\n"
    assert by_metric(read(f"{filler}{LINE}\n{filler}")) == EXPECTED


@pytest.mark.parametrize("size", [1, 7, 1000, BLOCK_BYTES, 3 * BLOCK_BYTES + 5])
def test_blocks_cover_the_log_without_gap(size: int) -> None:
    data = (b"abc\n" * size)[:size]
    blocks = list(read_blocks(io.BytesIO(data)))
    assert [block.start for block in blocks] == [0, *(block.end for block in blocks[:-1])]
    assert blocks[-1].end == size
    assert sum(block.lines for block in blocks) == size // 4
