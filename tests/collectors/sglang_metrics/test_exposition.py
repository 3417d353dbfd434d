"""The parser on its own: grammar, limits, damage. `test_exposition_laws` compares it with another one."""

from __future__ import annotations

import math
import tracemalloc

import pytest
from tests.collectors.sglang_metrics.captured import body_of

from specscope_collectors.exposition import lines
from specscope_collectors.exposition.parse import (
    EXAMPLES,
    Exposition,
    NotAnExposition,
    parse_exposition,
)
from specscope_collectors.sources.sglang_metrics.table import WANTED


def parse(body: str | bytes, *, max_series: int = 1_000) -> Exposition:
    """Parse every name."""
    raw = body.encode() if isinstance(body, str) else body
    return parse_exposition(raw, max_series=max_series, wanted=None)


def test_labels_are_sorted_and_unescaped() -> None:
    found = parse('a{z="1",b="say \\"hi\\"\\n\\\\o/, {x} # y"} 2.5\n')
    assert found.samples == {("a", (("b", 'say "hi"\n\\o/, {x} # y'), ("z", "1"))): 2.5}


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("a 1", 1.0),
        ("a{} 1e3", 1000.0),
        ("a -2.5E-1", -0.25),
        ("a +Inf", math.inf),
        ("a -Inf", -math.inf),
        ("a 7 1700000000000", 7.0),
        ("a\t8\t1700000000000", 8.0),
        ("  a   9  ", 9.0),
        ("a 1\r", 1.0),
        ('a 3 # {trace_id="x"} 0.5', 3.0),
        ('{"a"} 4', 4.0),
    ],
)
def test_a_line_without_labels(line: str, value: float) -> None:
    assert parse(line + "\n").samples == {("a", ()): value}


def test_nan_is_a_number_here() -> None:
    assert math.isnan(parse("a NaN\n").samples["a", ()])


@pytest.mark.parametrize(
    "labels",
    ['b="1",c="2"', 'b="1",c="2",', ',b="1",c="2"', ' b = "1" , c = "2" ', 'c="2",b="1"', '"b"="1",c="2"'],
)
def test_ways_to_write_labels(labels: str) -> None:
    assert parse(f"a{{{labels}}} 1\n").samples == {("a", (("b", "1"), ("c", "2"))): 1.0}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("a", "not of the form"),
        ("a{b=1} 1", "not of the form"),
        ('a{b="1} 1', "not of the form"),
        ('a{b="1",b="2"} 1', "not of the form"),
        ('a{b="1" c="2"} 1', "not of the form"),
        ('a{__x="1"} 1', "not of the form"),
        ("a one", "'one' is no number"),
        ("a 1_000", "'1_000' is no number"),
        ("a 1 then", "'then' is no number"),
        ("a 0x10", "'0x10' is no number"),
    ],
)
def test_a_bad_line_is_refused_alone(line: str, reason: str) -> None:
    found = parse(f"before 1\n{line}\nafter 2\n")
    assert found.samples == {("before", ()): 1.0, ("after", ()): 2.0}
    assert (found.refused, found.damaged) == (1, {"a"})
    assert found.refusals[0].startswith("line 2: a: ")
    assert reason in found.refusals[0]


def test_a_line_that_is_not_utf8_is_refused_alone() -> None:
    found = parse(b'a{b="\xff"} 1\nc 2\n')
    assert found.samples == {("c", ()): 2.0}
    assert "not UTF-8" in found.refusals[0]


def test_only_the_first_refusals_are_told() -> None:
    found = parse("ok 1\n" + "bad\n" * 40)
    assert found.refused == 40
    assert len(found.refusals) == EXAMPLES


def test_comments_may_stand_anywhere() -> None:
    found = parse("# HELP a what\na 1\n#TYPE\n# free text\nb 2\n# TYPE a gauge\n\n# EOF\n")
    assert found.samples == {("a", ()): 1.0, ("b", ()): 2.0}
    assert found.refused == 0


def test_an_answer_with_comments_only_is_an_exposition() -> None:
    assert parse("# TYPE a gauge\n").samples == {}


def test_created_series_are_left_out() -> None:
    found = parse("a_total 3\na_created 1.7e9\n")
    assert list(found.samples) == [("a_total", ())]
    assert found.skipped == 1


def test_a_repeated_series_counts_once() -> None:
    found = parse('a{b="1",c="2"} 3\na{c="2",b="1"} 3\nn NaN\nn NaN\n')
    assert len(found.samples) == 2
    assert found.refused == 0


def test_a_series_with_two_values_has_none() -> None:
    found = parse('a{b="1"} 3\na{b="2"} 5\na{b="1"} 4\na{b="1"} 3\n')
    assert found.samples == {("a", (("b", "2"),)): 5.0}
    assert found.contradicted == {("a", (("b", "1"),))}
    assert found.refused == 1
    assert "line 3: a stands twice" in found.refusals[0]


