"""What rejected drafts cost and what a millisecond would buy, on a simulated engine whose answer is known."""

from __future__ import annotations

import pytest
from tests.server.client import Web
from tests.server.seed import Feed
from tests.server.timing.simulated import engine, play
from tests.server.timing.test_levels import level_of, summary

from specscope_collectors.observations import Parallelism

GPUS = 8


@pytest.mark.parametrize("sources", ["probe timer gauges", "timer gauges"])
def test_gpu_seconds_of_rejected_drafts_and_the_ceiling_of_a_tree(sources: str, feed: Feed, web: Web) -> None:
    tree = {"num_steps": 3, "num_draft_tokens": 16, "eagle_topk": 4}
    feed.launch(
        "tree", parallelism=Parallelism(tp_size=GPUS, dp_size=1, pp_size=1), speculative=tree,
    )  # fmt: skip
    simulated = engine(sources, width=16)
    play(feed, simulated)
    waste = summary(web)["waste"]
    length, width = 2.5, 16
    assert waste["rejected_share"]["value"] == pytest.approx((width - length) / width, rel=0.01)
    assert waste["acceptance_ceiling"]["value"] == pytest.approx(3 / 15)
    verify_ms = simulated.spent["verify"] * (width - length) / width
    draft_ms = simulated.spent["draft"] * (width - length) / (width - 1)
    expected = GPUS * (verify_ms + draft_ms) / 1_000
    assert waste["gpu_seconds"]["value"] == pytest.approx(expected, rel=0.03)


def test_a_millisecond_less_of_verify_and_a_point_more_of_alpha(feed: Feed, web: Web) -> None:
    feed.launch()
    simulated = engine()
    play(feed, simulated)
    found = summary(web)
    rows = {each["name"]: each for each in found["sensitivity"]}
    active_ms = simulated.busy_ms / simulated.cycles
    assert level_of(found, "probe")["active_ms"] == pytest.approx(active_ms, rel=0.02)
    assert rows["verify"]["change"].startswith("1 ms less")
    assert rows["verify"]["relative"] == pytest.approx(1 / (active_ms - 1), rel=0.02)
    assert rows["verify"]["tokens_per_second"] == pytest.approx(
        rows["verify"]["relative"] * 1_000 * simulated.tokens / simulated.busy_ms, rel=0.05
    )
    assert rows["verify"]["most"] > rows["draft"]["most"] > 0
    assert 0 < rows["alpha"]["relative"] < 0.05
    assert all(each["is_extrapolated"] for each in rows.values())
