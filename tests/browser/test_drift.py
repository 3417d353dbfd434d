"""The page about hidden states in a browser: verdict, grid, layer ids, tools, every empty state."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from sqlalchemy import Engine, update
from tests.browser.conftest import HOSTILE, NARROW, WIDE, Visitor, listening
from tests.server.seed import Feed
from tests.support.synthetic_states import IDS, MODEL, Target, all_boundaries, profile_of, reference_of

from specscope_collectors.observations import Event
from specscope_collectors.references.document import SampleRow, packed
from specscope_server.app import create_app
from specscope_server.kit.clock import system_clock
from specscope_server.models import Server
from specscope_server.references.storing import store
from specscope_server.settings import Settings
from specscope_server.store.ingest import IngestWriter

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]
MINUTE_MS = 60_000
TRAINED, WRONG = (3, 6, 9), (0, 3, 6)
TARGET = Target()


def configured(ids: list[int], **more: Any) -> dict[str, Any]:
    return {
        "specscope_model": {"architectures": ["DeepseekV3ForCausalLM"], "num_hidden_layers": 12},
        "specscope_draft": {"eagle_aux_hidden_state_layer_ids": ids, "source": "/models/draft/config.json"},
        **more,
    }


def launch(feed: Feed, key: str, time_ms: int, ids: list[int]) -> None:
    feed.launch(key, time_ms, engine_version="0.5.8", model=MODEL, config=configured(ids))


def windows(feed: Feed, boundaries: tuple[int, ...], start_ms: int, count: int = 3) -> None:
    """Send windows of a minute of every slot, in two phases, and a few raw rows."""
    for index in range(count):
        end_ms = start_ms + (index + 1) * MINUTE_MS
        for phase in ("prefill", "verify_accepted"):
            text = TARGET.text(256, 32, end_ms % 1_000_003 + len(phase))
            feed.send(
                *(
                    profile_of(
                        TARGET.states(text, boundary), text, IDS, slot=slot, boundary=boundary, phase=phase,
                        time_ms=end_ms, span_ms=MINUTE_MS,
                    )
                    for slot, boundary in enumerate(boundaries)
                )
            )  # fmt: skip
        capture = {
            "layers": list(boundaries), "boundaries": list(boundaries), "rule": "r", "hidden_size": 96,
            "width": 288, "draft_layers": None, "is_calibration": False,
        }  # fmt: skip
        rows = [
            {"phase": "prefill", "slot": slot, "position": 7, "norm": 31.3, "first_values": [0.5, -1.0, None]}
            for slot in range(3)
        ]
        detail = {"capture": capture, "model_class": "DeepseekV3ForCausalLM", "engine_version": "0.5.8"}
        feed.send(Event(kind="state_capture", time_ms=end_ms, message="m", detail=detail))
        feed.send(Event(kind="state_rows", time_ms=end_ms, message="m", detail={"rows": rows}))


def story(engine: Engine) -> None:
    """The wrong capture, then the fix, then the wrong one again: what is shown is the newest."""
    now = system_clock()
    feed = Feed(IngestWriter(engine))
    launch(feed, "a1", now - 20 * MINUTE_MS, [2, 5, 8])
    windows(feed, TRAINED, now - 19 * MINUTE_MS)
    launch(feed, "b2", now - 8 * MINUTE_MS, [-1, 2, 5])
    windows(feed, WRONG, now - 7 * MINUTE_MS)
    with engine.begin() as connection:
        connection.execute(update(Server).values(created_ms=now - 1_500_000))


def references(engine: Engine) -> None:
    """What the draft was trained on, and all boundaries of the target."""
    store(engine, reference_of(TARGET, TRAINED, name=f"synth {HOSTILE}"[:200]), system_clock())
    store(engine, all_boundaries(TARGET), system_clock())


@pytest.fixture
def bare_site(sqlite_engine: Engine) -> Iterator[str]:
    """A server with the story, and nothing to compare with."""
    story(sqlite_engine)
    with listening(create_app(Settings(), engine=sqlite_engine)) as url:
        yield url


@pytest.fixture
def drift_site(sqlite_engine: Engine) -> Iterator[str]:
    """The same with both references."""
    story(sqlite_engine)
    references(sqlite_engine)
    with listening(create_app(Settings(), engine=sqlite_engine)) as url:
        yield url


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [WIDE, NARROW], ids=["wide", "narrow"])
def test_the_fault_is_named_first(
    drift_site: str, visitor: Visitor, viewport: dict[str, int], theme: str
) -> None:
    visit = visitor(drift_site, viewport, color_scheme=theme).open("/drift")
    visit.wait_for_charts()
    page = visit.page
    headline = page.locator(".verdict h2").first.inner_text()
    assert "0" in headline or "embedding" in headline
    assert page.locator(".verdict.state-bad").count() >= 1
    assert page.locator(".drift-grid tbody tr").count() == 3
    assert page.locator(".drift-grid .state-bad").count() >= 3
    table = page.locator("#layer-ids").inner_text()
    assert "[-1, 2, 5]" in table
    assert "[0, 3, 6]" in table
    assert "slot 0 is the embedding" in table
    assert page.locator("#inspector tbody tr").count() >= 9
    assert page.locator("chart-panel").count() >= 5
    assert visit.evaluate("() => document.documentElement.scrollWidth <= window.innerWidth")
    assert visit.evaluate("() => window.ran") is None
    assert visit.problems == []
    visit.shoot(f"drift-{theme}-{viewport['width']}")


def test_before_the_fault_all_was_well(drift_site: str, visitor: Visitor) -> None:
    visit = visitor(drift_site).open("/drift?launch=1")
    assert visit.page.locator(".verdict.state-ok").count() >= 1
    assert visit.page.locator(".drift-grid .state-ok").count() >= 6
    assert "Layer ids agree" in visit.page.locator(".drift-line").inner_text()


def test_a_question_and_totals_are_answered_and_stay(drift_site: str, visitor: Visitor) -> None:
    visit = visitor(drift_site).open("/drift")
    page = visit.page
    page.fill("#what-if [name=ids]", "2,5,8")
    page.fill("#what-if [name=engine_version]", "0.5.23")
    page.click("#what-if button")
    page.wait_for_selector("html[data-ready]")
    assert "[2, 5, 8]" in page.locator("#layer-ids tr", has_text="What if").inner_text()
    for name, value in (("total_a", "76.7"), ("tokens_a", "6"), ("total_b", "3334"), ("tokens_b", "21")):
        page.fill(f"#totals [name={name}]", value)
    page.click("#totals button")
    page.wait_for_selector("html[data-ready]")
    assert "one single row would explain all of it" in page.locator("#totals").inner_text()
    assert "ids=2%2C5%2C8" in page.url
    page.goto(f"{page.url.partition('#')[0]}&layers=x")
    assert "is no number of decoder layers" in page.locator("#what-if").inner_text()
    assert visit.problems == []


def test_a_reference_is_uploaded_and_the_page_compares_with_it(bare_site: str, visitor: Visitor) -> None:
    visit = visitor(bare_site).open("/drift")
    page = visit.page
    assert "There is no reference to compare with" in page.locator("#content").inner_text()
    visit.shoot("drift-without-reference")
    now = system_clock()
    built = reference_of(TARGET, TRAINED, name="uploaded", made_ms=now)
    recent = tuple(msgspec.structs.replace(each, time_ms=now) for each in built.profiles)
    content = packed(msgspec.structs.replace(built, profiles=recent))
    file = {"name": "x.reference.json.gz", "mimeType": "application/gzip", "buffer": content}
    page.set_input_files("#references input[type=file]", file)  # type: ignore[arg-type]
    page.click("#references form[data-upload] button")
    page.wait_for_selector("#references table")
    assert "uploaded" in page.locator("#references table").inner_text()
    page.wait_for_selector("text=An off-by-one cannot be named yet")
    page.set_input_files(
        "#references input[type=file]", {"name": "x", "mimeType": "text/plain", "buffer": b"no reference"}
    )
    page.click("#references form[data-upload] button")
    page.wait_for_selector("#references .answer.state-bad")
    assert "is refused" in page.locator("#references .answer").inner_text()


def test_without_a_probe_layer_ids_are_compared(site: str, visitor: Visitor) -> None:
    visit = visitor(site).open("/drift")
    text = visit.page.locator("#content").inner_text()
    assert "No hidden states were profiled in this range" in text
    assert "SPECSCOPE_PROBE=1" in text
    assert visit.page.locator("#layer-ids tbody tr").count() >= 1
    assert visit.problems == []
    visit.shoot("drift-without-probe")


def test_the_reference_that_is_compared_with_is_chosen_and_stays(
    drift_site: str, visitor: Visitor, sqlite_engine: Engine
) -> None:
    samples = tuple(
        SampleRow(
            request=0, slot=slot, boundary=None, position=9, token_id=198, row_class="other", norm=31.5,
            first_values=(0.5, -1.0, 0.25, 0.1, 0.0),
        )
        for slot in range(3)
    )  # fmt: skip
    store(sqlite_engine, reference_of(TARGET, WRONG, name="as served", samples=samples), 1)
    visit = visitor(drift_site).open("/drift")
    page = visit.page
    page.select_option("#references select[name=reference]", label="as served v1")
    page.click("#references form[method=get] button")
    page.wait_for_selector("html[data-ready]")
    visit.wait_for_charts()
    assert "reference=3" in page.url
    assert page.locator(".verdict.state-ok").count() >= 1
    assert "against as served v1" in page.locator("#slots").inner_text()
    assert page.locator("#references .provenance").count() == 2
    assert "as served" in page.locator("#layer-ids").inner_text()
    assert page.locator("#references select[name=reference]").input_value() == "3"
    page.locator("#inspector summary").click()
    sides = page.locator("#inspector details tbody tr").all_inner_texts()
    assert len(sides) >= 6
    assert sum("training" in each and "198" in each for each in sides) == 3
    figures = [each for each in visit.requests if "/api/v1/figures/" in each]
    assert figures
    assert all("reference=3" in each for each in figures[-4:])
    assert visit.evaluate("() => document.documentElement.scrollWidth <= window.innerWidth")
    assert visit.problems == []
    visit.shoot("drift-chosen-reference")


def test_with_nothing_watched(empty_site: str, visitor: Visitor) -> None:
    visit = visitor(empty_site, NARROW).open("/drift")
    assert "No server is watched yet" in visit.page.locator("#content").inner_text()
    assert visit.problems == []
