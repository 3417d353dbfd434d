"""The demo's hidden states: the statistics find the wrong capture and the right one, and it costs little."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from sqlalchemy import Engine
from tests.server.client import Web
from tests.server.seed import Feed

from specscope_collectors.references.document import packed
from specscope_collectors.sources.probe.reading import read_state_file
from specscope_collectors.sources.probe.records import last_part, profile_parts
from specscope_server.app import create_app
from specscope_server.demo.player import Player
from specscope_server.demo.state_spool import StateSpool, captured_of
from specscope_server.demo.states import TRAINED, references
from specscope_server.demo.story import Story
from specscope_server.demo.versions import VERSIONS
from specscope_server.settings import Settings
from specscope_server.store.ingest import IngestWriter

STARTED_MS = 1_772_366_400_000
CPU_SECONDS = 2.0
NAMES = ("wrong", "right")


def played(folder: Path, version: str, launch: int) -> tuple[Player, list[Path]]:
    """Play one launch; return the files that its probe wrote."""
    player = Player(VERSIONS[version], Story(30), 7, "Kimi-K2.5", STARTED_MS)
    spool = StateSpool(folder)
    begun = player.story.launches()[launch]
    files = []
    for second in range(34):
        player.advance(round(STARTED_MS + begun.up_ms + 1_000 * second))
        path = spool.step(player)
        if path is not None:
            files.append(path)
    return player, files


@pytest.mark.parametrize("launch", [0, 1], ids=NAMES)
@pytest.mark.parametrize("version", ["0.5.8", "0.5.23"])
def test_the_verdict_comes_from_the_real_statistics(
    sqlite_engine: Engine, tmp_path: Path, version: str, launch: int
) -> None:
    player, paths = played(tmp_path, version, launch)
    now = round(STARTED_MS + player.elapsed_ms) + 1_000
    feed = Feed(IngestWriter(sqlite_engine, lambda: now), "story (demo)")
    feed.launch(
        "k", now - 60_000, model="demo/Kimi-K2.5", engine_version=version, is_demo=True,
        config={
            "speculative_demo_model_config": {
                "architectures": ["KimiK25ForConditionalGeneration"], "num_hidden_layers": 61,
            }
        },
    )  # fmt: skip
    assert len(paths) >= 3
    for path in paths:
        file = read_state_file(path)
        feed.send(*(record for part in profile_parts(file) for record in part), *last_part(file, None))
    web = Web(create_app(Settings(), engine=sqlite_engine, clock=lambda: now))
    for reference in references(now):
        answer = web.request(
            "POST",
            "/api/v1/references",
            content=packed(reference),
            headers={"content-type": "application/gzip"},
        )
        assert answer.status_code == 200, answer.text
    found = web.api("/drift", server="story (demo)", from_="now-1h", to="now")
    assert found["is_demo"]
    assert found["resolution"] == "boundaries"
    measured = [slot["measured_boundary"] for slot in found["slots"]]
    if launch == 0:
        assert found["verdict"]["state"] == "bad"
        assert measured == [0, 3, 31]
        assert found["slots"][0]["fault"] == "embedding"
        assert found["assignment"]["speaks"]
    else:
        assert found["verdict"]["state"] == "ok"
        assert measured == list(TRAINED)
    layer_ids = web.api("/drift/boundaries", server="story (demo)")
    assert layer_ids["verdict"]["state"] == ("bad" if launch == 0 else "ok"), json.dumps(layer_ids)


def test_no_window_is_written_while_nothing_runs(tmp_path: Path) -> None:
    player = Player(VERSIONS["0.5.8"], Story(30), 7, "Kimi-K2.5", STARTED_MS)
    spool = StateSpool(tmp_path)
    player.advance(STARTED_MS + 62_000)  # the idle phase
    assert player.current is not None
    assert spool.step(player) is None


def test_references_are_the_same_all_day_and_cost_little() -> None:
    began = time.process_time()
    first = references(STARTED_MS)
    assert time.process_time() - began < CPU_SECONDS
    assert [packed(each) for each in references(STARTED_MS + 3_600_000)] == [packed(each) for each in first]
    assert [each.kind for each in first] == ["slots", "boundaries"]
    assert all("Simulated" in each.notes[0] for each in first)


def test_the_wrong_capture_is_that_of_the_story() -> None:
    wrong, right = (captured_of(launch) for launch in Story(30).launches()[:2])
    assert (wrong, right) == ((0, 3, 31), TRAINED)
