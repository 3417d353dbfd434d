"""The oracle against what a real SGLang 0.5.23 answered, and its own algebra."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sglang_cpu.oracle import NotGreedyError, count_request, count_requests

RECORDED: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent / "fixtures" / "answers-0.5.23.json").read_text(encoding="utf-8")
)
GREEDY = [answer for answer in RECORDED if answer["request"]["sampling_params"]["temperature"] == 0]
VOCABULARY = json.loads((Path(__file__).parent / "vocabulary.json").read_text(encoding="utf-8"))
STEPS = 3


def greedy_output(first: int, length: int) -> list[int]:
    """Return what the target says after `first`, which is counted."""
    tokens = [first]
    while len(tokens) < length:
        tokens.append(VOCABULARY["next_token"][tokens[-1]])
    return tokens


@pytest.mark.parametrize("answer", GREEDY, ids=lambda answer: answer["request"]["text"])
def test_each_recorded_greedy_answer_is_predicted_exactly(answer: dict[str, Any]) -> None:
    meta = answer["meta_info"]
    counts = count_request(answer["output_ids"], STEPS)
    assert counts.generated_tokens == meta["completion_tokens"]
    assert counts.verify_calls == meta["spec_verify_ct"]
    assert counts.accepted_drafts == meta["spec_num_correct_drafts"]
    assert list(counts.histogram) == meta["spec_correct_drafts_histogram"]


def test_there_are_greedy_answers_to_compare_with() -> None:
    assert len(GREEDY) >= 10
    assert count_requests((answer["output_ids"] for answer in GREEDY), STEPS).surplus_tokens > 0


def test_tokens_that_are_not_greedy_are_refused() -> None:
    output = greedy_output(7, 10)
    output[4], output[5] = output[5], output[4]
    with pytest.raises(NotGreedyError, match="token 4 is"):
        count_request(output, STEPS)


@given(st.integers(0, 503), st.integers(1, 200), st.integers(1, 7))
def test_counts_are_consistent(first: int, length: int, num_steps: int) -> None:
    counts = count_request(greedy_output(first, length), num_steps)
    emitted = 1 + counts.verify_calls + counts.accepted_drafts
    assert emitted == counts.generated_tokens + counts.surplus_tokens
    assert 0 <= counts.surplus_tokens <= num_steps
    assert sum(counts.histogram) == counts.verify_calls
    assert counts.derived_accepted_drafts == counts.accepted_drafts - counts.surplus_tokens


@given(st.integers(0, 503), st.integers(2, 100))
def test_deeper_drafts_never_need_more_verify_calls(first: int, length: int) -> None:
    output = greedy_output(first, length)
    calls = [count_request(output, num_steps).verify_calls for num_steps in (1, 2, 3, 5)]
    assert calls == sorted(calls, reverse=True)


def test_one_token_needs_no_cycle() -> None:
    counts = count_request([7], STEPS)
    assert (counts.verify_calls, counts.histogram) == (0, (0, 0, 0, 0))
