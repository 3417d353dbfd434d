"""Whatever prometheus_client's parser reads, ours reads the same; whatever it refuses, ours refuses."""

from __future__ import annotations

import math

from hypothesis import assume, example, given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from specscope_collectors.exposition.lines import BadLineError, LineReader
from specscope_collectors.exposition.parse import parse_exposition
from specscope_collectors.increments import LabelPairs

Sample = tuple[str, LabelPairs, str]
"""(name, labels, value as `spelled`)."""

NAMES = st.from_regex(r"[a-zA-Z_:][a-zA-Z0-9_:]{0,8}", fullmatch=True).filter(
    lambda name: not name.endswith("_created")
)
LABEL_NAMES = st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_]{0,6}", fullmatch=True).filter(
    lambda name: name[:2] != "__"
)
QUOTED = st.lists(
    st.one_of(
        st.sampled_from(["\\\\", '\\"', "\\n", "\\t", "{", "}", ",", "=", "#", " # ", " ", "\\x41"]),
        st.characters(exclude_characters='"\\\n', exclude_categories=["Cs"]),
    ),
    max_size=6,
).map("".join)
NUMBERS = st.one_of(
    st.floats().map(repr),
    st.integers(-(10**20), 10**20).map(str),
    st.sampled_from(["NaN", "nan", "+Inf", "-Inf", "inf", "1e5", "1E-3", ".5", "5.", "+1", "-0"]),
)
GAP = st.sampled_from(["", " ", "  ", "\t"])
SPACE = st.sampled_from([" ", "  "])
COMMENTS = st.sampled_from(
    [
        "# HELP x some help \\n text",
        "# TYPE x gauge",
        "# TYPE y histogram",
        "# a remark",
        "#",
        "",
        "   ",
        "# EOF",
    ]
)


@st.composite
def label_sets(draw: st.DrawFn) -> str:
    """Label sets in braces, oddly but legally spaced."""
    names = draw(st.lists(LABEL_NAMES, max_size=4, unique=True))
    pairs = [f'{draw(GAP)}{name}{draw(GAP)}={draw(GAP)}"{draw(QUOTED)}"{draw(GAP)}' for name in names]
    trailing = draw(st.sampled_from(["", ","])) if pairs else ""
    return "{" + ",".join(pairs) + trailing + "}"


@st.composite
def sample_lines(draw: st.DrawFn) -> str:
    """One legal sample line without its line end."""
    labels = draw(st.one_of(st.just(""), label_sets().map(lambda text: text)))
    between = draw(GAP if labels else SPACE)
    timestamp = draw(st.one_of(st.just(""), st.integers(0, 2**43).map(lambda ms: f" {ms}")))
    return f"{draw(GAP)}{draw(NAMES)}{labels}{between}{draw(NUMBERS)}{timestamp}{draw(GAP)}"


def spelled(value: float) -> str:
    """Write a value so that NaN equals NaN and both zeros are one (prometheus_client reads -0 as an int)."""
    return repr(float(value) + 0.0)


def theirs(text: str) -> list[Sample]:
    """Samples as prometheus_client reads them."""
    return [
        (sample.name, tuple(sorted(sample.labels.items())), spelled(sample.value))
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    ]


@given(
    st.lists(st.one_of(sample_lines(), COMMENTS), min_size=1, max_size=12), st.sampled_from(["\n", "\r\n"])
)
def test_a_legal_body_is_read_alike(written: list[str], line_end: str) -> None:
    body = "".join(line + line_end for line in ["# TYPE first gauge", *written])
    expected = theirs(body)
    assume(len({(name, labels) for name, labels, _ in expected}) == len(expected))
    found = parse_exposition(body.encode(), max_series=100, wanted=None)
    assert [(name, labels, spelled(value)) for (name, labels), value in found.samples.items()] == expected
    assert (found.refused, found.is_truncated) == (0, False)


@given(st.lists(sample_lines(), min_size=1, max_size=12), st.integers(0, 20))
def test_the_limit_keeps_the_first_series(written: list[str], max_series: int) -> None:
    body = "".join(line + "\n" for line in written)
    expected = theirs(body)
    assume(len({(name, labels) for name, labels, _ in expected}) == len(expected))
    found = parse_exposition(body.encode(), max_series=max_series, wanted=None)
    assert [(name, labels, spelled(value)) for (name, labels), value in found.samples.items()] == expected[
        :max_series
    ]
    assert found.over_limit == max(len(expected) - max_series, 0)


@st.composite
def damaged_lines(draw: st.DrawFn) -> str:
    """A legal line with one stretch replaced by something else."""
    line = draw(sample_lines())
    start = draw(st.integers(0, len(line)))
    end = draw(st.integers(start, len(line)))
    junk = draw(st.text(st.sampled_from('a1_"{}=,\\# \t:é\x0b\u00a0NI.+-'), max_size=4))
    return line[:start] + junk + line[end:]


@given(damaged_lines())
@example("nan")
@example("a 1_0")
@example('a{b="c"}1')
@example('{"a b", c="d"} 1')
@example('a{b="c"} 1 2 3')
@example("a " + "9" * 400)
def test_a_damaged_line_is_read_alike_or_refused_alike(line: str) -> None:
    stripped = line.encode().strip()
    assume(stripped and not stripped.startswith(b"#") and not line.strip().startswith("#"))
    try:
        expected = theirs(line)
    except (ValueError, IndexError, OverflowError):
        expected = []
    try:
        name, labels, value = LineReader().read(stripped)
        found = [(name, labels, spelled(value))]
    except BadLineError:
        found = []
    if expected or not (found and math.isinf(float(found[0][2]))):
        assert found == expected


@given(st.binary(max_size=200))
def test_no_bytes_break_the_parser(junk: bytes) -> None:
    found = parse_exposition(b"good 1\n" + junk, max_series=5, wanted=None)
    assert found.samples.get(("good", ()), 1.0) == 1.0
    assert len(found.samples) <= 5
    assert found.lines >= 1
