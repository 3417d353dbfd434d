"""The page about hidden states as the server renders it: what it says where something is missing."""

from __future__ import annotations

import re
from html import unescape

import pytest
from sqlalchemy import Engine
from tests.server.client import Web
from tests.server.seed import NOW, SERVER, T0, Feed
from tests.support.synthetic_states import IDS, MODEL, Target, profile_of, reference_of

from specscope_collectors.references.document import SampleRow
from specscope_server.app import create_app
from specscope_server.drift.examples import DRIFT
from specscope_server.drift.schemas import Drift
from specscope_server.pages.drift_views import grid_of
from specscope_server.references.storing import store
from specscope_server.settings import Settings
from specscope_server.store.ingest import IngestWriter

DAY_MS = 86_400_000
TARGET = Target()


@pytest.fixture
def feed(sqlite_engine: Engine) -> Feed:
    """A collector of gpu1:30000."""
    return Feed(IngestWriter(sqlite_engine, lambda: NOW))


@pytest.fixture
def web(sqlite_engine: Engine) -> Web:
    """The application at 13:00."""
    return Web(create_app(Settings(), engine=sqlite_engine, clock=lambda: NOW))


def page(web: Web, **query: str) -> str:
    answer = web.get("/drift", params=query)
    assert answer.status_code == 200, answer.text
    return unescape(answer.text)


def plain(text: str) -> str:
    """Return what is read of a page."""
    return re.sub("<[^>]*>", "", text)


def window(feed: Feed, end_ms: int, rows: int = 256) -> None:
    text = TARGET.text(rows, min(rows, 32), 5)
    feed.send(
        *(
            profile_of(
                TARGET.states(text, place), text, IDS, slot=slot, boundary=place, time_ms=end_ms,
                span_ms=60_000,
            )
            for slot, place in enumerate((2, 6, 9))
        )
    )  # fmt: skip


def test_without_a_probe_it_says_how_to_start_it(web: Web, feed: Feed) -> None:
    feed.launch()
    text = page(web)
    assert "No hidden states were profiled in this range" in text
    assert f'server = "{SERVER}"' in text
    assert "specscope reference build" in text
    assert "None is stored yet." in text


def test_profiles_of_the_day_before_are_a_click_away(web: Web, feed: Feed) -> None:
    feed.launch(time_ms=T0 - DAY_MS, model=MODEL)
    window(feed, T0 - DAY_MS + 60_000)
    text = page(web)
    assert "The newest profile of this server ends at" in text
    assert "SPECSCOPE_PROBE=1 SPECSCOPE_SPOOL=/var/spool/specscope python" not in text
    found = re.search(r'href="(/drift\?[^"]*)">show from that day on', text)
    assert found is not None
    answer = web.get(found[1])
    assert answer.status_code == 200
    assert "Slots by phase" in answer.text


def test_too_few_rows_are_not_enough(web: Web, feed: Feed, sqlite_engine: Engine) -> None:
    feed.launch(time_ms=NOW - 600_000, model=MODEL)
    window(feed, NOW - 60_000, rows=20)
    store(sqlite_engine, reference_of(TARGET, (2, 6, 9)), NOW)
    text = page(web)
    assert "not enough" in text
    assert "20 of 64 rows" in text
    assert "An off-by-one cannot be named yet" in text


def test_a_reference_of_another_model_is_named(web: Web, feed: Feed, sqlite_engine: Engine) -> None:
    feed.launch(time_ms=NOW - 600_000, model="another/model")
    window(feed, NOW - 60_000)
    store(sqlite_engine, reference_of(Target(hidden_size=32), (2, 6, 9)), NOW)
    assert "No reference fits this server" in page(web)


def test_the_reference_in_the_url_is_compared_with(web: Web, feed: Feed, sqlite_engine: Engine) -> None:
    feed.launch(time_ms=NOW - 600_000, model=MODEL)
    window(feed, NOW - 60_000)
    older, _ = store(sqlite_engine, reference_of(TARGET, (2, 6, 9), name="older"), NOW - 2)
    store(sqlite_engine, reference_of(TARGET, (3, 7, 10), name="newer"), NOW - 1)
    assert "against newer v1" in plain(page(web))
    text = page(web, reference=str(older))
    assert "against older v1" in plain(text)
    assert f'<option value="{older}" selected>older v1</option>' in text
    assert "Training: older v1, written by speculators 0.4.0, 3,000 rows of 96 requests" in re.sub(
        "<[^>]*>", "", text
    )
    figure = web.get(
        "/api/v1/figures/drift-bands", params={"server": SERVER, "from": "now-1h", "reference": older}
    )
    assert "older, version 1" in figure.text
    for number, words in (("77", "there is no reference 77"), ("-1", "is no id of a reference")):
        answer = web.get("/drift", params={"reference": number})
        assert answer.status_code in (404, 422)
        assert words in unescape(answer.text)


def test_rows_of_the_dump_stand_beside_those_of_serving(web: Web, feed: Feed, sqlite_engine: Engine) -> None:
    feed.launch(time_ms=NOW - 600_000, model=MODEL)
    window(feed, NOW - 60_000)
    sample = SampleRow(
        request=0, slot=1, position=9, token_id=198, row_class="sink", norm=31.5, first_values=(0.5, None)
    )
    store(sqlite_engine, reference_of(TARGET, (2, 6, 9), samples=(sample,)), NOW)
    text = re.sub("<[^>]*>", " ", page(web))
    assert "as they stand in the dump (1)" in text
    assert re.search(r"1\s+training\s+Prefill\s+sinks\s+9\s+198\s+31.5\s+\+0.5\s+–", text)


def test_what_cannot_be_asked_is_said_beside_the_question(web: Web, feed: Feed) -> None:
    feed.launch()
    assert "is no list of layer ids" in page(web, ids="2;3")
    assert "is not known; see the choices" in page(web, system="<b>x")
    assert "is no number of decoder layers" in page(web, layers="9999999")
    assert "is no whole number" in page(web, total_a="1", tokens_a="x", total_b="1", tokens_b="1")
    assert "is no Frobenius norm" in page(web, total_a="nan", tokens_a="1", total_b="1", tokens_b="1")


@pytest.mark.parametrize(
    ("own", "words"),
    [(True, "boundary 3 (3.73), by the window's own variances"), (False, "boundary 3 (3.73)")],
)
def test_a_likelihood_by_other_variances_is_named(own: bool, words: str) -> None:
    found = Drift.model_validate(DRIFT)
    cell = found.cells[0]
    cell.windows[-1].own_variances = own
    [row, *_] = grid_of(found)["rows"]
    texts = next(each[3] for each in row.cells if each and each[2] is cell)
    assert texts["dnll"] == words
