"""Known phases go in as counters and come out of the API: of each level of evidence, and of all together."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Engine
from tests.server.client import Web
from tests.server.seed import NOW, SERVER, T0, Feed
from tests.server.timing.simulated import Engine as Simulated
from tests.server.timing.simulated import engine, play

from specscope_server.app import create_app
from specscope_server.settings import Settings
from specscope_server.store.ingest import IngestWriter

WINDOW = {"server": SERVER, "from_": T0, "to": T0 + 300_000}
"""Over before the tests' present, so that nothing in it is out of date."""


@pytest.fixture
def feed(store_engine: Engine) -> Feed:
    """A collector of gpu1:30000, on each store."""
    return Feed(IngestWriter(store_engine, lambda: NOW))


@pytest.fixture
def web(store_engine: Engine) -> Web:
    """The application at 13:00, on each store."""
    return Web(create_app(Settings(), engine=store_engine, clock=lambda: NOW))


def summary(web: Web, **parameters: Any) -> Any:
    """Return where the time went."""
    return web.api("/timing/summary", **{**WINDOW, **parameters})


def row(document: Any, phase: str, inside: bool = True) -> Any:
    """Return one phase."""
    return next(
        each for each in document["phases"] if each["phase"] == phase and each["is_in_cycle"] is inside
    )


def level_of(document: Any, name: str) -> Any:
    """Return one level of evidence."""
    return next(each for each in document["levels"] if each["level"] == name)


def failed(document: Any) -> list[str]:
    """Return the names of the checks that fail."""
    return [check["name"] for check in document["checks"] if check["passed"] is False]


def assert_adds_up(document: Any, of: Simulated) -> None:
    """Σ parts = wall; and the parts of the cycle are T_c."""
    inside = [each for each in document["phases"] if each["is_in_cycle"]]
    assert sum(each["ms_per_cycle"] for each in inside) == pytest.approx(document["cycle_time"]["value"])
    seconds = sum(each["seconds"] for each in document["phases"])
    assert seconds == pytest.approx(document["wall_seconds"], rel=0.01)
    assert sum(each["share_of_wall"] for each in document["phases"]) == pytest.approx(1, rel=0.01)
    assert document["cycles"] == pytest.approx(of.cycles, rel=0.01)


def test_the_probes_phases_are_recovered_exactly(feed: Feed, web: Web) -> None:
    feed.launch()
    simulated = engine()
    play(feed, simulated)
    found = summary(web)
    assert found["evidence"] == "probe"
    for phase in ("draft", "verify_prepare", "verify", "sampling", "draft_extend"):
        wanted = simulated.spent[phase] / simulated.cycles
        assert row(found, phase)["ms_per_cycle"] == pytest.approx(wanted, rel=1e-6)
    assert row(found, "unattributed")["ms_per_cycle"] == pytest.approx(
        simulated.spent["other"] / simulated.cycles, rel=1e-6
    )
    assert row(found, "host")["ms_per_cycle"] == pytest.approx(
        simulated.spent["gap"] / simulated.cycles, rel=1e-6
    )
    assert row(found, "prefill", inside=False)["seconds"] == pytest.approx(simulated.spent["prefill"] / 1e3)
    assert row(found, "idle", inside=False)["seconds"] == pytest.approx(
        simulated.spent["idle"] / 1e3, rel=0.02
    )
    assert_adds_up(found, simulated)
    assert failed(found) == []


def test_the_device_timer_leaves_what_it_does_not_see_unattributed(feed: Feed, web: Web) -> None:
    feed.launch()
    simulated = engine("timer gauges")
    play(feed, simulated)
    found = summary(web)
    assert found["evidence"] == "device_timer"
    for phase in ("draft", "verify", "draft_extend"):
        wanted = simulated.spent[phase] / simulated.cycles
        assert row(found, phase)["ms_per_cycle"] == pytest.approx(wanted, rel=1e-6)
    unseen = sum(simulated.spent[name] for name in ("verify_prepare", "sampling", "other"))
    assert row(found, "unattributed")["seconds"] == pytest.approx(unseen / 1e3, rel=0.05)
    assert row(found, "host")["seconds"] == pytest.approx(simulated.spent["gap"] / 1e3, rel=1e-6)
    assert_adds_up(found, simulated)
    assert failed(found) == []


def test_rates_alone_give_the_length_of_a_cycle_and_nothing_else(feed: Feed, web: Web) -> None:
    feed.launch()
    simulated = engine("gauges", prefill_every=10_000, idle_share=0.0)
    play(feed, simulated)
    found = summary(web)
    assert found["evidence"] == "gauges"
    assert found["cycle_time"]["value"] == pytest.approx(simulated.busy_ms / simulated.cycles, rel=0.01)
    assert [each["phase"] for each in found["phases"]] == ["unattributed", "idle"]
    assert found["verify_time"]["value"] is None
    assert "cannot be seen" in found["verdict"]["headline"]
    assert any("DEVICE_TIMER" in spot["remedy"] for spot in found["blind_spots"])


