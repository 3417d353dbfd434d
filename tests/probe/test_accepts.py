"""Accepted drafts: the bonus token, overshoot, health checks, adaptive depth, and what cannot be."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.probe.standin import Batch, ForwardMode, Lengths, Request, Result, Scheduler, engine

from specscope_probe.accepts import (
    CHAIN,
    LOOKUP,
    MAX_POSITIONS,
    TREE,
    AcceptCounter,
    AcceptCounts,
    accepted_drafts,
    at_least,
    drafts_of,
)
from specscope_probe.options import Options
from specscope_probe.parts import Part, State
from specscope_probe.probe import Probe


def probed(**worker: Any) -> tuple[Scheduler, AcceptCounter]:
    """Return an engine with a probe, and what it counts."""
    scheduler = engine(**worker)
    probe = Probe(scheduler, Options())
    probe.attach()
    return scheduler, probe.counter


def rows(counts: AcceptCounts) -> dict[int, int]:
    """Return rows by accepted drafts."""
    return {drafts: number for drafts, number in enumerate(counts.by_accepted) if number}


def test_the_bonus_token_is_taken_off_exactly_once() -> None:
    """V2's ``accept_lens`` includes it, V1's list and the engine's own counts do not."""
    assert accepted_drafts(Result(Lengths([1, 3, 4]))) == [0, 2, 3]
    assert accepted_drafts(Result(accept_length_per_req_cpu=[0, 2, 3])) == [0, 2, 3]
    both = Result(Lengths([3, 4]), num_correct_drafts_per_req_cpu=[1, 2])  # two tokens that are no drafts
    assert accepted_drafts(both) == [1, 2]


def test_counts_on_the_device_are_left_there() -> None:
    lengths = Lengths([1])
    lengths.is_cpu = False
    assert accepted_drafts(Result(lengths)) is None
    assert accepted_drafts(Result()) is None


def test_a_chain_is_counted_by_position() -> None:
    scheduler, counter = probed(accepts=lambda batch: [0, 2, 3])
    scheduler.run(Batch([Request(), Request(), Request()]))
    assert rows(counter.request_view) == {0: 1, 2: 1, 3: 1}
    assert at_least(counter.request_view.by_accepted) == [2, 2, 1]
    assert at_least(counter.request_view.by_depth) == [3, 3, 3]
    assert rows(counter.worker_view) == rows(counter.request_view)


def test_rows_of_finished_and_retracted_requests_and_health_checks_count_as_work_only() -> None:
    scheduler, counter = probed(accepts=lambda batch: [3, 2, 1, 0])
    batch = [Request(is_finished=True), Request(is_retracted=True), Request("HEALTH_CHECK_17.3"), Request()]
    scheduler.run(Batch(batch))
    assert rows(counter.worker_view) == {0: 1, 1: 1, 2: 1, 3: 1}
    assert rows(counter.request_view) == {0: 1}


def test_the_last_cycle_of_a_request_counts() -> None:
    """Without overlap the engine marks a request finished while it processes that very result."""
    scheduler, counter = probed(accepts=lambda batch: [2])
    request = Request()
    processor = type(scheduler.batch_result_processor)
    wrapped = processor._resolve_spec_v2_tokens

    def finishing(self: Any, result: Any, batch: Any) -> Any:
        out = wrapped(self, result, batch)
        request.is_finished = True
        return out

    processor._resolve_spec_v2_tokens = finishing
    scheduler.run(Batch([request]))
    assert rows(counter.request_view) == {2: 1}


def test_v1_counts_when_the_worker_returns() -> None:
    scheduler, counter = probed()
    worker = scheduler.draft_worker
    worker.verify = lambda batch: Result(accept_length_per_req_cpu=[0, 3])
    worker.forward_batch_generation(Batch([Request(), Request("HEALTH_CHECK_1")]))
    assert rows(counter.worker_view) == {0: 1, 3: 1}
    assert rows(counter.request_view) == {0: 1}


def test_an_adaptive_worker_has_moved_on_when_results_are_read() -> None:
    scheduler, counter = probed(accepts=lambda batch: [1])
    batch = Batch([Request()])
    result = scheduler.draft_worker.forward_batch_generation(batch)
    scheduler.draft_worker.speculative_num_draft_tokens = 2
    scheduler.draft_worker.speculative_num_steps = 1
    scheduler.batch_result_processor._resolve_spec_v2_tokens(result=result, batch=batch)
    assert at_least(counter.request_view.by_depth) == [1, 1, 1]


def test_a_cycle_without_drafting_proposes_nothing() -> None:
    scheduler, counter = probed(accepts=lambda batch: [0], speculative_num_draft_tokens=1)
    scheduler.run(Batch([Request()]))
    assert sum(counter.request_view.by_accepted) == 1
    assert at_least(counter.request_view.by_depth) == []


