"""What the Sources page and API say of probes inside engines, on both databases."""

from __future__ import annotations

from typing import Any

from tests.server.client import Web
from tests.server.seed import NOW, SCRAPE_MS, SERVER, Feed

from specscope_collectors.observations import Increment, Level, Observation

TIME = NOW - 2_000


def ranks(tp: int) -> dict[str, str]:
    """Return a scheduler's labels."""
    return {"tp_rank": str(tp), "pp_rank": "0", "engine_type": "unified"}


def flag(metric: str, tp: int, value: float = 1, **labels: str) -> Level:
    """Return a gauge of a probe."""
    return Level(metric=metric, labels=ranks(tp) | labels, time_ms=TIME, value=value)


def cost(metric: str, value: float, **labels: str) -> Increment:
    """Return the growth of what a probe cost over a scrape interval."""
    return Increment(metric=metric, labels=ranks(0) | labels, time_ms=TIME, span_ms=SCRAPE_MS, value=value)


def speaker(**states: str) -> list[Observation]:
    """Return what the first rank's probe reports; ``states`` are parts that are not on."""
    parts = {"timing": "on", "accepts": "on", "output": "on", **states}
    return [
        flag(
            "probe.info", 0, version="0.1.0", engine_version="0.5.23", worker="EAGLEWorkerV2", clock="device"
        ),
        *(flag("probe.part", 0, part=part, state=state) for part, state in parts.items()),
        flag("probe.time_every", 0, 4),
        cost("probe.host_time", 0.02, where="cycle"),
        cost("probe.host_time", 0.5, where="export"),
        cost("probe.wall_time", 4.0),
    ]


def probes(web: Web) -> list[dict[str, Any]]:
    """Return the probes of the one server."""
    found: list[dict[str, Any]] = web.api("/sources", server=SERVER)["servers"][0]["probes"]
    return found


def test_each_rank_says_what_it_measures_and_what_it_costs(web: Web, feed: Feed) -> None:
    feed.launch()
    feed.send(*speaker(), flag("probe.part", 3, part="timing", state="on"))
    feed.health(NOW - 1_000)
    first, other = probes(web)
    assert (first["rank"], other["rank"]) == ("pp 0, tp 0", "pp 0, tp 3")
    assert first["parts"] == {"timing": "on", "accepts": "on", "output": "on"}
    assert (first["version"], first["worker"], first["clock"]) == ("0.1.0", "EAGLEWorkerV2", "device")
    assert (first["cost_share"], first["measured_seconds"]) == (0.005, 4.0)
    assert (first["time_every"], first["is_well"]) == (4, True)
    assert (other["parts"], other["version"], other["cost_share"]) == ({"timing": "on"}, None, None)
    page = web.get("/sources").text
    assert "Probe inside the engine" in page
    assert "1 in 4" in page
    assert "0.50" in page


def test_a_part_that_failed_is_named(web: Web, feed: Feed) -> None:
    feed.launch()
    was_on = flag("probe.part", 0, 0, part="accepts", state="on")
    feed.send(*speaker(accepts="failed"), was_on)
    feed.health(NOW - 1_000)
    (probe,) = probes(web)
    assert probe["parts"]["accepts"] == "failed"
    assert probe["is_well"] is False
    page = web.get("/sources").text
    assert "on 0 of 1 ranks" in page
    assert "(failed)" in page


def test_without_a_probe_there_is_nothing(web: Web, feed: Feed) -> None:
    feed.launch()
    feed.scrapes(3, running=1)
    feed.health(NOW - 1_000)
    assert probes(web) == []
    assert "Probe inside" not in web.get("/sources").text


def test_hostile_labels_are_text(web: Web, feed: Feed) -> None:
    feed.launch()
    feed.send(*speaker(accepts="<script>alert(1)</script>"))
    feed.health(NOW - 1_000)
    (probe,) = probes(web)
    assert probe["is_well"] is False
    assert "<script>alert" not in web.get("/sources").text