def test_three_levels_agree_on_the_same_engine(feed: Feed, web: Web) -> None:
    feed.launch()
    simulated = engine()
    play(feed, simulated)
    found = summary(web)
    wall = simulated.busy_ms / simulated.cycles
    for name in ("probe", "device_timer", "gauges"):
        assert level_of(found, name)["active_ms"] == pytest.approx(wall, rel=0.01), name
    agreed = [check for check in found["checks"] if "agree" in check["name"]]
    assert len(agreed) == 4
    assert all(check["passed"] for check in agreed)


def test_levels_that_disagree_are_named_with_both_numbers(feed: Feed, web: Web) -> None:
    feed.launch()
    play(feed, engine("timer gauges"), engine("probe", parts={
        "draft": 1.4, "verify_prepare": 0.2, "verify": 36.0, "sampling": 0.5, "draft_extend": 0.6,
        "other": 0.3,
    }))  # fmt: skip
    found = summary(web)
    check = next(c for c in found["checks"] if c["name"].endswith("agree on verify"))
    assert check["passed"] is False
    assert "36.0" in check["message"]
    assert "30.0" in check["message"]
    assert found["evidence"] == "probe"
    assert found["verdict"]["state"] == "warn"


def test_a_first_cycle_of_seconds_poisons_no_mean(feed: Feed, web: Web) -> None:
    feed.launch()
    simulated = engine("probe gauges")
    simulated._probe("time.warm_up", 8.0, kind="speculative", clock="device")
    simulated._probe("time.warm_up_cycles", 2, kind="speculative", clock="device")
    simulated._probe("probe.wall_time", 8.0)
    simulated._probe("probe.cycles_seen", 2)
    simulated._spend(8_000)
    play(feed, simulated)
    found = summary(web)
    assert row(found, "draft")["ms_per_cycle"] == pytest.approx(simulated.spent["draft"] / simulated.cycles)
    assert row(found, "warm_up", inside=False)["seconds"] == pytest.approx(8.0)
    assert row(found, "warm_up", inside=False)["ms_per_cycle"] is None
    assert found["warm_up_cycles"] == 2


def test_on_the_hosts_clock_an_overlapping_scheduler_has_no_parts(feed: Feed, web: Web) -> None:
    feed.launch()
    simulated = engine("probe gauges", clock="host", overlap="on")
    play(feed, simulated)
    found = summary(web)
    assert found["evidence"] == "probe"
    assert found["cycle_time"]["value"] == pytest.approx(
        (simulated.busy_ms - simulated.spent["prefill"]) / simulated.cycles, rel=0.01
    )
    assert found["verify_time"]["value"] is None
    assert "launched" in found["evidence_note"]


def test_the_device_timer_outranks_a_probe_that_sees_only_launching(feed: Feed, web: Web) -> None:
    feed.launch()
    play(feed, engine(clock="host", overlap="on"))
    assert summary(web)["evidence"] == "device_timer"


def test_every_kth_cycle_timed_is_a_sample_scaled_up(feed: Feed, web: Web) -> None:
    feed.launch()
    simulated = engine("probe gauges", prefill_every=41)
    full = simulated._probe

    def sampled(metric: str, value: float, **labels: str) -> None:
        if not metric.startswith("time.") or simulated.cycles % 4 == 0:
            full(metric, value, **labels)

    simulated._probe = sampled  # type: ignore[method-assign]
    play(feed, simulated)
    found = summary(web)
    assert "scaled" in found["evidence_note"]
    assert row(found, "verify")["ms_per_cycle"] == pytest.approx(30, rel=0.01)
    shares = sum(each["share_of_wall"] for each in found["phases"])
    assert shares == pytest.approx(1, rel=0.01)
    assert row(found, "verify")["seconds"] == pytest.approx(simulated.spent["verify"] / 1e3, rel=0.05)


def test_times_per_token_are_seconds_over_counted_tokens(feed: Feed, web: Web) -> None:
    feed.launch()
    simulated = engine()
    play(feed, simulated)
    found = summary(web)
    verify = row(found, "verify")
    assert verify["ms_per_emitted_token"] == pytest.approx(
        simulated.spent["verify"] / simulated.tokens, rel=1e-6
    )
    accepted = simulated.tokens * (1 - 1 / 2.5)
    assert verify["ms_per_accepted_token"] == pytest.approx(simulated.spent["verify"] / accepted, rel=0.01)
    assert found["requests_per_cycle"]["value"] == pytest.approx(3, rel=0.01)
    assert found["tokens_per_second"]["value"] == pytest.approx(
        1e3 * simulated.tokens / simulated.busy_ms, rel=0.01
    )
