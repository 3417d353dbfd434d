"""Pages as the server renders them: every state, every empty state, and nothing from outside as markup."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from sqlalchemy import Engine
from tests.server.client import Web
from tests.server.seed import NOW, SERVER, T0, Feed

from specscope_collectors.observations import Event, HealthState, Target
from specscope_server.app import create_app
from specscope_server.pages.glossary import GROUPS
from specscope_server.settings import Settings
from specscope_server.store.ingest import IngestWriter

PAGES = ["/", "/acceptance", "/drift", "/sources", "/glossary", "/patterns", "/login"]
HTML = {"accept": "text/html"}
HOSTILE = '<img src=x onerror="alert(1)"></script>\u202e'


class Elements(HTMLParser):
    """Counts tags and collects ids, links and attributes that run code."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.addresses: list[str] = []
        self.dangerous: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note one tag."""
        values = dict(attrs)
        self.tags.append(tag)
        self.ids += [value for name, value in attrs if name == "id" and value]
        self.addresses += [value for name, value in attrs if name in ("href", "src", "action") and value]
        self.dangerous += [name for name in values if name.startswith("on") or name == "style"]


@pytest.fixture
def feed(sqlite_engine: Engine) -> Feed:
    """A collector of gpu1:30000 on SQLite alone: pages do not depend on the store."""
    return Feed(IngestWriter(sqlite_engine, lambda: NOW))


@pytest.fixture
def web(sqlite_engine: Engine) -> Web:
    """The application at 13:00."""
    return Web(create_app(Settings(), engine=sqlite_engine, clock=lambda: NOW))


def fill(feed: Feed, **launch: object) -> None:
    """Send a launch and half an hour of healthy scrapes that end now."""
    feed.launch(time_ms=NOW - 1_800_000, **launch)
    feed.scrapes(
        360, NOW - 1_800_000, tau=2.0, rate=1 / 3, depth=3, width=4, running=2, queued=1, throughput=80,
        calls=40, tokens=82, finished=2,
    )  # fmt: skip
    feed.health(NOW, http_status=200, body_bytes=90_321, series=421)


@pytest.mark.parametrize("path", PAGES)
def test_pages_work_on_an_empty_store(web: Web, path: str) -> None:
    answer = web.get(path, headers=HTML)
    assert answer.status_code == 200
    page = Elements(answer.text)
    assert page.tags.count("h1") <= 1
    assert len(page.ids) == len(set(page.ids))
    assert not page.dangerous
    assert all(address.startswith(("/", "#")) or address == "" for address in page.addresses)


@pytest.mark.parametrize("path", ["/", "/acceptance", "/sources"])
def test_without_a_server_the_page_says_what_to_do(web: Web, path: str) -> None:
    assert "specscope serve --watch http://gpu1:30000" in web.get(path).text


@pytest.mark.parametrize("path", ["/", "/acceptance", "/sources"])
def test_before_the_first_answer_the_page_says_that_it_waits(web: Web, feed: Feed, path: str) -> None:
    feed.health(NOW - 1_000, HealthState.UNREACHABLE, detail="connection refused", remedy="Start the engine.")
    text = web.get(path).text
    assert "connection refused" in text
    assert "Start the engine." in text


def test_the_overview_shows_six_numbers_each_with_its_definition(web: Web, feed: Feed) -> None:
    fill(feed)
    text = web.get("/").text
    assert re.findall(r'data-number="([a-z-]+)"', text) == [
        "accept-length", "draft-acceptance", "engine-rate", "verify-calls", "throughput", "load",
    ]  # fmt: skip
    assert text.count("<dt>Definition</dt>") >= 5
    assert "2.00" in text
    assert "33.3" in text
    assert "tokens/cycle" in text


def test_several_servers_become_cards_that_lead_to_one(web: Web, feed: Feed, sqlite_engine: Engine) -> None:
    fill(feed)
    fill(Feed(IngestWriter(sqlite_engine, lambda: NOW), "gpu2:30000"))
    text = web.get("/?from=now-6h").text
    assert text.count("server-card") == 2
    assert 'href="/?from=now-6h&amp;server=gpu2%3A30000"' in text
    assert "<chart-panel" not in text
    assert web.get("/?server=gpu2:30000").text.count("<chart-panel") == 4


def test_a_card_says_that_its_server_cannot_be_read(web: Web, feed: Feed, sqlite_engine: Engine) -> None:
    fill(feed)
    Feed(IngestWriter(sqlite_engine, lambda: NOW), "gpu2:30000").health(NOW, HealthState.UNREACHABLE)
    cards = web.get("/?from=now-6h").text.split('aria-label="')
    assert "no source can be read" in next(card for card in cards if card.startswith("gpu2"))
    assert "no source can be read" not in next(card for card in cards if card.startswith("gpu1"))


def test_links_keep_what_was_chosen(web: Web, feed: Feed) -> None:
    fill(feed)
    text = web.get("/?from=now-6h&theme=dark&refresh=30").text
    assert 'href="/acceptance?from=now-6h&amp;refresh=30&amp;theme=dark"' in text
    assert '<html lang="en" data-theme="dark">' in text
    assert '<option value="30" selected>' in text


@pytest.mark.parametrize("path", ["/", "/acceptance", "/sources"])
def test_names_from_outside_are_text(web: Web, sqlite_engine: Engine, path: str) -> None:
    feed = Feed(IngestWriter(sqlite_engine, lambda: NOW), HOSTILE + "x" * 2_000)
    fill(feed, model=HOSTILE, speculative={"draft_model": HOSTILE * 50}, reason=HOSTILE)
    feed.launch("b2", NOW - 60_000, model=HOSTILE, config={HOSTILE: HOSTILE})
    feed.health(NOW, HealthState.PARTIAL, detail=HOSTILE, remedy=HOSTILE, missing={HOSTILE: HOSTILE})
    page = Elements(web.get(path).text)
    assert "img" not in page.tags
    assert "script" not in page.tags[page.tags.index("body") :]
    assert not page.dangerous


def test_demo_data_carries_its_badge_everywhere(web: Web, feed: Feed) -> None:
    fill(feed, is_demo=True)
    for path in ("/", "/acceptance", "/sources"):
        assert "badge-demo" in web.get(path).text
    assert "badge-demo" not in web.get("/glossary").text


def test_the_acceptance_page_shows_counts_and_what_changed_between_launches(web: Web, feed: Feed) -> None:
    fill(feed, config={"attention_backend": "fa3"})
    feed.launch("b2", NOW - 60_000, config={"attention_backend": "triton"}, reason="configuration changed")
    text = web.get("/acceptance?from=now-6h&launch=all").text
    counts = web.api("/acceptance/summary", server=SERVER, from_="now-6h")["counts"]
    assert f"{counts['verify_calls']:,.0f}</td>" in text
    assert f"{counts['accepted_drafts']:,.0f}</td>" in text
    assert "attention_backend" in text
    assert "configuration changed" in text


def test_a_source_says_what_is_missing_and_how_to_turn_it_on(web: Web, feed: Feed) -> None:
    feed.launch()
    feed.health(
        NOW, HealthState.DISABLED, http_status=404, detail="metrics are off",
        remedy="Start with --enable-metrics.",
        missing={"device time": "--enable-device-timer"},
    )  # fmt: skip
    text = web.get("/sources").text
    for words in (
        "switched off",
        "404",
        "metrics are off",
        'Start with <code class="flag">--enable-metrics</code>.',
        "--enable-device-timer",
        "never",
    ):
        assert words in text


@pytest.mark.parametrize("state", HealthState)
def test_every_state_of_a_source_has_words_of_its_own(web: Web, feed: Feed, state: HealthState) -> None:
    feed.health(NOW, state)
    article = web.get("/sources").text.split("<article", 1)[1]
    words = re.search(r"</svg>([^<]+)</span>", article)
    assert words
    assert words[1] != state.value


def test_the_numbers_are_of_the_newest_launch_until_another_choice_is_made(web: Web, feed: Feed) -> None:
    """A mean over launches would hide what a restart mended (or broke)."""
    feed.launch(key="dead", time_ms=NOW - 1_800_000)
    feed.scrapes(180, NOW - 1_800_000, tau=1.1, rate=0.1 / 3, depth=3, width=4, running=2)
    feed.launch(key="mended", time_ms=NOW - 900_000)
    feed.scrapes(180, NOW - 900_000, tau=2.5, rate=0.5, depth=3, width=4, running=2)
    newest = web.get("/?from=now-1h").text
    assert "Speculation works" in newest
    assert "the newest launch, seen since" in newest
    assert "all 2 launches in this range" in newest
    together = web.get("/?from=now-1h&launch=all").text
    assert "all 2 launches in this range, added up" in together
    assert "Speculation works" in together
    assert "mixes 2 launches" in together
    first = web.get("/api/v1/servers/" + SERVER + "/launches").json()["launches"][-1]["id"]
    alone = web.get(f"/?from=now-1h&launch={first}").text
    assert "Almost no draft is right" in alone
    assert "Numbers of one launch" in alone


def test_what_happened_stands_on_the_overview(web: Web, feed: Feed) -> None:
    feed.launch()
    feed.scrapes(3, tau=2.0, running=1)
    assert "No restart, error or loss" in web.get("/?from=now-2h").text
    feed.send(Event(kind="out_of_memory", time_ms=T0 + 60_000, message="<b>CUDA</b> out of memory"))
    for path in ("/?from=now-2h", f"/?server={SERVER}&from=now-2h", "/fragments/overview?from=now-2h"):
        text = web.get(path).text
        assert "out of memory</td>" in text
        assert "&lt;b&gt;CUDA" in text
        assert "<b>CUDA" not in text
    assert "out of memory" not in web.get("/?from=now-30m").text


IN_LOG = {"engine_version": "0.5.9–0.5.22", "version_source": "log_lines"}
NOT_SAID = {
    "algorithm": None, "num_steps": None, "eagle_topk": None, "num_draft_tokens": None, "draft_model": None,
}  # fmt: skip


def test_a_log_without_arguments_does_not_say_that_speculation_is_off(web: Web, feed: Feed) -> None:
    feed.launch(**IN_LOG, model=None, speculative=NOT_SAID)
    feed.scrapes(180, tau=2.5, running=2)
    text = web.get("/acceptance?from=now-2h").text
    assert "on (method not said)" in text
    assert "“accept len” in the log" in text
    assert "sglang:spec_accept_length" not in text


def test_a_log_whose_arguments_name_no_method_says_that_speculation_is_off(web: Web, feed: Feed) -> None:
    feed.launch(**IN_LOG, speculative=NOT_SAID)
    feed.scrapes(180, throughput=50.0, running=2)
    assert "Speculation is off" in web.get("/?from=now-2h").text


def test_a_server_known_from_files_waits_for_no_scrape(web: Web, feed: Feed) -> None:
    feed.target = Target(name=SERVER, base_url="imported log")
    feed.launch(**IN_LOG)
    text = web.get("/sources").text
    assert "not watched" in text
    assert "first scrape" not in text


@pytest.mark.parametrize("query", ["from=yesterday", "server=gpu9", "from=now&to=now-1h", "launch=abc"])
def test_a_wrong_address_is_explained_in_the_page(web: Web, feed: Feed, query: str) -> None:
    fill(feed)
    answer = web.get(f"/acceptance?{query}", headers=HTML)
    assert answer.status_code in (404, 422)
    assert "Show this page with its default choices" in answer.text


@pytest.mark.parametrize("name", ["overview", "acceptance", "sources"])
def test_live_parts_can_be_fetched_alone(web: Web, feed: Feed, name: str) -> None:
    fill(feed)
    answer = web.get(f"/fragments/{name}?server={SERVER}")
    assert answer.status_code == 200
    assert "<html" not in answer.text
    assert "data-live=" in answer.text
    assert "no-store" in answer.headers["cache-control"]


def test_live_parts_explain_a_wrong_address_too(web: Web, feed: Feed) -> None:
    fill(feed)
    answer = web.get("/fragments/overview?from=yesterday")
    assert answer.status_code == 200
    assert "yesterday" in answer.text


def test_an_unknown_page_looks_like_a_page(web: Web) -> None:
    answer = web.get("/nowhere?theme=dark", headers=HTML)
    assert answer.status_code == 404
    assert answer.headers["content-type"].startswith("text/html")
    assert "Go to the overview" in answer.text
    assert 'data-theme="dark"' in answer.text


def test_an_unknown_address_of_the_api_stays_a_problem_document(web: Web) -> None:
    answer = web.get("/api/v1/nowhere", headers=HTML)
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"


def test_a_broken_store_is_a_page_too(sqlite_engine: Engine) -> None:
    web = Web(create_app(Settings(), engine=sqlite_engine, clock=lambda: NOW))
    with sqlite_engine.begin() as connection:
        connection.exec_driver_sql("DROP TABLE server")
    answer = web.get("/", headers=HTML)
    assert answer.status_code == 503
    assert "database" in answer.text
    assert "Traceback" not in answer.text


@pytest.mark.parametrize(("minutes", "shown"), [(2, "5m"), (10, "15m"), (20, "1h")])
def test_young_watching_shows_a_short_range_at_first(
    web: Web, feed: Feed, sqlite_engine: Engine, minutes: int, shown: str
) -> None:
    fill(feed)
    with sqlite_engine.begin() as connection:
        connection.exec_driver_sql(f"UPDATE server SET created_ms = {NOW - minutes * 60_000}")
    assert f'data-from="now-{shown}"' in web.get("/").text


def test_the_glossary_explains_every_word(web: Web) -> None:
    text = web.get("/glossary").text
    anchors = [term.anchor for _, terms in GROUPS for term in terms]
    assert len(anchors) == len(set(anchors))
    for anchor in anchors:
        assert f'id="{anchor}"' in text


def test_the_login_page_keeps_where_to_go_and_says_when_it_failed(web: Web) -> None:
    text = web.get('/login?next=/sources%3Fa="><b>&failed=1').text
    assert 'value="/sources?a=&#34;&gt;&lt;b&gt;"' in text
    assert "That token is not the one" in text
    assert 'method="post" action="/login"' in text
