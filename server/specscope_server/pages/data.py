"""What each page shows, put together from the services of the domains (which do not know pages)."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from sqlalchemy.orm import Session

from specscope_server.acceptance import service as acceptance
from specscope_server.acceptance.positions import HOW_TO_SEND, has_histograms
from specscope_server.kit.errors import InvalidInput, NotFound
from specscope_server.kit.figures import epoch_ms
from specscope_server.kit.web.params import make_time_range
from specscope_server.kit.web.state import AppState
from specscope_server.pages import views
from specscope_server.pages.number_views import headline_cards
from specscope_server.pages.page import DEFAULT_RANGE, Page, clean_query, range_for_age
from specscope_server.servers import service as servers
from specscope_server.sources import service as sources

MAX_CARDS = 48
"""Servers shown as cards; the picker lists every one."""
MAX_PICKER = 1_000
MAX_LAUNCHES = 20
NEWEST = "newest"
"""Launch that the numbers are of while none is chosen: a mean over launches hides what a restart mended."""


def make_page(
    session: Session, state: AppState, query: Mapping[str, str], page: Page, *, all_servers: bool
) -> Page:
    """Return ``page`` with the reader's choices and the servers filled in.

    Without a choice the only server is shown, or else all of them (``all_servers``) or the first.
    """
    chosen = clean_query(query, page.own_keys)
    listing = servers.list_servers(session, state.clock(), state.stale_after_ms, MAX_PICKER, None)
    names = tuple(item.name for item in listing.servers)
    shown = chosen.get("server", "")
    if not shown and names and (len(names) == 1 or not all_servers):
        shown = names[0]
    several = all_servers and len(names) > 1
    seen_from = [epoch_ms(item.created) for item in listing.servers if shown in ("", item.name)]
    default = range_for_age(state.clock() - round(min(seen_from))) if seen_from else DEFAULT_RANGE
    return replace(
        page, query=chosen, servers=names, server=shown, allows_all_servers=several, default_range=default
    )


def overview(session: Session, state: AppState, page: Page) -> dict[str, Any]:
    """Return one server's verdict and numbers, or a card for each of several servers."""
    if page.server or not page.servers:
        return acceptance_of(session, state, page)
    cards = [_card(session, state, page, name) for name in page.servers[:MAX_CARDS]]
    return {"cards": cards, "hidden_cards": len(page.servers) - len(cards), "problem": None}


def acceptance_of(session: Session, state: AppState, page: Page) -> dict[str, Any]:
    """Return the summary of one server in the chosen range; ``problem`` says why there is none."""
    if not page.servers and not page.server:
        return {"summary": None, "problem": None, "cards": None}
    try:
        moment = make_time_range(state, page.from_, page.to)
        launch = page.query.get("launch", NEWEST)
        summary = acceptance.summary(session, state, page.server, launch, moment)
        in_range = servers.count_launches(session, page.server, moment.window())
    except (NotFound, InvalidInput) as error:
        return {"summary": None, "problem": error, "cards": None}
    health = sources.list_sources(session, page.server, state.clock(), state.stale_after_ms).servers[0]
    return {
        "problem": None,
        "cards": None,
        "summary": summary,
        "verdict": views.verdict_view(summary.verdict),
        "numbers": headline_cards(summary, adds_up=launch == "all" and in_range > 1),
        "self_checks": views.check_views(summary.checks),
        "facts": views.facts_of(summary),
        "scope": views.scope_of(summary, launch, in_range),
        "counts": views.count_rows(summary.counts),
        "health": health,
        "reach": views.reach_of(health),
        "troubles": troubles(health),
    }


def requests_of(session: Session, state: AppState, page: Page) -> dict[str, Any]:
    """Return whether requests of the shown range reported histograms, and how to send them if not."""
    found = False
    if page.server in page.servers:
        with suppress(NotFound, InvalidInput):  # which the summary says already
            moment = make_time_range(state, page.from_, page.to)
            found = has_histograms(session, page.server, page.query.get("launch", NEWEST), moment)
    return {"has_histograms": found, "how_to_send": HOW_TO_SEND}


def launches_of(session: Session, page: Page) -> list[dict[str, Any]]:
    """Return the newest launches of the shown server, each with what differs from the one before."""
    if page.server not in page.servers:
        return []
    items = servers.list_launches(session, page.server, MAX_LAUNCHES, None).launches
    rows = []
    for item in items:
        diff = servers.get_launch(session, item.id).diff
        rows.append(
            {
                "item": item,
                "title": views.launch_title(item),
                "diff": views.diff_rows(diff),
                "is_first": diff.previous_id is None,
                "range": views.launch_range(item, is_newest=item is items[0]),
            }
        )
    return rows


def sources_of(session: Session, state: AppState, page: Page) -> dict[str, Any]:
    """Return the health of every source of the shown servers."""
    try:
        listing = sources.list_sources(session, page.server or None, state.clock(), state.stale_after_ms)
    except NotFound as error:
        return {"listing": [], "collectors": [], "problem": error}
    found = [server for server in listing.servers if not server.is_collector]
    own = sources.list_collectors(session, state.clock(), state.stale_after_ms)
    return {"listing": found, "collectors": own, "problem": None, "views": views}


def troubles(health: Any) -> list[Any]:
    """Return the sources that cannot be read (or are gone), to be named beside the numbers."""
    return [source for source in health.sources if source.state not in ("ok", "partial", "not_offered")]


def _card(session: Session, state: AppState, page: Page, name: str) -> dict[str, Any]:
    shown = replace(
        page, server=name, query={key: value for key, value in page.query.items() if key != "launch"}
    )
    return {"name": name, "link": page.link("/", server=name), **acceptance_of(session, state, shown)}
