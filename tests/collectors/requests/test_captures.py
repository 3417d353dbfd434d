"""Real answers become records with the engine's own counts."""

from __future__ import annotations

import pytest
from tests.collectors.requests.captured import EXPORT, RECEIVED_MS, WORKED, chunks, document, lines

from specscope_collectors.sources.requests import RefusedError, essentials, records_of, to_record


def test_the_worked_example_is_read_exactly() -> None:
    record = to_record(WORKED, received_ms=RECEIVED_MS)
    assert (record.verify_calls, record.accepted_drafts, record.proposed_drafts) == (13, 18, 39)
    assert record.accepted_histogram == (6, 0, 3, 4)
    assert (record.prompt_tokens, record.completion_tokens, record.cached_tokens) == (9, 32, None)
    assert (record.request_id, record.time_ms) == ("worked", RECEIVED_MS)


def test_answers_of_0_5_23_have_histograms_that_add_up() -> None:
    answers = lines("generate-eagle3-0.5.23.ndjson")
    records = [to_record(answer, received_ms=0) for answer in answers]
    assert sum(record.verify_calls or 0 for record in records) == 317
    for answer, record in zip(answers, records, strict=True):
        meta = answer["meta_info"]
        assert record.accepted_histogram is not None
        assert record.accepted_histogram[: len(meta["spec_correct_drafts_histogram"])] == tuple(
            meta["spec_correct_drafts_histogram"]
        )
        assert len(record.accepted_histogram) == 4
        assert sum(record.accepted_histogram) == record.verify_calls == meta["spec_verify_ct"]
        assert record.time_ms == round(meta["request_finished_ts"] * 1_000)
        assert record.e2e_seconds == pytest.approx(meta["e2e_latency"])


def test_answers_of_0_5_8_have_counts_and_no_histogram() -> None:
    records = [to_record(answer, received_ms=0) for answer in lines("generate-eagle3-0.5.8.ndjson")]
    first = records[0]
    assert (first.verify_calls, first.accepted_drafts, first.proposed_drafts) == (4, 6, 12)
    assert {record.accepted_histogram for record in records} == {None}
    assert first.time_ms == 1_795_987_831_905


def test_without_speculation_nothing_is_said_of_it() -> None:
    for answer in lines("generate-base-0.5.23.ndjson"):
        record = to_record(answer, received_ms=0)
        assert record.verify_calls is None
        assert record.accepted_drafts is None
        assert record.completion_tokens


@pytest.mark.parametrize("version", ["0.5.8", "0.5.23"])
def test_only_the_end_of_a_stream_is_a_request(version: str) -> None:
    *before, last = chunks(f"stream-eagle3-{version}.sse.txt")
    record = to_record(last, received_ms=0)
    assert (record.verify_calls, record.accepted_drafts, record.completion_tokens) == (7, 10, 16)
    assert before
    for part in before:
        with pytest.raises(RefusedError, match="still runs"):
            to_record(part, received_ms=0)


@pytest.mark.parametrize("name", ["chat-meta", "chat-sglext", "chat-stream-sglext-last"])
def test_openai_answers_are_read_wherever_the_counts_stand(name: str) -> None:
    record = to_record(document(f"{name}-0.5.23.json"), received_ms=0)
    assert (record.verify_calls, record.accepted_drafts, record.proposed_drafts) == (15, 0, 45)
    assert record.accepted_histogram == (15, 0, 0, 0)
    assert record.labels["model"] == "default"
    assert 1_796_001_390_000 < record.time_ms < 1_796_001_400_000
    assert record.completion_tokens == (None if "stream" in name else 16)


@pytest.mark.parametrize("name", ["chat-meta-n2", "chat-sglext-n2"])
def test_several_choices_are_several_requests(name: str) -> None:
    records = records_of(document(f"{name}-0.5.23.json"), received_ms=0)
    assert [record.verify_calls for record in records] == [15, 15]
    assert len({record.request_id for record in records}) == 2
    assert [record.completion_tokens for record in records] == ([16, 16] if "meta" in name else [None, None])
    with pytest.raises(RefusedError, match="2 outputs"):
        to_record(document(f"{name}-0.5.23.json"), received_ms=0)


def test_a_completion_has_its_own_histogram() -> None:
    record = to_record(document("completion-sglext-0.5.23.json"), received_ms=0)
    assert record.accepted_histogram == (3, 2, 2, 1)
    assert record.prompt_tokens == 2


def test_a_plain_openai_answer_has_lengths_only() -> None:
    record = to_record(document("chat-plain-0.5.23.json"), received_ms=0)
    assert (record.verify_calls, record.completion_tokens, record.prompt_tokens) == (None, 16, 7)


def test_an_export_says_the_same_as_the_answers() -> None:
    exported = {
        record.request_id: record for line in lines(EXPORT.name) for record in records_of(line, received_ms=0)
    }
    answered = [
        *records_of(document("chat-meta-0.5.23.json"), received_ms=0),
        *records_of(document("chat-meta-n2-0.5.23.json"), received_ms=0),
        *(to_record(answer, received_ms=0) for answer in document("generate-n2-0.5.23.json")),
    ]
    assert len(exported) == 17
    assert len(answered) == 5
    for record in answered:
        same = exported[record.request_id]
        assert same.accepted_histogram == record.accepted_histogram
        assert same.time_ms == record.time_ms
        assert same.completion_tokens == record.completion_tokens


@pytest.mark.parametrize("name", ["chat-meta-n2", "chat-sglext", "chat-sglext-n2", "completion-sglext"])
def test_the_essentials_give_the_same_records_and_hold_no_text(name: str) -> None:
    answer = document(f"{name}-0.5.23.json")
    slim = essentials(answer)
    assert [to_record(meta, received_ms=5) for meta in slim] == records_of(answer, received_ms=5)
    assert all("text" not in str(meta) and "message" not in str(meta) for meta in slim)