def held(tp: int, *ln_norms: float, sample: int = 16) -> list[Observation]:
    """Return what a rank says of the sample that all compare; one value for each slot."""
    norms = [flag("states.check_ln_norm", tp, value, slot=str(slot)) for slot, value in enumerate(ln_norms)]
    return [*norms, flag("states.check_sample", tp, sample)]


def found_in(web: Web) -> dict[str, Any]:
    """Return what is said of hidden states."""
    found: dict[str, Any] = web.api("/sources", server=SERVER)["servers"][0]["states"]
    return found


def test_healthy_states_are_said_to_be(web: Web, feed: Feed) -> None:
    feed.launch()
    feed.send(
        *speaker(),
        cost("states.rows", 700, phase="prefill"), cost("states.rows", 20, phase="verify_accepted"),
        cost("states.invariants", 0, kind="embedding"), cost("states.invariants", 70, kind="equal_id_pairs"),
        *held(0, 3.5, 4.0), *held(1, 3.501, 4.0),
    )  # fmt: skip
    feed.health(NOW - 1_000)
    assert found_in(web) == {"rows": 720, "compared_ranks": 2, "waiting": None, "findings": []}
    page = web.get("/sources").text
    assert "nothing that cannot be" in page
    assert "720" in page


def test_ranks_that_disagree_are_named(web: Web, feed: Feed) -> None:
    feed.launch()
    feed.send(*speaker(), *held(0, 3.5, 4.0), *held(1, 3.5, 4.0), *held(2, 3.5, 4.4), *held(3, 3.5, 4.0))
    feed.health(NOW - 1_000)
    [finding] = found_in(web)["findings"]
    assert (finding["kind"], finding["ranks"], finding["count"]) == ("ranks_disagree", ["pp 0, tp 2"], 4)
    assert finding["words"].startswith("slot 1: ranks hold different states of the same rows")
    assert "0.400 nats" in finding["words"]
    assert "partial sums" in web.get("/sources").text


def test_where_there_is_no_middle_all_ranks_are_named(web: Web, feed: Feed) -> None:
    feed.launch()
    feed.send(*speaker(), *held(0, 3.5), *held(1, 3.9))
    assert found_in(web)["findings"][0]["ranks"] == ["pp 0, tp 0", "pp 0, tp 1"]


def test_samples_that_differ_are_not_compared(web: Web, feed: Feed) -> None:
    feed.launch()
    feed.send(*speaker(), *held(0, 3.5), *held(1, 3.9, sample=32))
    assert found_in(web)["findings"] == []


def test_what_cannot_be_is_counted_by_kind(web: Web, feed: Feed) -> None:
    feed.launch()
    kinds = {"embedding": 2, "capture_differs": 1, "nonfinite_rows": 1_234, "zero_rows": 0}
    feed.send(
        *speaker(), *(cost("states.invariants", count, kind=kind) for kind, count in kinds.items()),
        flag("states.push_waiting", 0, 3),
    )  # fmt: skip
    feed.health(NOW - 1_000)
    found = found_in(web)
    assert {each["kind"]: each["count"] for each in found["findings"]} == {
        "nonfinite_rows": 1_234, "embedding": 2, "capture_differs": 1
    }  # fmt: skip
    assert found["waiting"] == 3
    page = web.get("/sources").text
    for words in (
        "NaN or infinite values in 1,234 sampled rows",
        "different layers in 1 window;",
        "3</span> windows wait",
    ):
        assert words in page
    assert "(pp 0, tp 0)" in page.replace('<bdi title="">', "").replace("</bdi>", "")


def test_without_profiles_nothing_is_said_of_states(web: Web, feed: Feed) -> None:
    feed.launch()
    feed.send(*speaker())
    assert found_in(web) is None
    assert "Hidden states" not in web.get("/sources").text
