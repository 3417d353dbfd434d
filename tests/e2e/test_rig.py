"""The rig itself: the real engine counts what the oracle says, before the product comes into it."""

from __future__ import annotations

import httpx
import pytest
from tests.sglang_cpu.environment import SGLANG_VERSION
from tests.sglang_cpu.oracle import Counts, count_request, count_requests
from tests.support.rig import Answer, Request, RunningRig

pytestmark = [pytest.mark.rig, pytest.mark.xdist_group("rig")]

REQUESTS = [Request(f"Cup of tea number {index}", 24 + 8 * (index % 3)) for index in range(8)]


def answer_counts(answer: Answer) -> tuple[int, int, int, list[int]]:
    """Return tokens, verify calls, accepted drafts and histogram as the engine answered them."""
    meta = answer["meta_info"]
    drafts, histogram = meta["spec_num_correct_drafts"], meta["spec_correct_drafts_histogram"]
    return meta["completion_tokens"], meta["spec_verify_ct"], drafts, histogram


def oracle_counts(counts: Counts) -> tuple[int, int, int, list[int]]:
    """Return the oracle's counts in the same form."""
    return counts.generated_tokens, counts.verify_calls, counts.accepted_drafts, list(counts.histogram)


def test_the_engine_is_the_pinned_one(shared_rig: RunningRig) -> None:
    info = httpx.get(f"{shared_rig.base_url}/server_info", timeout=30.0).json()
    assert info["version"] == SGLANG_VERSION
    assert info["speculative_algorithm"] == "EAGLE3"


def test_the_engine_counts_what_the_oracle_says(shared_rig: RunningRig) -> None:
    answers = shared_rig.generate(REQUESTS, concurrency=4)
    for answer in answers:
        predicted = count_request(answer["output_ids"], shared_rig.num_steps)
        assert answer_counts(answer) == oracle_counts(predicted)
    total = count_requests((answer["output_ids"] for answer in answers), shared_rig.num_steps)
    assert total.generated_tokens == sum(request.max_new_tokens for request in REQUESTS)
