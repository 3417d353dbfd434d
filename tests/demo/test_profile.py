"""The demo's captures through the product: verify 95 % of the cycle, then 27 % less, by all-reduce alone."""

from __future__ import annotations

import socket
import threading

import pytest
from sqlalchemy import Engine
from tests.server.client import Web
from tests.server.seed import NOW, SERVER, T0, Feed

from specscope_server.app import create_app
from specscope_server.demo.families_probe import STRAGGLER, parts_of_rank
from specscope_server.demo.profile import CYCLES, RANKS, capture
from specscope_server.demo.profile_reports import CaptureReports, plan
from specscope_server.demo.story import Story
from specscope_server.settings import Settings
from specscope_server.store.ingest import IngestWriter


@pytest.fixture
def web(sqlite_engine: Engine) -> Web:
    """The application, which knows a demo engine."""
    Feed(IngestWriter(sqlite_engine, lambda: NOW)).launch("a1", T0, is_demo=True)
    return Web(create_app(Settings(), engine=sqlite_engine, clock=lambda: NOW))


def test_before_and_after_the_tuning(web: Web) -> None:
    ids = []
    for place, planned in enumerate(plan(Story())):
        body = capture(planned.launch.plan.model, T0 + 60_000 * (place + 1), planned.name)
        path = f"/api/v1/traces?server={SERVER}&name={planned.name.replace(' ', '+')}"
        answer = web.request("POST", path, content=body, headers={"Content-Type": "application/x-tar"})
        assert answer.status_code == 200, answer.text
        ids.append(answer.json()["id"])
    before = web.api(f"/traces/{ids[0]}")
    assert before["is_demo"] is True
    assert (before["ranks"], before["cycles"], before["name"]) == (RANKS, CYCLES, "before NCCL tuning (demo)")
    means = {phase["phase"]: phase["mean_ms"] for phase in before["rank_times"][0]["phases"]}
    assert means["verify"] / means["cycle"] == pytest.approx(0.95, abs=0.005)
    [verify] = [each for each in before["collectives"] if each["phase"] == "verify"]
    assert verify["straggler"] == f"TP{STRAGGLER}"
    compared = web.api("/traces/compare", a=ids[0], b=ids[1])
    changes = {(item["phase"], item["kernel_class"]): item for item in compared["changes"]}
    whole, reduced = changes["verify", "all"], changes["verify", "all_reduce"]
    assert whole["low_ms"] / whole["a_ms"] < -0.27 < whole["high_ms"] / whole["a_ms"]
    assert reduced["change_ms"] == pytest.approx(whole["change_ms"], rel=0.05)
    assert "most of it is all-reduce in verify" in compared["verdict"]


def test_captures_lie_in_the_launches_around_the_tuning() -> None:
    story = Story(speed=30.0)
    before, after = plan(story)
    assert [each.launch.plan.model.network_tuned for each in (before, after)] == [False, True]
    for each in (before, after):
        assert each.launch.up_ms < each.at_ms < each.launch.down_ms
        assert each.name.endswith("(demo)")


def test_nothing_is_sent_once_the_demo_has_ended() -> None:
    ended = threading.Event()
    ended.set()
    with socket.create_server(("127.0.0.1", 0)) as dashboard:
        url = f"http://127.0.0.1:{dashboard.getsockname()[1]}"
        all_are_due = T0 + plan(Story())[-1].at_ms + 1
        CaptureReports(url, SERVER, Story(), T0, lambda: round(all_are_due), ended).run()
        dashboard.setblocking(False)
        with pytest.raises(BlockingIOError):  # nobody has come to the door
            dashboard.accept()


def test_ranks_leave_verify_together_and_one_comes_late() -> None:
    parts = {"draft": 1.44, "verify_prepare": 0.1, "verify": 45.6, "sampling": 0.2}
    ranks = [parts_of_rank(parts, rank) for rank in range(RANKS)]
    assert min(range(RANKS), key=lambda rank: ranks[rank]["verify"]) == STRAGGLER
    assert all(sum(each.values()) == pytest.approx(sum(parts.values())) for each in ranks)
    assert len({each["verify"] for each in ranks}) > 2
    assert parts_of_rank({"decode": 11.0}, 3) == {"decode": 11.0}
