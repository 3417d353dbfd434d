"""Panels as pictures, by the Chromium of this machine; no alert waits for one that cannot be made."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest
from tests.server.client import Web
from tests.server.seed import NOW, SERVER, T0, Feed
from tests.support.acceptance_samples import trend

from specscope_server.acceptance.figures import acceptance_trend_figure
from specscope_server.alerts.card.figure import figure_of
from specscope_server.alerts.pictures import PanelPictures
from specscope_server.alerts.rules.schema import Category
from specscope_server.figures.png import HEIGHT, PNG, WIDTH, figure_png, find_browser
from specscope_server.kit.errors import Unavailable
from specscope_server.kit.figures_theme import LIGHT
from specscope_server.store.ingest import IngestWriter

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def chromium() -> Path:
    found = find_browser()
    if found is None:
        reason = "no Chromium in PATH for the tests: install the package chromium"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return found


@pytest.fixture
def seeded(lone_web: Web) -> Web:
    feed = Feed(IngestWriter(lone_web.app.state.specscope.engine, lambda: NOW))
    feed.launch()
    return lone_web


def test_a_panel_is_a_picture_for_rest_and_for_channels(chromium: Path, seeded: Web) -> None:
    asked = {"server": SERVER, "from": str(T0), "to": str(NOW), "format": "png"}
    answer = seeded.get("/api/v1/figures/accept-length", params=asked)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "image/png"
    assert answer.content.startswith(PNG)
    assert struct.unpack(">II", answer.content[16:24]) == (WIDTH, HEIGHT)
    figure = figure_of(Category.ACCEPTANCE, {"server": SERVER}, T0, NOW)
    assert figure is not None
    pictures = PanelPictures(seeded.app.state.specscope)
    made = pictures(figure)
    assert made is not None
    assert made.startswith(PNG)
    assert pictures(figure) is made  # the same for the next channel


def test_a_browser_that_hangs_or_fails_makes_none(tmp_path: Path) -> None:
    figure = acceptance_trend_figure(trend(), LIGHT)
    for name, script in (("hangs", "sleep 60"), ("fails", "exit 1"), ("lies", "exit 0")):
        browser = tmp_path / name
        browser.write_text(f"#!/bin/sh\n{script}\n")
        browser.chmod(0o755)
        assert figure_png(figure, "", browser, seconds=0.5) is None
    assert figure_png(figure, "", tmp_path / "nothing", seconds=0.5) is None


def test_without_a_browser_rest_says_what_to_do(seeded: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    asked = {"server": SERVER, "from": str(T0), "to": str(NOW), "format": "png"}
    answer = seeded.get("/api/v1/figures/accept-length", params=asked)
    assert answer.status_code == 503
    assert "format=html" in answer.json()["detail"]
    figure = figure_of(Category.ACCEPTANCE, {"server": SERVER}, T0, NOW)
    assert figure is not None
    with pytest.raises(Unavailable):
        PanelPictures(seeded.app.state.specscope)(figure)


def test_only_what_a_panel_shows_has_a_picture() -> None:
    assert figure_of(Category.OTHER, {"server": "a"}, 0, 1) is None
    assert figure_of(Category.SOURCES, {}, 0, 1) is None
    found = figure_of(Category.ACCEPTANCE, {"server": "a", "position": "0"}, 0, 1)
    assert found is not None
    assert found.name == "positions-survival-over-time"
