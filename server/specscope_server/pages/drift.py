"""What the page about hidden states shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy.orm import Session

from specscope_server.boundaries.endpoints import ids_from
from specscope_server.boundaries.schemas import BoundaryTable, System
from specscope_server.boundaries.service import WhatIf, table
from specscope_server.drift import figures, trend_figures
from specscope_server.drift.choosing import Asked
from specscope_server.drift.profiles import profiles
from specscope_server.drift.reading import newest_time
from specscope_server.drift.schemas import Drift, Resolution
from specscope_server.drift.service import Question, drift
from specscope_server.kit.errors import InvalidInput, NotFound
from specscope_server.kit.figures import Words
from specscope_server.kit.timeparse import to_iso
from specscope_server.kit.web.pagination import MAX_ID
from specscope_server.kit.web.params import make_time_range
from specscope_server.kit.web.state import AppState
from specscope_server.pages import drift_views as view
from specscope_server.pages.page import Page
from specscope_server.pages.views import VerdictView, verdict_view
from specscope_server.references.service import list_references
from specscope_server.store.lookup import server_by_name

NEWEST = "newest"
WHAT_IF_KEYS = ("ids", "engine_version", "model_class", "layers", "system")
TOTALS_KEYS = ("total_a", "tokens_a", "total_b", "tokens_b", "hidden_size")
REFERENCE_KEYS = ("reference", "boundaries")
OWN_KEYS = (*REFERENCE_KEYS, *WHAT_IF_KEYS, *TOTALS_KEYS)
MOST_REFERENCES = 20
MAX_LAYERS = 4_096


def drift_of(session: Session, state: AppState, page: Page) -> dict[str, Any]:
    """Return everything on the page; ``problem`` says why there is nothing."""
    content: dict[str, Any] = {"charts": [], "drift": None, "problem": None, "layer_ids": None}
    if not page.servers and not page.server:
        return content
    launch = page.query.get("launch", NEWEST)
    try:
        span = make_time_range(state, page.from_, page.to)
        question = Question(page.server, launch, span, asked_of(page.query))
        found = drift(session, question)
        seen = profiles(session, question) if found.cells else None
    except (NotFound, InvalidInput) as error:
        return content | {"problem": error}
    layer_ids, what_if_problem = _layer_ids(session, page, launch, question.asked.reference)
    references = list_references(session, None, MOST_REFERENCES, None).references
    newest_ms = newest_time(session, server_by_name(session, page.server).id, 0, span.now_ms)
    return content | {
        "drift": found,
        "verdict": _verdict(found, layer_ids),
        "layer_verdict": verdict_view(layer_ids.verdict) if found.cells else None,
        "charts": _charts(found),
        "grid": view.grid_of(found),
        "layer_ids": layer_ids,
        "layer_rows": view.layer_rows(layer_ids),
        "what_if": {key: page.query.get(key, "") for key in WHAT_IF_KEYS},
        "what_if_problem": what_if_problem,
        "systems": [(system.value, view.SYSTEM_TITLES[system]) for system in System],
        "profile_rows": view.profile_rows(seen) if seen else [],
        "sampled": view.sampled_rows(seen) if seen else [],
        "references": references,
        "chosen": {key: page.query.get(key, "") for key in REFERENCE_KEYS},
        "lacks": _lacks(found, [item.kind for item in references]),
        "newest_profile": to_iso(newest_ms) if newest_ms is not None else None,
        "totals": view.totals_view({key: page.query.get(key, "") for key in TOTALS_KEYS}),
    }


def _verdict(found: Drift, layer_ids: BoundaryTable) -> VerdictView:
    """Return what stands first: of the states, or where there are none of the layer ids."""
    return verdict_view(found.verdict if found.cells else layer_ids.verdict)


def _charts(found: Drift) -> Sequence[Words]:
    """Return the charts that have something to show."""
    if not found.cells:
        return []
    charts = [figures.DENSITIES, figures.BANDS]
    if found.curve:
        charts.insert(0, figures.BOUNDARIES)
    if found.reference or found.boundaries_reference:
        charts += [trend_figures.STATISTICS["w1"], trend_figures.STATISTICS["mean_direction"]]
        charts.append(trend_figures.JOINT)
        charts += [trend_figures.STATISTICS[name] for name in ("channel_rms", "psi", "ks")]
    return charts


def _lacks(found: Drift, kinds: Sequence[str]) -> dict[str, bool]:
    """Return what is not there, each with its own remedy on the page."""
    return {
        "profiles": not found.cells,
        "reference": found.reference is None,
        "unused_reference": found.reference is None and "slots" in kinds,
        "boundaries": found.resolution is not Resolution.BOUNDARIES,
    }


def _layer_ids(session: Session, page: Page, launch: str, reference: int | None) -> tuple[BoundaryTable, str]:
    """Return the table, and why the question in the URL could not be asked."""
    problem, asked = "", WhatIf()
    try:
        asked = what_if_of(page.query)
    except InvalidInput as error:
        problem = str(error)
    return table(session, page.server, launch, reference, asked), problem


def asked_of(query: Mapping[str, str]) -> Asked:
    """Return the references that a URL names. Raises `InvalidInput`."""
    numbers = []
    for key in REFERENCE_KEYS:
        text = query.get(key, "")
        if text and not (text.isascii() and text.isdigit() and int(text[:20]) <= MAX_ID):
            raise InvalidInput(f"{key}={text[:20]!r} is no id of a reference; they are listed on the page")
        numbers.append(int(text[:20]) if text else None)
    return Asked(*numbers)


def what_if_of(query: Mapping[str, str]) -> WhatIf:
    """Return the question in a URL. Raises `InvalidInput`."""
    layers, system = query.get("layers", ""), query.get("system") or System.SGLANG
    if layers and not (layers.isascii() and layers.isdigit() and 0 < int(layers[:6]) <= MAX_LAYERS):
        raise InvalidInput(f"layers={layers[:20]!r} is no number of decoder layers")
    if system not in list(System):
        raise InvalidInput(f"system={system[:40]!r} is not known; see the choices")
    return WhatIf(
        system=System(system), version=query.get("engine_version", "")[:100] or None,
        model_class=query.get("model_class", "")[:100] or None, layers=int(layers) if layers else None,
        ids=ids_from(query.get("ids", "")[:400]),
    )  # fmt: skip
