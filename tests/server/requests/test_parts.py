"""Cut requests into parts: every request is in exactly one, and their counts add up."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.server.requests.test_statistics import population, row

from specscope_server.kit.errors import InvalidInput
from specscope_server.requests.breakdown import part_of, positions_of
from specscope_server.requests.parts import MAX_CLASSES, MAX_VALUES, by_length, by_value, cut, label_names

LENGTHS = st.lists(st.none() | st.integers(0, 2**31), max_size=60)


@given(LENGTHS)
def test_each_length_is_in_the_one_class_that_holds_it(tokens: list[int | None]) -> None:
    found = by_length(tokens)
    assert sorted(place for part in found for place in part.places) == list(range(len(tokens)))
    assert sum(part.kind == "range" for part in found) <= MAX_CLASSES
    for part in found:
        for place in part.places:
            count = tokens[place]
            if part.kind == "unknown":
                assert count is None
            else:
                assert part.low is not None
                assert part.high is not None
                assert count is not None
                assert part.low <= count <= part.high


@given(st.lists(st.none() | st.integers(0, 30), max_size=120))
def test_each_value_is_in_one_part_and_the_rest_is_one(values: list[int | None]) -> None:
    rows = [
        row(number, [1, 1])._replace(labels=json.dumps({} if value is None else {"t": f"v{value}"}))
        for number, value in enumerate(values)
    ]
    found = by_value(rows, "t")
    assert sorted(place for part in found for place in part.places) == list(range(len(rows)))
    assert sum(part.kind == "value" for part in found) <= MAX_VALUES
    sizes = [len(part.places) for part in found if part.kind == "value"]
    assert sizes == sorted(sizes, reverse=True)


def test_values_that_look_like_ours_stay_values() -> None:
    rows = [row(0, [1])._replace(labels='{"t":"other (3 values)"}'), row(1, [1])._replace(labels="{}")]
    assert [(part.name, part.kind) for part in by_value(rows, "t")] == [
        ("other (3 values)", "value"), ("(without this label)", "unknown"),
    ]  # fmt: skip


def test_label_names_come_by_how_many_have_them() -> None:
    rows = [row(n, [1])._replace(labels='{"a":"1","b":"2"}' if n else '{"c":"1","b":"2"}') for n in range(3)]
    assert label_names(rows) == ["b", "a", "c"]


@pytest.mark.parametrize("by", ["", "tenant", "label:", "prompt", "label"])
def test_what_cannot_be_compared_by_is_refused_with_the_choices(by: str) -> None:
    with pytest.raises(InvalidInput, match="prompt_tokens"):
        cut([], by)


def test_a_draft_that_was_never_proposed_does_not_count_against_its_position() -> None:
    shallow = [row(0, [0, 10], depth=1)]
    deep = [row(1, [0, 5, 5, 0], depth=3)]
    found = positions_of([*shallow, *deep])
    assert [(each.offered, each.accepted) for each in found] == [(20, 20), (10, 5), (5, 0)]
    assert [each.conditional for each in found] == [1.0, 0.5, 0.0]
    assert positions_of([row(0, [5, 5], depth=None)]) == []


def test_a_part_has_both_means_and_an_interval_by_request() -> None:
    everyone = population([row(0, [0, 0, 0, 10], depth=3), row(1, [90, 0, 0, 0], depth=3)])
    [part] = [part_of(everyone, each) for each in by_length([4, 5])]
    assert (part.low, part.high, part.requests, part.cycles) == (4, 7, 2, 100)
    assert part.accept_length == pytest.approx(1.3)
    assert part.request_mean_accept_length == pytest.approx(2.5)
    assert part.accept_length_low == 1.0
    assert part.accept_length_high is not None
    assert part.accept_length_high > 1.8
    assert (part.is_few, part.depths, part.draft_acceptance) == (True, [3], None)
