"""What the marks of a cycle say about its phases."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specscope_probe.phases import (
    CYCLE_IN,
    CYCLE_OUT,
    DRAFT_IN,
    DRAFT_OUT,
    EXTEND_IN,
    EXTEND_OUT,
    FORWARD_IN,
    FORWARD_OUT,
    PHASES,
    PLAIN,
    PREFILL,
    PREFILL_EXTEND_IN,
    PREFILL_EXTEND_OUT,
    SPECULATIVE,
    VERIFY_IN,
    VERIFY_OUT,
    ImpossibleError,
    kind_of,
    timing_of,
)

EAGLE = [
    CYCLE_IN, DRAFT_IN, DRAFT_OUT, VERIFY_IN, FORWARD_IN, FORWARD_OUT, VERIFY_OUT, EXTEND_IN, EXTEND_OUT,
    CYCLE_OUT,
]  # fmt: skip
LOOKUP = [CYCLE_IN, DRAFT_IN, DRAFT_OUT, FORWARD_IN, FORWARD_OUT, CYCLE_OUT]
PIPELINE = [*EAGLE[:-1], DRAFT_IN, DRAFT_OUT, CYCLE_OUT]
PREFILLS = [CYCLE_IN, FORWARD_IN, FORWARD_OUT, PREFILL_EXTEND_IN, PREFILL_EXTEND_OUT, CYCLE_OUT]


def phases(kind: str, marks: list[int], times: list[float]) -> dict[str, float]:
    """Return the phases by name."""
    cycle, parts = timing_of(kind, marks, times)
    assert sum(parts) == pytest.approx(cycle)
    return dict(zip(PHASES[kind], parts, strict=True))


def test_an_eagle_cycle() -> None:
    found = phases(SPECULATIVE, EAGLE, [0, 1, 11, 12, 15, 45, 50, 52, 60, 61])
    assert found == {
        "draft": 10, "verify_prepare": 3, "verify": 30, "sampling": 5, "draft_extend": 8, "other": 5,
    }  # fmt: skip


def test_a_cycle_without_draft_or_extend_has_zeros_there() -> None:
    marks = [CYCLE_IN, VERIFY_IN, FORWARD_IN, FORWARD_OUT, VERIFY_OUT, CYCLE_OUT]
    found = phases(SPECULATIVE, marks, [0, 1, 2, 5, 6, 7])
    assert (found["draft"], found["draft_extend"], found["verify"], found["other"]) == (0, 0, 3, 2)


def test_a_lookup_prepares_between_draft_and_forward_and_samples_among_the_rest() -> None:
    found = phases(SPECULATIVE, LOOKUP, [0, 0, 4, 6, 16, 20])
    assert (found["draft"], found["verify_prepare"], found["verify"]) == (4, 2, 10)
    assert (found["sampling"], found["other"]) == (0, 4)


def test_a_second_draft_at_the_end_of_a_pipelined_cycle_adds_up() -> None:
    found = phases(SPECULATIVE, PIPELINE, [0, 1, 11, 12, 15, 45, 50, 52, 60, 61, 64, 65])
    assert found["draft"] == 13
    assert found["verify_prepare"] == 3


def test_prefill_and_plain_decode() -> None:
    assert phases(PREFILL, PREFILLS, [0, 1, 9, 10, 13, 14]) == {
        "prefill": 8, "prefill_draft_extend": 3, "prefill_other": 3,
    }  # fmt: skip
    plain = [CYCLE_IN, FORWARD_IN, FORWARD_OUT, CYCLE_OUT]
    assert phases(PLAIN, plain, [0, 1, 9, 10]) == {"decode": 8, "decode_other": 2}


def test_phases_that_do_not_fit_are_refused_and_not_clipped() -> None:
    times = [0, 1, 11, 12, 15, 45, 50, 52, 60, 40.0]
    with pytest.raises(ImpossibleError, match="phases take"):
        timing_of(SPECULATIVE, EAGLE, times)


def test_a_phase_that_takes_less_than_nothing_is_refused() -> None:
    """Events of two streams may lie so; the sum of all phases would hide it."""
    marks = [CYCLE_IN, DRAFT_IN, DRAFT_OUT, FORWARD_IN, FORWARD_OUT, CYCLE_OUT]
    with pytest.raises(ImpossibleError):
        timing_of(SPECULATIVE, marks, [0, 3, 1, 4, 8, 10])


def test_rounding_within_the_tolerance_is_no_contradiction() -> None:
    cycle, parts = timing_of(PLAIN, [CYCLE_IN, FORWARD_IN, FORWARD_OUT, CYCLE_OUT], [0, 0, 1.0001, 1], 0.001)
    assert parts == [1.0001, 0.0]
    assert cycle == 1


@pytest.mark.parametrize("marks", [[], [CYCLE_IN], [DRAFT_IN, CYCLE_OUT], [CYCLE_IN, DRAFT_IN]])
def test_marks_that_are_no_cycle_are_an_error(marks: list[int]) -> None:
    with pytest.raises(ValueError, match="marks of a cycle"):
        timing_of(SPECULATIVE, marks, [0.0] * len(marks))


def test_what_the_target_did_decides_the_kind() -> None:
    names = ["TARGET_VERIFY", "EXTEND", "MIXED", "DECODE", "IDLE", ""]
    assert [kind_of(name) for name in names] == [SPECULATIVE, PREFILL, PREFILL, PLAIN, None, None]


@given(
    st.sampled_from([EAGLE, LOOKUP, PIPELINE]),
    st.lists(st.integers(0, 10**12), min_size=12, max_size=12),
    st.integers(0, 2**62),
)
def test_phases_always_add_up_to_the_cycle(marks: list[int], steps: list[int], start: int) -> None:
    times, now = [], start
    for step, _ in zip(steps, marks, strict=False):
        now += step
        times.append(now)
    cycle, parts = timing_of(SPECULATIVE, marks, times)
    assert cycle == times[-1] - times[0]
    assert sum(parts) == cycle
    assert min(parts) >= 0
