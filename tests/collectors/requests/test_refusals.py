"""What cannot be is refused in words; what is not said stays unknown; no text of an answer survives."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.collectors.requests.captured import RECEIVED_MS, WORKED

from specscope_collectors.observations import RequestRecord
from specscope_collectors.sources.requests import (
    HealthCheckError,
    RefusedError,
    checked_labels,
    parse_labels,
    records_of,
    to_record,
)


def worked(**changes: Any) -> dict[str, Any]:
    """Return the worked example with other values; None takes a key out."""
    meta = {**WORKED["meta_info"], **changes}
    return {"meta_info": {key: value for key, value in meta.items() if value is not None}}


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (worked(spec_verify_ct=12), "histogram has 13 steps but the engine verified 12 times"),
        (worked(spec_num_correct_drafts=17), "18 accepted drafts but the engine says 17"),
        (worked(spec_num_proposed_drafts=17), "18 accepted drafts are more than the 17 proposed"),
        (worked(spec_verify_ct=-1), "spec_verify_ct=-1 is not a count"),
        (worked(spec_verify_ct=True), "spec_verify_ct=True is not a count"),
        (worked(spec_verify_ct="13"), "is not a count"),
        (worked(spec_verify_ct=float("nan")), "is not a count"),
        (worked(spec_verify_ct=10**30), "is not a count"),
        (worked(spec_correct_drafts_histogram="6034"), "not a list"),
        (worked(spec_correct_drafts_histogram=[1] * 600), "not a list of at most 512"),
        (worked(spec_correct_drafts_histogram=[6, 0, 3.5, 4]), "is not a count"),
        (worked(completion_tokens=-3), "completion_tokens=-3 is not a count"),
        (worked(id=None), "id is missing"),
        (worked(id=7), "id is not a short text"),
        (worked(id="x" * 201), "id is not a short text"),
        (worked(id="a\0b"), "id is not a short text"),
        ({"meta_info": {**WORKED["meta_info"], "finish_reason": None}}, "still runs"),
        ([], "an answer is an object, not list"),
        ("text", "an answer is an object, not str"),
        ({"error": {"message": "busy"}}, "neither meta_info nor choices"),
        ({"id": "a", "choices": []}, "no choices"),
        ({"id": "a", "choices": [{"meta_info": {}}, {}]}, "choice 1 has no meta_info"),
    ],
)
def test_what_cannot_be_is_refused_in_words(answer: Any, words: str) -> None:
    with pytest.raises(RefusedError, match=words.replace("(", r"\(")):
        records_of(answer, received_ms=RECEIVED_MS)


def test_the_engine_asking_itself_is_no_request() -> None:
    with pytest.raises(HealthCheckError):
        to_record(worked(id="HEALTH_CHECK_1796001392.4"), received_ms=0)


@pytest.mark.parametrize(
    ("accepted", "proposed", "histogram"),
    [
        ("spec_num_correct_drafts", "spec_num_proposed_drafts", "spec_correct_drafts_histogram"),
        ("spec_accepted_drafts", "spec_proposed_drafts", "spec_accept_histogram"),
        ("spec_accept_token_num", "spec_draft_token_num", "spec_accept_histogram"),
    ],
)
def test_every_spelling_is_known(accepted: str, proposed: str, histogram: str) -> None:
    answer = {"id": "a", "spec_verify_ct": 13, accepted: 18, proposed: 39, histogram: [6, 0, 3, 4]}
    record = to_record(answer, received_ms=0)
    assert (record.accepted_drafts, record.proposed_drafts) == (18, 39)
    assert record.accepted_histogram == (6, 0, 3, 4)


def test_0_4_6_says_only_how_often_it_verified() -> None:
    record = to_record({"meta_info": {"id": "a", "completion_tokens": 9, "spec_verify_ct": 4}}, received_ms=0)
    assert record.verify_calls == 4
    assert record.accepted_drafts is record.proposed_drafts is record.accepted_histogram is None


def test_a_histogram_says_verify_calls_and_accepted_drafts_by_itself() -> None:
    answer = worked(spec_verify_ct=None, spec_num_correct_drafts=None, spec_num_proposed_drafts=None)
    record = to_record(answer, received_ms=0)
    assert (record.verify_calls, record.accepted_drafts, record.proposed_drafts) == (13, 18, None)


@pytest.mark.parametrize(
    ("proposed", "padded"), [(39, (13, 0, 0, 0)), (13, (13, 0)), (40, (13,)), (0, (13,)), (None, (13,))]
)
def test_a_short_histogram_is_filled_up_to_what_each_cycle_proposed(
    proposed: int | None, padded: tuple[int, ...]
) -> None:
    answer = worked(
        spec_correct_drafts_histogram=[13], spec_num_correct_drafts=0, spec_num_proposed_drafts=proposed
    )
    assert to_record(answer, received_ms=0).accepted_histogram == padded


def test_all_zeros_of_an_openai_answer_mean_that_nothing_was_counted() -> None:
    zeros = {"spec_verify_ct": 0, "spec_num_correct_drafts": 0, "spec_num_proposed_drafts": 0}
    answer = {"id": "a", "choices": [{}], "sglext": {"spec_tokens_details": zeros}}
    assert to_record(answer, received_ms=0).verify_calls is None


def test_when_it_finished_is_taken_from_the_best_that_is_said() -> None:
    times = {
        "request_received_ts": 1_000.5,
        "e2e_latency": 2.25,
        "created": 900,
        "decode_finished_ts": 1_002.0,
    }
    assert to_record(worked(**times), received_ms=7).time_ms == 1_002_000
    del times["decode_finished_ts"]
    assert to_record(worked(**times), received_ms=7).time_ms == 1_002_750
    assert to_record(worked(created=900), received_ms=7).time_ms == 900_000
    assert to_record(worked(request_finished_ts="soon"), received_ms=7).time_ms == 7


def test_labels_of_the_client_stand_beside_those_of_the_engine() -> None:
    record = to_record(worked(dp_rank=3), labels={"tenant": "a"}, received_ms=0)
    assert record.labels == {"dp_rank": "3", "tenant": "a"}


@pytest.mark.parametrize(
    "labels",
    [
        ["a"],
        {"a b": "c"},
        {"": "c"},
        {"a": 1},
        {"a": "x" * 201},
        {"a": "\0"},
        {f"n{i}": "" for i in range(17)},
    ],
)
def test_labels_that_are_none_are_refused(labels: Any) -> None:
    with pytest.raises(RefusedError):
        checked_labels(labels)


def test_labels_are_read_from_a_header() -> None:
    assert parse_labels(" tenant=a , dataset=b=c,") == {"tenant": "a", "dataset": "b=c"}
    assert parse_labels("") == {}
    with pytest.raises(RefusedError, match="has no value"):
        parse_labels("tenant")


SECRET = "zq-secret-"
TEXTS = st.text(min_size=1, max_size=12).map(lambda text: SECRET + text)
VALUES = st.recursive(
    st.none() | st.integers(0, 99) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
KEYS = st.sampled_from(
    ["text", "output_ids", "finish_reason", "weight_version", "request_parameters", "prompt", "usage",
     "cached_tokens_details", "labels", "sglext", "metadata", "spec_trace", "matched_stop"]
)  # fmt: skip


@given(st.dictionaries(KEYS | TEXTS, VALUES, max_size=6), st.sampled_from(["bare", "generate", "openai"]))
def test_no_text_of_an_answer_survives_but_id_model_and_labels(extra: dict[str, Any], form: str) -> None:
    meta = {**extra, **WORKED["meta_info"], "finish_reason": extra.get("finish_reason") or {"type": SECRET}}
    answer: dict[str, Any] = meta
    if form == "generate":
        answer = {**extra, "meta_info": meta}
    elif form == "openai":
        choice = {**extra, "message": {"content": SECRET}, "meta_info": meta}
        answer = {**extra, "id": "worked", "model": "llama", "choices": [choice]}
    record = to_record(answer, labels={"tenant": "a"}, received_ms=RECEIVED_MS)
    assert SECRET not in msgspec.json.encode(record).decode()
    assert set(record.labels) <= {"tenant", "model"}


NAMES = st.sampled_from(
    ["id", "meta_info", "choices", "sglext", "usage", "spec_tokens_details", "spec_verify_ct", "created",
     "spec_correct_drafts_histogram"]
)  # fmt: skip
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(NAMES, inner),
)


@given(ANYTHING)
def test_anything_gives_records_or_a_refusal(answer: Any) -> None:
    records: list[RequestRecord] = []
    with suppress(RefusedError, HealthCheckError):
        records = records_of(answer, received_ms=RECEIVED_MS)
    assert all(isinstance(record, RequestRecord) and record.request_id for record in records)


@given(st.lists(st.integers(0, 50), min_size=1, max_size=9).filter(any), st.integers(0, 3))
def test_whatever_adds_up_is_taken_and_adds_up_afterwards(histogram: list[int], spare: int) -> None:
    calls = sum(histogram)
    accepted = sum(index * steps for index, steps in enumerate(histogram))
    answer = worked(
        spec_verify_ct=calls, spec_num_correct_drafts=accepted, spec_correct_drafts_histogram=histogram,
        spec_num_proposed_drafts=calls * (len(histogram) - 1 + spare),
    )  # fmt: skip
    record = to_record(json.loads(json.dumps(answer)), received_ms=0)
    padded = record.accepted_histogram
    assert padded is not None
    assert (sum(padded), len(padded)) == (calls, len(histogram) + spare)
    assert sum(index * steps for index, steps in enumerate(padded)) == record.accepted_drafts == accepted


@pytest.mark.parametrize("seconds", [1_772_366_400_250, 1e300, float("inf"), float("nan"), -1])
def test_a_time_that_is_none_is_refused_and_not_replaced(seconds: float) -> None:
    with pytest.raises(RefusedError, match=r"request_finished_ts=.* is no time in seconds"):
        to_record(worked(request_finished_ts=seconds), received_ms=7)


def test_times_after_2038_are_times() -> None:
    assert to_record(worked(request_finished_ts=3e9), received_ms=7).time_ms == 3_000_000_000_000