def test_series_beyond_the_limit_are_refused_and_counted() -> None:
    found = parse("".join(f'a{{b="{at}"}} 1\n' for at in range(10)) + "c 1\n", max_series=4)
    assert (len(found.samples), found.over_limit, found.refused) == (4, 7, 7)
    assert found.damaged == {"a", "c"}
    assert "more than 4 series" in found.refusals[0]


@pytest.mark.parametrize(
    ("body", "is_truncated"),
    [
        ("a 1\n", False),
        ("a 1\r\n", False),
        ("a 1\n# EOF", False),
        ("a 1\nb 12", True),
        ('a 1\nb{c="', True),
        ("a 1\n# HEL", True),
    ],
)
def test_a_cut_answer_is_noticed(body: str, is_truncated: bool) -> None:
    assert parse(body).is_truncated is is_truncated


@pytest.mark.parametrize("at", range(40, 90_000, 7_001))
def test_a_real_answer_cut_anywhere_is_noticed(at: int) -> None:
    body = body_of("0.5.23-real")[:at]
    assert parse(body).is_truncated is not body.endswith(b"\n")


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "empty"),
        (b"  \r\n\n", "empty"),
        (b"<!DOCTYPE html><html><body>hello 1</body></html>\n", "HTML"),
        (b"\n\n  <html>\n<p>\na 1\n", "HTML"),
        (b'{"detail": "Not Found"}\n', "JSON"),
        (b'{\n  "status": "ok"\n}\n', "JSON"),
        (b'[{"a": 1}]', "JSON"),
        (b"{}", "JSON"),
        (b"\x1f\x8b\x08\x00\x00", "gzip"),
        (b"\x7fELF\x00\x00\x01\n", "binary"),
        (b"Unauthorized\n", "'Unauthorized'"),
        (b"404 page not found", "'404 page not found'"),
        (b"# A heading\nand some prose.\n", "'# A heading'"),
    ],
)
def test_something_else_is_named(body: bytes, reason: str) -> None:
    with pytest.raises(NotAnExposition, match=reason) as caught:
        parse_exposition(body, max_series=10, wanted=WANTED)
    assert caught.value.is_empty is (reason == "empty")


def test_another_products_metrics_are_an_exposition_without_anything_wanted() -> None:
    found = parse_exposition(b"# TYPE go_threads gauge\ngo_threads 8\n", max_series=10, wanted=WANTED)
    assert (found.samples, found.skipped, found.names) == ({}, 1, {"go_threads"})


def test_an_untrusted_body_is_shown_short_and_harmless() -> None:
    with pytest.raises(NotAnExposition) as caught:
        parse_exposition("\x1b[31m<ö> & so on ".encode() * 50, max_series=10, wanted=WANTED)
    assert len(str(caught.value)) < 300
    assert str(caught.value).isascii() or str(caught.value).replace("…", "").isascii()


def test_names_that_are_not_wanted_cost_nothing_but_a_glance() -> None:
    body = 'sglang:num_queue_reqs 2\nother{broken 1\nother{b="1"} 5\n'
    found = parse_exposition(body.encode(), max_series=10, wanted=WANTED)
    assert found.samples == {("sglang:num_queue_reqs", ()): 2.0}
    assert (found.skipped, found.refused) == (2, 0)
    assert found.names == {"sglang:num_queue_reqs", "other"}


def test_label_values_without_end_are_held_within_the_limit() -> None:
    line = 'sglang:num_requests_total{user="%09d"} 1\n'
    body = "".join(line % at for at in range(50_000)).encode()
    lines._cached_label_pairs.cache_clear()
    tracemalloc.start()
    try:
        found = parse_exposition(body, max_series=1_000, wanted=WANTED)
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(found.samples) == 1_000
    assert found.over_limit == 49_000
    assert peak_bytes < 16 * 1024 * 1024


def test_lines_beyond_the_limit_are_counted_without_being_read() -> None:
    found = parse('a{b="1"} 1\na{b="2"} 1\na{b="3"} 1\na{broken\nc 1\n', max_series=2)
    assert (found.over_limit, found.refused) == (3, 3)
    assert len(found.refusals) == 2


def test_a_line_without_end_is_refused() -> None:
    body = (
        b'sglang:num_requests_total{user="'
        + b"x" * (2 * lines.MAX_LINE_BYTES)
        + b'"} 1\nsglang:num_queue_reqs 1\n'
    )
    found = parse_exposition(body, max_series=10, wanted=WANTED)
    assert list(found.samples) == [("sglang:num_queue_reqs", ())]
    assert "longer than" in found.refusals[0]


def test_lines_that_need_the_slow_parser_are_limited() -> None:
    """Backslashes make it quadratic; only so many bytes may go there."""
    odd = 'sglang:num_queue_reqs{a="' + "\\\\" * 1_500 + '", } 1 # {t="x"} 0.5\n'
    found = parse_exposition(("sglang:token_usage 1\n" + odd * 1_000).encode(), max_series=10, wanted=WANTED)
    assert found.samples["sglang:token_usage", ()] == 1.0
    assert any("too much of that" in reason for reason in found.refusals)
    assert found.refused > 500
