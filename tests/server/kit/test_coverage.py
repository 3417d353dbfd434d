"""Which ranks should report follows from the parallel sizes, and is unknown where they are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specscope_server.kit.coverage import MAX_RANKS, Coverage, Sizes, coverage


def labels(**ranks: int) -> dict[str, str]:
    return {"model_name": "llama", **{f"{name}_rank": str(number) for name, number in ranks.items()}}


def of(sizes: Sizes, *found: dict[str, str]) -> tuple[int, int | None, str]:
    got = coverage(sizes, found)
    return got.reporting, got.expected, got.text


EIGHT = Sizes(version="0.5.23", tp=8, dp=8, pp=1, nodes=1, dp_attention=True)


def test_with_dp_attention_each_leader_reports_under_its_own_tp_rank() -> None:
    assert of(EIGHT, *(labels(dp=n, tp=n, pp=0) for n in range(8))) == (8, 8, "8/8 ranks")


def test_missing_ranks_are_named() -> None:
    found = (labels(dp=n, tp=n, pp=0) for n in range(8) if n not in (3, 5))
    assert of(EIGHT, *found) == (6, 8, "6/8 ranks: missing dp 3, 5")
    assert coverage(EIGHT, []).missing[:2] == ("dp 0", "dp 1")


def test_without_data_parallelism_the_leader_alone_reports() -> None:
    sizes = Sizes(version="0.5.8", tp=8, dp=1, pp=1)
    assert of(sizes, labels(tp=0, pp=0)) == (1, 1, "1/1 rank")
    assert of(sizes) == (0, 1, "0/1 rank: missing the only rank")


def test_all_schedulers_report_where_they_are_asked_to() -> None:
    sizes = Sizes(version="0.5.8", tp=4, dp=1, pp=1, all_schedulers=True)
    assert of(sizes, labels(tp=0), labels(tp=1), labels(tp=3)) == (3, 4, "3/4 ranks: missing tp 2")
    attending = Sizes(version="0.5.23", tp=4, dp=2, dp_attention=True, all_schedulers=True)
    found = [labels(dp=0, tp=0), labels(dp=0, tp=1), labels(dp=1, tp=2)]
    assert of(attending, *found) == (3, 4, "3/4 ranks: missing tp 3")
    replicas = Sizes(version="0.5.23", tp=2, dp=2, all_schedulers=True)
    assert of(replicas, *found) == (2, 4, "2/4 ranks: missing dp 1 tp 0, dp 1 tp 1")


def test_each_pipeline_stage_has_a_leader() -> None:
    sizes = Sizes(version="0.5.23", tp=2, dp=1, pp=3)
    assert of(sizes, labels(pp=0), labels(pp=2)) == (2, 3, "2/3 ranks: missing pp 1")


def test_a_node_exports_its_own_ranks() -> None:
    sizes = Sizes(version="0.5.23", tp=16, dp=16, nodes=2, dp_attention=True)
    first = coverage(sizes, [labels(dp=n, tp=n) for n in range(8)])
    assert (first.text, first.is_complete) == ("8/8 ranks", True)
    assert "only the ranks of this node" in first.note
    second = Sizes(version="0.5.23", tp=16, dp=16, nodes=2, node=1, dp_attention=True)
    assert coverage(second, [labels(dp=8, tp=8)]).missing[0] == "dp 9"
    stages = Sizes(version="0.5.23", tp=8, pp=2, nodes=2)
    assert of(stages, labels(pp=0)) == (1, 1, "1/1 rank")


@pytest.mark.parametrize(
    ("sizes", "why"),
    [
        (Sizes(), "did not say"),
        (Sizes(engine="vllm", tp=8), "did not say"),
        (Sizes(version="0.5.23", tp=8, dp=3, dp_attention=True), "do not fit"),
        (Sizes(version="0.5.23", tp=2**20), "do not fit"),
        (Sizes(version="0.5.23", tp=8, dp=2, nodes=2), "not known"),
    ],
)
def test_what_cannot_be_known_is_unknown(sizes: Sizes, why: str) -> None:
    found = coverage(sizes, [labels(dp=0)])
    assert (found.expected, found.is_complete) == (None, None)
    assert why in found.note
    assert found.text == "1 rank of an unknown number"


def test_ranks_without_labels_cannot_be_told_apart() -> None:
    found = coverage(Sizes(version="0.4.6.post5", tp=2, dp=2), [{"model_name": "llama"}])
    assert (found.reporting, found.expected, found.is_complete) == (1, 2, None)
    assert "last writer wins" in found.note
    assert found.text == "2 ranks that cannot be told apart"
    alone = coverage(Sizes(version="0.4.6.post5", tp=8, dp=1), [{"model_name": "llama"}])
    assert (alone.text, alone.is_complete) == ("1/1 rank", True)


def test_more_ranks_than_explained_are_told_and_not_counted() -> None:
    found = coverage(Sizes(version="0.5.23", tp=1, dp=1), [labels(dp=0), labels(dp=1)])
    assert (found.text, found.note) == ("1/1 rank", "1 more report than the launch's sizes explain")


def test_silent_ranks_are_explained_by_their_leader() -> None:
    led = coverage(Sizes(version="0.5.23", tp=8, dp=1), [labels(dp=0)])
    assert (led.text, "leader" in led.note) == ("1/1 rank", True)
    split = Sizes(version="0.5.23", tp=4, dp=4, dp_attention=True)
    assert coverage(split, [labels(dp=rank) for rank in range(4)]).note == ""


def test_long_lists_are_cut() -> None:
    sizes = Sizes(version="0.5.23", tp=32, dp=32, dp_attention=True)
    assert coverage(sizes, []).text == "0/32 ranks: missing dp 0, 1, 2, 3, 4, 5, 6, 7 and 24 more"


POWERS = st.sampled_from([1, 2, 4, 8])


@given(
    tp=POWERS, dp=POWERS, pp=st.integers(1, 3), every=st.booleans(), attention=st.booleans(), data=st.data()
)
def test_reporting_and_missing_make_up_the_whole(
    tp: int, dp: int, pp: int, every: bool, attention: bool, data: st.DataObject
) -> None:
    sizes = Sizes(version="0.5.23", tp=tp, dp=dp, pp=pp, all_schedulers=every, dp_attention=attention)
    rank = st.fixed_dictionaries({"dp": st.integers(0, 7), "pp": st.integers(0, 2), "tp": st.integers(0, 7)})
    found: Coverage = coverage(sizes, [labels(**each) for each in data.draw(st.lists(rank, max_size=20))])
    if found.expected is None:
        assert attention
        assert tp % dp
        return
    wanted = tp * pp if attention else tp * dp * pp
    assert found.expected == (wanted if every else dp * pp) <= MAX_RANKS
    assert found.reporting + len(found.missing) == found.expected
    assert found.is_complete is (not found.missing)
