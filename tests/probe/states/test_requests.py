"""How many requests rows are of: a lower bound, in a window and in several that are put together."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from specscope_probe.states.requests import Seen, count_of, numbers_of, owners_named

KIND = ("prefill", "other")
windows = st.lists(st.sets(st.integers(0, 30), min_size=1), min_size=1, max_size=12)


@given(windows, st.integers(1, 40))
def test_requests_that_are_new_in_their_window_add_up_to_all(found: list[set[int]], most: int) -> None:
    seen, forgetful, told, more = Seen(), Seen(most), 0, 0
    for each in found:
        told += seen.new_of(KIND, each) or 0
        more += forgetful.new_of(KIND, each) or 0
        seen.note(KIND, each)
        forgetful.note(KIND, each)
    assert told == len(set.union(*found))
    assert more >= told
    if most >= 31:
        assert more == told


def test_phases_and_classes_do_not_know_of_each_other() -> None:
    seen = Seen()
    seen.note(KIND, {1, 2})
    assert seen.new_of(KIND, {1, 2, 3}) == 1
    assert seen.new_of(("verify_accepted", "other"), {1, 2, 3}) == 3


@given(st.lists(st.lists(st.integers(0, 50), min_size=1, max_size=9), min_size=1, max_size=5))
def test_of_unknown_requests_as_many_are_counted_as_one_forward_has(forwards: list[list[int]]) -> None:
    numbers: set[int] = set()
    for owners in forwards:
        numbers.update(owners_named(np.array(sorted(owners)), None).tolist())
    assert count_of(numbers) == max(len(set(owners)) for owners in forwards)
    assert Seen().new_of(KIND, numbers) is None
    assert count_of(numbers | {7}) == count_of(numbers), "an unknown one may be the known one"


def test_a_request_has_one_number_in_all_forwards() -> None:
    requests = [SimpleNamespace(rid=f"r{number}") for number in range(40)]
    names = numbers_of(requests)
    assert (names >= 0).all()
    assert len(set(names.tolist())) == 40
    assert (
        owners_named(np.array([3, 3, 5]), names) == numbers_of([requests[3], requests[3], requests[5]])
    ).all()