def test_a_tree_is_counted_by_depth_and_a_lookup_proposes_nobody_knows_what() -> None:
    scheduler, counter = probed(accepts=lambda batch: [2], topk=4, speculative_num_draft_tokens=8)
    scheduler.run(Batch([Request()]))
    assert counter.drafts == TREE
    assert at_least(counter.request_view.by_depth) == [1, 1, 1]
    lookup = engine(accepts=lambda batch: [5]).draft_worker
    lookup.ngram_corpus = object()
    assert drafts_of(lookup) == LOOKUP
    assert drafts_of(engine().draft_worker) == CHAIN


@pytest.mark.parametrize("drafts", [-1, 4])
def test_impossible_counts_are_refused_and_counted(drafts: int) -> None:
    scheduler, counter = probed(accepts=lambda batch: [1, drafts])
    scheduler.run(Batch([Request(), Request()]))
    assert counter.part.refused == 1
    assert rows(counter.worker_view) == rows(counter.request_view) == {1: 1}
    assert counter.part.is_on


def test_more_positions_than_are_counted_are_refused_and_not_clipped() -> None:
    counter = AcceptCounter(Part("accepts"), engine().draft_worker)
    counter.count([MAX_POSITIONS], [True], depth=MAX_POSITIONS)
    counter.count([1, MAX_POSITIONS + 1], [True, True], depth=MAX_POSITIONS + 1)
    assert counter.part.refused == 2
    assert rows(counter.worker_view) == rows(counter.request_view) == {MAX_POSITIONS: 1}
    assert counter.worker_view.by_depth[MAX_POSITIONS] == 1


def test_where_nothing_was_proposed_nothing_can_be_accepted() -> None:
    scheduler, counter = probed(accepts=lambda batch: [1], speculative_num_draft_tokens=1)
    scheduler.run(Batch([Request()]))
    scheduler.draft_worker.speculative_num_draft_tokens = 0
    scheduler.run(Batch([Request()]))
    assert (counter.part.refused, rows(counter.worker_view)) == (2, {})
    assert at_least(counter.worker_view.by_depth) == []


def test_prefills_accept_nothing() -> None:
    scheduler, counter = probed()
    scheduler.run(Batch([Request()], ForwardMode.EXTEND))
    assert rows(counter.worker_view) == {}


def test_simulated_acceptance_is_marked_and_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SGLANG_SIMULATE_ACC_LEN", "2.5")
    scheduler, counter = probed()
    scheduler.run(Batch([Request()]))
    assert counter.part.state is State.SIMULATED
    assert "2.5" in counter.part.reason
    assert rows(counter.worker_view) == {}


def test_ranks_that_do_not_speak_for_their_group_leave_it_to_the_first() -> None:
    scheduler = engine()
    scheduler.tp_rank = 3
    assert Probe(scheduler, Options()).accepts.state is State.NOT_HERE


@pytest.mark.parametrize(("stage", "speaks"), [(0, False), (1, True)])
def test_of_a_pipeline_the_last_stage_speaks_for_it_has_the_draft(stage: int, speaks: bool) -> None:
    scheduler = engine()
    scheduler.pp_rank = stage
    scheduler.pp_size = 2  # type: ignore[attr-defined]
    assert Probe(scheduler, Options()).rank.is_speaker is speaks


def test_under_data_parallel_attention_each_groups_first_rank_speaks() -> None:
    scheduler = engine()
    scheduler.tp_rank = 4
    scheduler.attn_tp_rank = 0  # type: ignore[attr-defined]
    assert Probe(scheduler, Options()).rank.is_speaker


@settings(deadline=None)  # other tests share the processors
@given(st.lists(st.lists(st.tuples(st.integers(-2, 9), st.booleans()), max_size=8), max_size=20))
def test_counts_always_reconcile(batches: list[list[tuple[int, bool]]]) -> None:
    counter = AcceptCounter(Part("accepts"), engine().draft_worker)
    for batch in batches:
        counter.count([drafts for drafts, _ in batch], [credited for _, credited in batch], depth=5)
    possible = [(drafts, credited) for batch in batches for drafts, credited in batch if 0 <= drafts <= 5]
    for view, kept in [
        (counter.worker_view, [drafts for drafts, _ in possible]),
        (counter.request_view, [drafts for drafts, credited in possible if credited]),
    ]:
        accepted, proposed = at_least(view.by_accepted), at_least(view.by_depth)
        assert sum(accepted) == sum(kept)
        assert sum(view.by_accepted) == len(kept)
        assert all(a <= p for a, p in zip(accepted, proposed, strict=False))
        assert accepted == sorted(accepted, reverse=True)
    assert counter.part.refused == sum(len(batch) for batch in batches) - len(possible)
