"""What the page about time shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy.orm import Session

from specscope_server.kit.errors import InvalidInput, NotFound
from specscope_server.kit.figures import Words
from specscope_server.kit.web.params import make_time_range
from specscope_server.kit.web.state import AppState
from specscope_server.pages import views
from specscope_server.pages.number_views import NumberCard, number_card
from specscope_server.pages.page import Page
from specscope_server.pages.surface_view import surface_shown
from specscope_server.pages.wording import MISSING, count_text, number_text
from specscope_server.servers import service as servers
from specscope_server.timing import cell_figures, figures
from specscope_server.timing.panels import comparison_once, ranks_once, summary_once
from specscope_server.timing.schemas import (
    ComparedPhase,
    EvidenceLevel,
    PhaseRow,
    TimingComparison,
    TimingRanks,
    TimingSummary,
)
from specscope_server.timing.service import Question

NEWEST = "newest"
LEVEL_STATES = {
    "used": ("ok", "used"),
    "present": ("ok", "present"),
    "refused": ("bad", "refused"),
    "absent": ("unknown", "not there"),
}
"""State of a level of evidence → (kind of the shape, words)."""


def time_of(session: Session, state: AppState, page: Page) -> dict[str, Any]:
    """Return everything on the page; ``problem`` says why there is nothing."""
    content: dict[str, Any] = {"charts": [], "summary": None, "problem": None}
    if not page.servers and not page.server:
        return content
    choice = page.query.get("launch", NEWEST)
    try:
        span = make_time_range(state, page.from_, page.to)
        asked = Question(page.server, choice, span)
        found = summary_once(session, state, asked)
        compared = comparison_once(session, state, page.server, span, _launch(choice))
        by_rank = ranks_once(session, state, asked)
        by_cell = surface_shown(session, state, asked, page.query)
        in_range = servers.count_launches(session, page.server, span.window())
    except (NotFound, InvalidInput) as error:
        return content | {"problem": error}
    return {
        "problem": None,
        "charts": _charts(found, compared, by_rank),
        "summary": found,
        "scope": _scope(found, choice, in_range),
        "verdict": views.verdict_view(found.verdict),
        "numbers": _cards(found),
        "phases": [_phase_texts(row) for row in found.phases],
        "levels": [(*LEVEL_STATES[item.state], item, _level_texts(item)) for item in found.levels],
        "self_checks": views.check_views([*found.checks, *by_rank.checks[:1]]),
        "waste": _waste(found),
        "comparison": compared,
        "changes": [_change_texts(row) for row in compared.phases],
        "same_batch": [_change_texts(row) for row in compared.same_batch],
        "ranks": by_rank,
        **by_cell,
    }


def _launch(choice: str) -> str | None:
    return choice if choice.isascii() and choice.isdigit() else None


def _charts(found: TimingSummary, compared: TimingComparison, by_rank: TimingRanks) -> Sequence[Words]:
    """Return the charts that have something to show; the others would stand empty."""
    if not found.phases:
        return []
    charts = [figures.WATERFALL, figures.SHARES, figures.PER_CYCLE]
    if found.verify_time.value is not None:
        charts.append(cell_figures.SURFACE)
    if found.sensitivity:
        charts.append(figures.SENSITIVITY)
    if compared.phases:
        charts.append(cell_figures.COMPARISON)
    if len(by_rank.ranks) > 1:
        charts.append(cell_figures.RANKS)
    return charts


def _scope(found: TimingSummary, choice: str, in_range: int) -> views.Scope:
    newest, everything = ("newest launch", ""), (f"all {in_range} launches in this range", "all")
    since = found.launch.first_seen if found.launch else None
    if choice == NEWEST:
        return views.Scope("the newest launch", since, (everything,) if in_range > 1 else ())
    if choice == "all":
        return views.Scope(
            f"{found.launches} of {in_range} launches in this range, added up", None, (newest,)
        )
    return views.Scope("one launch", since, (newest, everything) if in_range > 1 else (newest,))


def _cards(found: TimingSummary) -> list[NumberCard]:
    title = "Step T" if found.launch and found.launch.is_plain else "Cycle T_c"
    return [
        number_card("cycle-time", title, found.cycle_time),
        number_card("verify-time", "Verify T_v", found.verify_time),
        number_card("verify-share", "Verify's share of the cycle", found.verify_share),
        number_card("break-even", "Break-even τ*", found.break_even),
        number_card("speed-up", "Speed-up", found.speed_up),
        number_card("throughput", "Decoded tokens", found.tokens_per_second),
    ]


def _phase_texts(row: PhaseRow) -> dict[str, str]:
    bounds = "" if not row.low or row.high is None else f"{row.low:.2f} … {row.high:.2f}"
    return {
        "phase": row.phase,
        "title": row.title,
        "meaning": row.meaning,
        "is_in_cycle": "yes" if row.is_in_cycle else "",
        "wall": _percent(row.share_of_wall),
        "cycle": _percent(row.share_of_cycle),
        "ms": _ms(row.ms_per_cycle),
        "bounds": bounds,
        "accepted": _ms(row.ms_per_accepted_token),
        "emitted": _ms(row.ms_per_emitted_token),
    }


def _level_texts(item: EvidenceLevel) -> dict[str, str]:
    return {
        "active": _ms(item.active_ms),
        "verify": _ms(item.verify_ms),
        "cycles": MISSING if item.cycles is None else count_text(round(item.cycles)),
    }


def _waste(found: TimingSummary) -> list[tuple[str, str, str]]:
    """Return (what, value, how it is counted)."""
    rows = (
        ("Verified tokens that are rejected", found.waste.rejected_share, "%"),
        ("GPU time for rejected drafts", found.waste.gpu_seconds, "GPU-s"),
        ("Highest draft acceptance that the tree's width allows", found.waste.acceptance_ceiling, "%"),
    )
    return [
        (what, f"{number_text(value.value, value.unit)} {unit}" if value.value is not None else MISSING,
         value.definition)
        for what, value, unit in rows
    ]  # fmt: skip


def _change_texts(row: ComparedPhase) -> dict[str, Any]:
    bounds = MISSING if row.low is None or row.high is None else f"{_signed(row.low)} … {_signed(row.high)}"
    return {
        "title": row.title,
        "a": _ms(row.a_ms),
        "b": _ms(row.b_ms),
        "difference": MISSING if row.difference_ms is None else f"{row.difference_ms:+.2f}".replace("-", "−"),
        "change": MISSING if row.change is None else _signed(row.change),
        "bounds": bounds,
        "is_certain": row.is_certain,
    }


def _signed(value: float) -> str:
    return f"{100 * value:+.1f} %".replace("-", "−")


def _percent(value: float | None) -> str:
    return MISSING if value is None else f"{100 * value:.1f} %"


def _ms(value: float | None) -> str:
    return MISSING if value is None else f"{value:.2f}"
