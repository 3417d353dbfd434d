"""Traces through the API: uploaded, listed, shown, compared, drawn; and what is refused."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import plotly.graph_objects as go
import pytest
from sqlalchemy import Engine
from tests.server.client import Web
from tests.server.seed import NOW, SERVER, T0, Feed
from tests.server.traces.conftest import RECORDED, send, tar_of
from tests.support.traces import BASE_NS, Plan, write

from specscope_server.app import create_app
from specscope_server.settings import Settings

WINDOW = {"server": SERVER, "from_": T0, "to": NOW}
RECORDED_MS = 1_795_990_000_000
"""An hour after the recorded trace."""
assert BASE_NS // 1_000_000 == T0


def upload(web: Web, folder: Path, plan: Plan, **query: str) -> int:
    """Simulate a capture and upload it as one archive; return its id."""
    folder.mkdir(exist_ok=True)
    paths, _ = write(plan, folder)
    answer = send(web, tar_of(paths), "application/x-tar", **query)
    assert answer.status_code == 200, answer.text
    return int(answer.json()["id"])


def test_an_uploaded_capture_is_shown_rank_by_rank(feed: Feed, web: Web, tmp_path: Path) -> None:
    feed.launch("a1", T0 - 60_000)
    number = upload(web, tmp_path, Plan(ranks=4, straggler=2), name="before", note="ring")
    [item] = web.api("/traces", server=SERVER)["traces"]
    assert (item["id"], item["name"], item["note"], item["cycles"]) == (number, "before", "ring", 20)
    assert (item["ranks"], item["basis"]) == (4, "launches")
    assert item["launch_id"] is not None
    found = web.api(f"/traces/{number}")
    assert [rank["rank"] for rank in found["rank_times"]] == ["TP0", "TP1", "TP2", "TP3"]
    verify = next(each for each in found["rank_times"][0]["phases"] if each["phase"] == "verify")
    assert sum(each["mean_ms"] for each in verify["classes"]) == pytest.approx(verify["mean_ms"], rel=1e-4)
    assert verify["exposed_communication_ms"] == pytest.approx(6 * 0.042, rel=0.01)
    assert verify["overlapped_communication_ms"] == pytest.approx(6 * 0.025, rel=0.01)
    assert verify["batch_sizes"] == {"4": 20}
    collectives = {each["phase"]: each for each in found["collectives"]}
    assert collectives["verify"]["straggler"] == "TP2"
    assert collectives["draft"]["straggler"] is None


def test_the_same_files_are_stored_once(web: Web, tmp_path: Path) -> None:
    paths, _ = write(Plan(ranks=1, cycles=5), tmp_path)
    first, second = (send(web, paths[0].read_bytes()) for _ in range(2))
    assert (first.json()["is_new"], second.json()["is_new"]) == (True, False)
    assert first.json()["id"] == second.json()["id"]


def test_lists_have_pages(web: Web, tmp_path: Path) -> None:
    for seed in range(3):
        upload(web, tmp_path / str(seed), Plan(ranks=1, cycles=5, seed=seed))
    first = web.api("/traces", server=SERVER, limit=2)
    rest = web.api("/traces", server=SERVER, limit=2, cursor=first["next_cursor"])
    ids = [item["id"] for item in first["traces"] + rest["traces"]]
    assert len(ids) == len(set(ids)) == 3
    assert rest["next_cursor"] is None


def test_two_captures_are_compared_class_by_class(web: Web, tmp_path: Path) -> None:
    a = upload(web, tmp_path / "a", Plan(ranks=2, transfer_us=30, cycles=40), name="ring")
    b = upload(web, tmp_path / "b", Plan(ranks=2, transfer_us=10, cycles=40, seed=2), name="nvls")
    found = web.api("/traces/compare", a=a, b=b)
    assert (found["a"]["name"], found["b"]["name"]) == ("ring", "nvls")
    changes = {(item["phase"], item["kernel_class"]): item for item in found["changes"]}
    reduced = changes["verify", "all_reduce"]
    assert reduced["change_ms"] == pytest.approx(6 * -0.020, rel=0.01)
    assert reduced["low_ms"] <= reduced["change_ms"] <= reduced["high_ms"] < 0
    assert reduced["is_shown"]
    assert not changes["verify", "attention"]["is_shown"]
    assert not changes["verify", "gemm"]["is_shown"]  # other products, the same on average
    assert found["verdict"].startswith("The cycle takes ")
    assert "less" in found["verdict"]
    assert "all-reduce in verify" in found["verdict"]
    back = web.api("/traces/compare", a=b, b=a)
    assert " more " in back["verdict"]


def test_what_makes_a_comparison_unfair_is_said(web: Web, tmp_path: Path) -> None:
    a = upload(web, tmp_path / "a", Plan(ranks=2, verify_name="step[VERIFY bs=1]"))
    b = upload(web, tmp_path / "b", Plan(ranks=1, verify_name="step[VERIFY bs=16]"))
    c = upload(web, tmp_path / "c", Plan(ranks=1, named=False, cycles=12))
    notes = " ".join(web.api("/traces/compare", a=a, b=b)["notes"])
    assert "2 ranks and b has 1" in notes
    assert "Mean batch sizes differ: 1 in a, 16 in b" in notes
    assert "found differently (launches; structure)" in " ".join(
        web.api("/traces/compare", a=b, b=c)["notes"]
    )
    answer = web.get(f"/api/v1/traces/compare?a={a}&b={a}")
    assert answer.status_code == 422
    assert "name two" in answer.json()["detail"]


def test_a_trace_of_a_cpu_and_one_that_is_cut_off(sqlite_engine: Engine) -> None:
    web = Web(create_app(Settings(), engine=sqlite_engine, clock=lambda: RECORDED_MS))
    whole = RECORDED.read_bytes()
    found = send(web, whole, file=RECORDED.name).json()["trace"]
    assert found["basis"] == "cpu_ranges"
    assert found["notes"][0].startswith("No GPU activity")
    assert found["rank_times"][0]["gpu_idle_share"] is None
    half = send(web, whole[: len(whole) // 2], file=RECORDED.name)
    assert half.status_code == 200
    assert "cut off" in " ".join(half.json()["trace"]["notes"])
    assert 0 < half.json()["trace"]["cycles"] < 14


@pytest.mark.parametrize(
    ("content", "kind", "status", "words"),
    [
        (b"<html>", "application/json", 422, "name a Kineto or Chrome trace"),
        (gzip.compress(b'{"traceEvents": []}', mtime=0), "application/gzip", 422, "holds no events"),
        (b"x=1", "application/x-www-form-urlencoded", 415, "is not read here"),
        (b"{}", "text/plain", 415, "is not read here"),
        (tar_of([Path(__file__)]), "application/x-tar", 422, "no file was named"),
        (b"x" * 3_000, "application/json", 413, "over max_trace_bytes=2000"),
    ],
)
def test_uploads_that_are_refused(
    sqlite_engine: Engine, content: bytes, kind: str, status: int, words: str
) -> None:
    small = Settings(max_trace_bytes=2_000) if status == 413 else Settings()
    web = Web(create_app(small, engine=sqlite_engine, clock=lambda: NOW))
    answer = send(web, content, kind)
    assert answer.status_code == status
    assert words in answer.json()["detail"]


def test_two_captures_in_one_archive_are_refused(web: Web, tmp_path: Path) -> None:
    paths, _ = write(Plan(ranks=2, cycles=3), tmp_path)
    answer = send(web, tar_of([*paths, paths[0]]), "application/x-tar")
    assert answer.status_code == 422
    assert "files of one capture" in answer.json()["detail"]


def test_unknown_traces_servers_and_choices(lone_web: Web, feed: Feed, web: Web) -> None:
    for path, status in (
        ("/traces/99", 404), ("/traces?server=nobody", 404), ("/traces/compare?a=1&b=2", 404),
        ("/traces/x", 422), ("/traces/compare?a=1", 422), ("/traces/99/files/0", 404),
    ):  # fmt: skip
        assert lone_web.get(f"/api/v1{path}").status_code == status, path
    feed.launch("a1", T0)
    base = f"/api/v1/figures/trace-phases?server={SERVER}&from={T0}&to={NOW}"
    assert web.get(f"{base}&by=trace:x").status_code == 422
    assert web.get(f"{base}&by=trace:99").status_code == 404
    assert web.api("/figures/trace-phases", **WINDOW)["data"] == []


def test_originals_are_kept_within_bounds_where_asked_for(sqlite_engine: Engine, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    content = RECORDED.read_bytes()
    settings = Settings(trace_folder=kept, trace_folder_max_bytes=len(content) + 1_000)
    web = Web(create_app(settings, engine=sqlite_engine, clock=lambda: RECORDED_MS))
    first = send(web, content, file="../../../etc/1-TP-0.trace.json.gz").json()
    assert all(path.resolve().is_relative_to(kept) for path in kept.rglob("*"))
    [file] = first["trace"]["files"]
    answer = web.get(file["download"])
    assert answer.content == content
    assert answer.headers["content-type"] == "application/octet-stream"
    assert "attachment" in answer.headers["content-disposition"]
    paths, _ = write(Plan(ranks=3, cycles=30), tmp_path)
    second = send(web, tar_of(paths), "application/x-tar").json()
    assert [web.get(each["download"]).status_code for each in second["trace"]["files"]] == [200] * 3
    assert web.get(file["download"]).status_code == 404  # the older one made room
    assert web.api(f"/traces/{first['id']}")["files"][0]["download"] is None


def test_rows_for_spreadsheets(web: Web, tmp_path: Path) -> None:
    number = upload(web, tmp_path, Plan(ranks=2, cycles=8))
    rows = web.get(f"/api/v1/traces/{number}?format=csv").text.splitlines()
    assert rows[0] == "rank,phase,count,kernel_class,mean_ms,share,busy_mean_ms"
    assert any(row.startswith("TP1,verify,8,all_reduce,") for row in rows)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_figures_are_what_plotly_takes(web: Web, tmp_path: Path, theme: str) -> None:
    a = upload(web, tmp_path / "a", Plan(ranks=2, transfer_us=30))
    b = upload(web, tmp_path / "b", Plan(ranks=2, fused=True))
    for name in ("trace-phases", "trace-changes"):
        drawn = web.api(f"/figures/{name}", by=f"trace:{a},{b}", theme=theme, **WINDOW)
        go.Figure(data=drawn["data"], layout=drawn["layout"])
        assert drawn["data"]
    one = web.api("/figures/trace-phases", by=f"trace:{a}", **WINDOW)
    assert {"all-reduce", "matrix products, experts", "gaps"} <= {trace["name"] for trace in one["data"]}
    alone = upload(web, tmp_path / "c", Plan(ranks=1))
    go.Figure(web.api("/figures/trace-phases", by=f"trace:{alone}", **WINDOW))


def test_the_page_about_time_shows_captures(feed: Feed, web: Web, tmp_path: Path) -> None:
    feed.launch("a1", T0)
    empty = web.get(f"/time?server={SERVER}")
    assert "specscope trace capture" in empty.text
    a = upload(web, tmp_path / "a", Plan(ranks=2, transfer_us=30), name="<script>alert(1)</script>")
    b = upload(web, tmp_path / "b", Plan(ranks=2, straggler=1))
    page = web.get(f"/time?server={SERVER}&by=trace:{a},{b}")
    assert page.status_code == 200
    assert "<script>alert" not in page.text
    assert 'name="trace-phases"' in page.text
    assert 'name="trace-changes"' in page.text
    assert 'which is mostly <strong><bdi title="">TP1</bdi></strong>' in page.text
    assert "there is no trace 99" in web.get(f"/time?server={SERVER}&by=trace:99").text


def test_hostile_names_stay_text(web: Web) -> None:
    name = "</script><b>x</b>" + "k" * 5_000
    events = [
        {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 1, "ts": n, "dur": 1.0} for n in range(9)
    ]
    found = send(web, json.dumps(events).encode(), "application/json", name="a&b").json()["trace"]
    assert len(found["rank_times"][0]["other"][0]["name"]) <= 200
    assert found["basis"] == "none"
    assert "<b>x</b>" not in web.get(f"/time?server={SERVER}").text
    nul = send(web, json.dumps([{**events[0], "name": "a\0b"}]).encode(), "application/json")
    assert nul.status_code in (200, 422)
