"""The main proof: what the API reports of a real engine equals what its output tokens say, exactly."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.sglang_cpu.oracle import Counts, count_requests
from tests.support.product import Document, Product, serving
from tests.support.rig import Answer, Request, RigFactory, RunningRig

pytestmark = [pytest.mark.rig, pytest.mark.xdist_group("rig")]

REQUESTS = [Request(f"The {index}th cup of tea", 16 + 3 * index) for index in range(20)]
ENGINE_WARM_UP = Request("The capital city of France is", 8)
"""What SGLang asks itself at its start; its metrics count it like any other request."""


@pytest.fixture
def watched(shared_rig: RunningRig, tmp_path: Path) -> Iterator[Product]:
    """The product watching the shared engine, with its first scrape done."""
    with serving(tmp_path, {"rig": shared_rig.base_url}) as product:
        product.wait_for("good scrape", lambda: product.has_read("rig"))
        yield product


def oracle(answers: list[Answer], num_steps: int) -> Counts:
    """Return what the output tokens say."""
    return count_requests((answer["output_ids"] for answer in answers), num_steps)


def when_finished(product: Product, requests: int, **parameters: object) -> Document:
    """Return the summary as soon as it counts that many finished requests."""

    def settled() -> Document | None:
        summary = product.summary("rig", **parameters)
        return summary if (summary["counts"]["finished_requests"] or 0) >= requests else None

    found: Document = product.wait_for(f"{requests} finished requests", settled)
    return found


def assert_equal(summary: Document, expected: Counts) -> None:
    """Compare the raw counts of a summary with the oracle's, exactly."""
    counts = summary["counts"]
    assert counts["finished_requests"] == expected.requests
    assert counts["generated_tokens"] == expected.generated_tokens
    assert counts["verify_calls"] == expected.verify_calls
    assert counts["accepted_drafts"] == expected.derived_accepted_drafts
    assert counts["proposed_drafts"] == expected.verify_calls * (len(expected.histogram) - 1)


def test_counts_equal_the_oracle_and_the_answers(shared_rig: RunningRig, watched: Product) -> None:
    answers = shared_rig.generate(REQUESTS, concurrency=4)
    expected = oracle(answers, shared_rig.num_steps)
    metas = [answer["meta_info"] for answer in answers]
    assert expected.verify_calls == sum(meta["spec_verify_ct"] for meta in metas)
    assert expected.generated_tokens == sum(meta["completion_tokens"] for meta in metas)
    assert expected.accepted_drafts == sum(meta["spec_num_correct_drafts"] for meta in metas)

    summary = when_finished(watched, len(REQUESTS))
    assert_equal(summary, expected)


def test_the_distance_of_derived_drafts_is_explained(shared_rig: RunningRig, watched: Product) -> None:
    answers = shared_rig.generate(REQUESTS, concurrency=2)
    expected = oracle(answers, shared_rig.num_steps)
    assert expected.surplus_tokens > 0, (
        "some request must accept drafts past its stop for this to mean anything"
    )

    summary = when_finished(watched, len(REQUESTS))
    counts = summary["counts"]
    assert counts["accepted_drafts_kind"] == "derived"
    assert expected.accepted_drafts - counts["accepted_drafts"] == expected.surplus_tokens
    assert "prefill" in counts["explanation"]
    assert "stop" in counts["explanation"]
    assert summary["evidence"] == "counters"
    per_call = (expected.generated_tokens - expected.requests) / expected.verify_calls
    assert summary["accept_length"]["value"] == pytest.approx(per_call, rel=1e-12)
    strict = expected.derived_accepted_drafts / (expected.verify_calls * shared_rig.num_steps)
    assert summary["draft_acceptance"]["value"] == pytest.approx(strict, rel=1e-12)
    assert summary["num_steps"]["value"] == shared_rig.num_steps
    assert summary["num_draft_tokens"]["value"] == shared_rig.num_steps + 1


def test_each_launch_counts_for_itself(rig: RigFactory, tmp_path: Path) -> None:
    """K = 2, then a restart at the same address: two launches, nothing twice, nothing negative."""
    engine = rig(num_steps=2)
    with serving(tmp_path, {"rig": engine.base_url}) as product:
        product.wait_for("good scrape", lambda: product.has_read("rig"))
        before = oracle(engine.generate(REQUESTS, concurrency=4), 2)
        assert_equal(when_finished(product, before.requests), before)

        engine.restart()
        again = engine.generate([*REQUESTS[::-1], ENGINE_WARM_UP], concurrency=4)
        after = oracle([*again, again[-1]], 2)  # the engine's own warm-up had the same tokens as ours
        both = before + after
        assert_equal(when_finished(product, both.requests), both)
        launches = product.get("/servers/rig/launches")["launches"]
        assert [launch["num_steps"] for launch in launches] == [2, 2]
        newest, oldest = (launch["id"] for launch in launches)
        assert_equal(when_finished(product, before.requests, launch=oldest), before)
        assert_equal(when_finished(product, after.requests, launch=newest), after)
        assert_no_negative_growth(product)


def assert_no_negative_growth(product: Product) -> None:
    """Check every stored bucket of the counters and every point of the trend."""
    window = {"from": "now-1h", "to": "now"}
    metrics = ["spec.verify_calls", "tokens.generated", "requests.finished", "tokens.decoded"]
    found = product.get("/series/query", metric=metrics, server="rig", stat="sum", step="1s", **window)
    values = [value for line in found["series"] for value in line["values"] if value is not None]
    assert values
    assert min(values) >= 0
    points = product.get("/acceptance/trend", server="rig", **window)["points"]
    rates = [p["generated_tokens_per_second"] for p in points if p["generated_tokens_per_second"] is not None]
    assert rates
    assert min(rates) >= 0
