"""The page about requests as HTML: what cannot be meant is said on it, and links keep what was chosen."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.server.client import Web
from tests.server.requests.answers import answer, post
from tests.server.requests.test_summary import told
from tests.server.seed import NOW, SERVER, T0, Feed

from specscope_server.pages.page import Page
from specscope_server.pages.request_views import MAX_BARS, chance_text, choices_of, headings, spark

QUERY = f"server={SERVER}&from={T0}&to={NOW}"


@pytest.fixture
def filled(web: Web, feed: Feed) -> Web:
    """Thirty requests of one launch."""
    feed.launch()
    body = [told(f"r{n}", [5, 3, 2, 1], T0 + 60_000 + n, labels={"tenant": "a b"}) for n in range(30)]
    assert post(web, body)["accepted"] == 30
    return web


@pytest.mark.parametrize(
    ("more", "status", "words"),
    [
        ("sort=color", 422, "no order"),
        ("by=color", 422, "prompt_tokens"),
        ("cursor=x", 422, "not one of ours"),
        (f"search={'x' * 501}", 422, "at most 500"),
        ("launch=9", 404, "no launch"),
    ],
)
def test_what_cannot_be_meant_is_said_on_the_page(filled: Web, more: str, status: int, words: str) -> None:
    page = filled.get(f"/requests?{QUERY}&{more}")
    assert (page.status_code, words in page.text) == (status, True)
    part = filled.get(f"/fragments/requests?{QUERY}&{more}")
    assert (part.status_code, words in part.text) == (200, True)


@pytest.mark.parametrize("number", ["x", "-1", "999999", "9" * 40, "1.5", "²"])
def test_a_request_that_is_not_there_is_a_page_too(filled: Web, number: str) -> None:
    page = filled.get(f"/requests/{number}?server={SERVER}", headers={"accept": "text/html"})
    assert page.status_code == 404
    assert "<html" in page.text


def test_rows_follow_one_another_and_say_what_is_wrong(filled: Web) -> None:
    first = filled.get(f"/requests?{QUERY}").text
    assert len(re.findall(r"<tr data-request", first)) == 25
    [link] = re.findall(r'<a data-more href="([^"]+)"', first)
    more = filled.get("/fragments" + link.replace("/requests?", "/requests/rows?").replace("&amp;", "&")).text
    assert len(re.findall(r"<tr data-request", more)) == 5
    assert "data-more href" not in more
    assert "data-more-problem" in filled.get(f"/fragments/requests/rows?{QUERY}&cursor=x").text


def test_a_label_with_blanks_is_a_link_to_its_requests(filled: Web) -> None:
    text = filled.get(f"/requests?{QUERY}&by=label:tenant").text
    links = re.findall(r'href="([^"]*search=tenant%3Da\+b[^"]*)"', text)
    assert links
    found = filled.get(links[0].replace("&amp;", "&")).text
    assert "that match" in found
    assert len(re.findall(r"<tr data-request", found)) == 25


def test_requests_without_counts_show_dashes(web: Web, feed: Feed) -> None:
    feed.launch()
    post(web, [answer("mute", **dict.fromkeys(
        ("spec_verify_ct", "spec_num_correct_drafts", "spec_num_proposed_drafts",
         "spec_correct_drafts_histogram"), None))])  # fmt: skip
    text = web.get(f"/requests?{QUERY}").text
    assert "1 without counts" in text
    assert ">nan" not in text.lower()


def test_links_to_other_pages_leave_out_what_only_this_page_knows() -> None:
    page = Page("/requests", "Requests", {"search": "x", "server": "s"}, own_keys=("search", "sort", "by"))
    assert page.link("/acceptance") == "/acceptance?server=s"
    assert page.link("/requests", sort="time") == "/requests?search=x&server=s&sort=time"


@given(st.lists(st.integers(0, 10**6), max_size=80))
def test_a_sparkline_has_a_bar_for_every_count_within_its_box(histogram: list[int]) -> None:
    drawn = spark(histogram)
    if not any(histogram):
        assert drawn is None
        return
    assert drawn is not None
    assert len(drawn.bars) <= MAX_BARS
    assert all(0 <= bar.y <= 19 and 1 <= bar.height <= 20 and bar.x < drawn.width for bar in drawn.bars)
    if len(histogram) <= MAX_BARS:
        assert len(drawn.bars) == sum(count > 0 for count in histogram)


def test_a_second_press_turns_the_order_round() -> None:
    for sort, turned in (("-time", "time"), ("time", "-time"), ("-accept_length", "accept_length")):
        [head] = [head for head in headings(sort) if head.order != "none"]
        assert head.sort == turned
    assert all(head.sort == "" for head in headings("-time") if head.title in ("Request", "Launch", "Labels"))


def test_a_label_that_no_request_has_stays_a_choice() -> None:
    assert choices_of("label:gone", ["a"])[-1] == ("gone", "label:gone", True)
    assert [value for _, value, is_on in choices_of("prompt_tokens", []) if is_on] == ["prompt_tokens"]


def test_small_chances_are_words() -> None:
    assert chance_text(-3.08) == "1 in 1,200"
    assert chance_text(-47.2) == "1 in 10⁴⁷"
