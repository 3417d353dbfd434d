"""CSV that a spreadsheet cannot be made to run, JSON without NaN, cursors that only we can make."""

from __future__ import annotations

import csv
import io

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specscope_server.kit.errors import InvalidInput
from specscope_server.kit.names import did_you_mean
from specscope_server.kit.web.formats import dump_json, safe_cell, to_csv, to_ndjson
from specscope_server.kit.web.pagination import decode_cursor, encode_cursor


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"])
def test_text_that_would_be_run_is_quoted(text: str) -> None:
    assert safe_cell(text) == f"'{text}"


@pytest.mark.parametrize("value", [-1.5, 0, "plain", "a=b"])
def test_numbers_and_plain_text_stay(value: object) -> None:
    assert safe_cell(value) == value


def test_missing_is_an_empty_cell_and_zero_is_zero() -> None:
    assert to_csv(("a", "b"), [{"a": None, "b": 0.0}]) == b"a,b\r\n,0.0\r\n"


def test_truth_values_are_written_as_in_json() -> None:
    assert to_csv(("a", "b"), [{"a": True, "b": False}]) == b"a,b\r\ntrue,false\r\n"


@given(
    st.lists(
        st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"])), min_size=1, max_size=5
    )
)
def test_csv_keeps_every_text(cells: list[str]) -> None:
    columns = [f"c{index}" for index in range(len(cells))]
    body = to_csv(columns, [dict(zip(columns, cells, strict=True))]).decode()
    header, row = csv.reader(io.StringIO(body, newline=""))
    assert header == columns
    assert [cell.removeprefix("'") for cell in row] == [cell.removeprefix("'") for cell in cells]
    assert not any(cell.startswith(("=", "+", "-", "@")) for cell in row)


def test_nested_values_become_json_text() -> None:
    assert to_csv(("labels",), [{"labels": {"a": "=x"}}]) == b'labels\r\n"{""a"":""=x""}"\r\n'


def test_nan_becomes_null() -> None:
    assert orjson.loads(dump_json({"v": np.array([1.0, np.nan])})) == {"v": [1.0, None]}
    assert orjson.loads(dump_json({"v": float("nan")})) == {"v": None}


def test_ndjson_has_one_object_a_line() -> None:
    assert to_ndjson([{"a": 1}, {"a": None}]) == b'{"a":1}\n{"a":null}\n'


@given(st.integers(-(2**53), 2**53), st.text(st.characters(exclude_categories=["Cs"])))
def test_cursors_round_trip(number: int, name: str) -> None:
    cursor = encode_cursor([number, name])
    assert decode_cursor(cursor, (int, str)) == [number, name]


@pytest.mark.parametrize("cursor", ["", "x", "W10", "WzFd!", "WyJhIl0", "[1]", "é"])
def test_a_cursor_that_is_not_ours_is_refused(cursor: str) -> None:
    with pytest.raises(InvalidInput, match="is not one of ours; leave it out"):
        decode_cursor(cursor, (int,))


def test_no_cursor_is_the_first_page() -> None:
    assert decode_cursor(None, (int,)) is None


def test_the_nearest_name_is_suggested() -> None:
    assert did_you_mean("tokens.decodd", ["tokens.decoded", "kv.usage"]) == " Did you mean 'tokens.decoded'?"
    assert did_you_mean("zzz", ["tokens.decoded"]) == ""
