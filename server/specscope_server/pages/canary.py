"""What the page about the canary shows."""

from __future__ import annotations

from typing import Any

from sqlalchemy.orm import Session

from specscope_server.canary import figures, service
from specscope_server.canary.schemas import CanaryChange
from specscope_server.kit.errors import InvalidInput, NotFound
from specscope_server.kit.web.params import make_time_range
from specscope_server.kit.web.state import AppState
from specscope_server.pages.page import Page
from specscope_server.pages.views import VerdictView
from specscope_server.sources import service as sources
from specscope_server.sources.schemas import SourceItem

CANARY_RANGE = "7d"
"""Shown by default: runs are half an hour apart and launches days."""
MAX_RUNS = 20
CHANGE_NAMES = {
    "accept_length": "Accept length τ",
    "accept_length_same_output": "Accept length τ, prompts with the same output",
    "e2e_seconds": "Time of a request",
}


def canary_of(session: Session, state: AppState, page: Page) -> dict[str, Any]:
    """Return runs and comparison of the shown server; ``problem`` says why there are none."""
    content: dict[str, Any] = {"charts": [], "runs": [], "comparison": None, "problem": None, "source": None}
    if not page.servers and not page.server:
        return content
    try:
        moment = make_time_range(state, page.from_, page.to)
        found = service.runs(session, page.server, moment)
        comparison = service.compare(session, page.server, moment, None, None)
    except (NotFound, InvalidInput) as error:
        return content | {"problem": error}
    reasons = [f"{comparison.b.words} against {comparison.a.words}"] if comparison.a and comparison.b else []
    if comparison.outputs_changed:
        reasons.append(f"{comparison.outputs_changed} prompts gave another output: model or engine changed")
    return {
        "problem": None,
        "source": _source(session, state, page.server),
        "charts": [figures.TREND, *([figures.PAIRS] if comparison.pairs else [])] if found.runs else [],
        "runs": found.runs[:MAX_RUNS],
        "hidden_runs": max(0, len(found.runs) - MAX_RUNS),
        "is_demo": found.is_demo,
        "comparison": comparison,
        "verdict": VerdictView(comparison.state, comparison.verdict, tuple(reasons)),
        "changes": [
            (CHANGE_NAMES.get(change.name, change.name), *_texts(change)) for change in comparison.changes
        ],
    }


def _source(session: Session, state: AppState, server: str) -> SourceItem | None:
    """Return how the canary of a server does; None where none is turned on."""
    [found] = sources.list_sources(session, server, state.clock(), state.stale_after_ms).servers
    return next((source for source in found.sources if source.source == "canary"), None)


def _texts(change: CanaryChange) -> tuple[str, str, str]:
    """Return (change, interval, pairs) as texts; a dash where too few pairs say nothing."""
    bounds = (
        "–" if change.low is None or change.high is None else f"{_share(change.low)} … {_share(change.high)}"
    )
    mean = "–" if change.change is None else _share(change.change)
    return mean, bounds, f"{change.pairs} ({change.lower} lower, {change.higher} higher)"


def _share(value: float) -> str:
    return f"{100 * value:+.1f} %".replace("-", "−")
