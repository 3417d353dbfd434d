"""The three zeros of the speculative gauges, and what they may say together."""

from __future__ import annotations

import pytest
from tests.collectors.sglang_metrics.captured import map_body, values

from specscope_collectors.exposition.mapped import Mapped

NAMES = {
    "length": "spec_accept_length",
    "rate": "spec_accept_rate",
    "steps": "spec_num_steps",
    "drafts": "spec_num_draft_tokens",
}
METRICS = {
    "length": "spec.accept_length",
    "rate": "spec.engine_accept_rate",
    "steps": "spec.num_steps",
    "drafts": "spec.num_draft_tokens",
}


def gauges(*, adaptive: bool = False, **printed: float) -> tuple[dict[str, float], Mapped]:
    """Map gauges printed side by side; return those that remain, by short name, and the whole result."""
    body = "".join(f'sglang:{NAMES[name]}{{tp_rank="0"}} {value}\n' for name, value in printed.items())
    mapped = map_body(body, adaptive=adaptive)
    kept = {
        short: found["0"]
        for short, metric in METRICS.items()
        if (found := values(mapped.levels, metric, "tp_rank"))
    }
    return kept, mapped


@pytest.mark.parametrize(
    ("printed", "kept"),
    [
        ({"length": 0, "rate": 0, "steps": 0, "drafts": 0}, {}),
        ({"length": 0, "rate": 0, "steps": 3, "drafts": 4}, {"steps": 3, "drafts": 4}),
        ({"length": 0, "rate": 0}, {}),
        ({"rate": 0}, {}),
        (
            {"length": 1, "rate": 0, "steps": 3, "drafts": 4},
            {"length": 1, "rate": 0, "steps": 3, "drafts": 4},
        ),
        (
            {"length": 1, "rate": 0, "steps": 0, "drafts": 1},
            {"length": 1, "rate": 0, "steps": 0, "drafts": 1},
        ),
        ({"length": 0, "rate": 0, "steps": 0, "drafts": 1}, {"drafts": 1}),
        ({"length": 2.5, "steps": 0, "drafts": 8}, {"length": 2.5, "drafts": 8}),
        (
            {"length": 4, "rate": 1, "steps": 3, "drafts": 4},
            {"length": 4, "rate": 1, "steps": 3, "drafts": 4},
        ),
        ({"length": 3.4375, "rate": 0.859375}, {"length": 3.4375, "rate": 0.859375}),
        ({"length": 4.9, "steps": 3, "drafts": 4}, {"length": 4.9, "steps": 3, "drafts": 4}),
    ],
    ids=[
        "no speculation",
        "no window yet",
        "no window yet, 0.5.8",
        "a rate alone",
        "nothing accepted",
        "adaptive tier without drafts",
        "adaptive tier without drafts, no window yet",
        "depth unknown: n-gram trees print 0",
        "everything accepted",
        "0.5.8: bonus in the rate",
        "two tokens of the engine's own per cycle",
    ],
)
def test_what_remains(printed: dict[str, float], kept: dict[str, float]) -> None:
    found, mapped = gauges(**printed)
    assert found == kept
    assert mapped.refused == 0


@pytest.mark.parametrize(
    ("printed", "lost", "reason"),
    [
        ({"length": 2, "rate": 1.25, "steps": 3, "drafts": 4}, "rate", "above 1 (adaptive"),
        ({"length": 0.5, "rate": 0.5}, "length", "below 1"),
        ({"length": 5.5, "rate": 0.9, "steps": 3, "drafts": 4}, "length", "impossible with 4 verified"),
        ({"length": 2, "rate": 0, "steps": 0, "drafts": 1}, "rate", "rate 0 beside accept length 2"),
    ],
)
def test_the_impossible_is_refused_and_counted(printed: dict[str, float], lost: str, reason: str) -> None:
    found, mapped = gauges(**printed)
    assert lost not in found
    assert mapped.refused == 1
    assert reason in mapped.refusals[0]


def test_under_adaptive_depth_a_window_may_be_longer_than_the_tier_at_its_end() -> None:
    printed = {"length": 5.0, "steps": 0.0, "drafts": 1.0}
    assert gauges(**printed)[1].refused == 1
    found, mapped = gauges(adaptive=True, **printed)
    assert (found["length"], mapped.refused) == (5.0, 0)


def test_each_rank_is_judged_by_its_own_gauges() -> None:
    mapped = map_body(
        'sglang:spec_accept_length{dp_rank="0"} 1\nsglang:spec_accept_rate{dp_rank="0"} 0\n'
        'sglang:spec_accept_length{dp_rank="1"} 0\nsglang:spec_accept_rate{dp_rank="1"} 0\n'
    )
    assert values(mapped.levels, "spec.engine_accept_rate", "dp_rank") == {"0": 0.0}


def test_dspark_gauges_are_absent_without_dspark() -> None:
    assert map_body("sglang:spec_cap_length 0\nsglang:spec_block_accept_length 0\n").levels == {}
    mapped = map_body("sglang:spec_cap_length 3.5\nsglang:spec_block_accept_length 2.25\n")
    assert mapped.levels == {("spec.cap_length", ()): 3.5, ("spec.block_accept_length", ()): 2.25}
