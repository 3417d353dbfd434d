"""Rows of the page about hidden states, as texts (pure)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from specscope_server.boundaries.schemas import BoundaryRow, BoundaryTable, System
from specscope_server.boundaries.statistics import as_text
from specscope_server.boundaries.totals import totals
from specscope_server.drift.schemas import Cell, CellState, Drift, DriftProfiles, ProfileRow, SampledRow
from specscope_server.kit.errors import InvalidInput
from specscope_server.pages.wording import MISSING

STATES: dict[CellState, tuple[str, str]] = {
    CellState.SAME: ("ok", "same"),
    CellState.SUSPECTED: ("warn", "suspected"),
    CellState.WRONG: ("bad", "wrong"),
    CellState.NOT_ENOUGH: ("unknown", "not enough"),
    CellState.NOT_COMPARABLE: ("unknown", "nothing to compare with"),
    CellState.NO_DATA: ("idle", "no rows"),
}
PHASES = {
    "prefill": "Prefill",
    "verify_accepted": "Verification, accepted",
    "verify_rejected": "Verification, rejected",
    "calibration": "Calibration",
}
SYSTEM_TITLES = {
    System.SGLANG: "SGLang (draft's ids)",
    System.SGLANG_MODEL: "SGLang (in the model)",
    System.VLLM: "vLLM",
    System.EAGLE: "EAGLE",
    System.HUGGING_FACE: "output_hidden_states",
    System.SPECFORGE: "SpecForge",
    System.SPECULATORS: "speculators",
    System.MODELOPT: "ModelOpt (hf, trtllm)",
    System.MODELOPT_VLLM: "ModelOpt (vllm)",
    System.ANGELSLIM: "AngelSlim",
    System.BOUNDARIES: "boundaries",
}
CLASSES = {"other": "ordinary rows", "head": "positions 0–3", "sink": "sinks"}
SIDES = {"serving": "serving", "training": "training", "boundaries": "all boundaries"}
MOST_PROFILES = 60
MAX_NUMBER = 24


@dataclass(frozen=True, slots=True)
class GridRow:
    """One slot over the phases."""

    slot: int
    trained: str
    captured: str
    cells: tuple[tuple[str, str, Cell, dict[str, str]] | None, ...]
    """(kind of the shape, word, cell, texts) by phase; None = no rows."""


def grid_of(found: Drift) -> dict[str, Any]:
    """Return slots × phases."""
    cells = {(cell.slot, cell.phase): cell for cell in found.cells}
    rows = [
        GridRow(
            slot.slot, _place(slot.trained_boundary), _place(slot.captured_boundary),
            tuple(_cell(cells.get((slot.slot, phase))) for phase in found.phases),
        )
        for slot in found.slots
    ]  # fmt: skip
    return {"phases": [PHASES.get(phase, phase) for phase in found.phases], "rows": rows}


def _cell(cell: Cell | None) -> tuple[str, str, Cell, dict[str, str]] | None:
    if cell is None:
        return None
    kind, word = STATES[cell.state]
    return kind, word, cell, {
        "vcos": _nearest(cell.vcos), "dnll": _nearest(cell.dnll) + _variances(cell),
        "norm": f"{_number(cell.gross_norm)} of {cell.gross_norm_limit:.2f} nats",
        "direction": f"{_number(cell.gross_direction)} of {cell.gross_direction_limit:.2f}",
        "votes": f"{cell.votes_for} of {cell.votes}" if cell.votes else MISSING,
    }  # fmt: skip


def _variances(cell: Cell) -> str:
    """Return by which variances the likelihood of the newest window is, where not by the reference's."""
    return ", by the window's own variances" if cell.windows and cell.windows[-1].own_variances else ""


def _nearest(found: Any) -> str:
    if found is None:
        return MISSING
    ratio = "" if found.runner_up_ratio is None else f" ({found.runner_up_ratio:.2f})"
    return f"{found.place}{ratio}"


def _place(boundary: int | None) -> str:
    return MISSING if boundary is None else str(boundary)


def _number(value: float | None, digits: int = 2) -> str:
    return MISSING if value is None else f"{value:.{digits}f}"


@dataclass(frozen=True, slots=True)
class LayerRow:
    """One row of the boundary table."""

    row: BoundaryRow
    ids: str
    boundaries: str
    is_disputed: bool


def layer_rows(found: BoundaryTable) -> list[LayerRow]:
    """Return the boundary table as texts."""
    disputed = {place for each in found.disagreements if each.is_fault for place in each.rows}
    return [
        LayerRow(
            row, _list(row.ids, "none named" if row.is_default else MISSING),
            "nothing" if row.boundaries == [] else _list(row.boundaries, "cannot be told"),
            place in disputed,
        )
        for place, row in enumerate(found.rows)
    ]  # fmt: skip


def _list(numbers: list[Any] | None, otherwise: str) -> str:
    return otherwise if numbers is None else as_text(numbers)


def profile_rows(seen: DriftProfiles) -> list[dict[str, str]]:
    """Return merged profiles, serving beside what it is compared with."""
    rows = [row for row in seen.profiles if row.side != "boundaries"]
    rows.sort(key=lambda row: (math.inf if row.slot is None else row.slot, row.side != "training"))
    return [_profile(row) for row in rows[:MOST_PROFILES]]


def _profile(row: ProfileRow) -> dict[str, str]:
    place = "last state" if row.slot is None else f"slot {row.slot}"
    quantiles = row.quantiles
    return {
        "place": place, "boundary": _place(row.boundary), "side": SIDES.get(row.side, row.side),
        "phase": PHASES.get(row.phase, row.phase), "row_class": CLASSES.get(row.row_class, row.row_class),
        "rows": f"{row.rows:,}", "requests": f"{row.requests:,}",
        "norm": _norm(quantiles.q50), "band": f"{_norm(quantiles.q05)} … {_norm(quantiles.q95)}",
        "resultant": _number(row.mean_resultant, 3),
        "channels": ", ".join(map(str, row.top_channels)) or MISSING,
        "share": MISSING if row.top_share is None else f"{100 * row.top_share:.0f} %",
    }  # fmt: skip


def _norm(ln_norm: float | None) -> str:
    return MISSING if ln_norm is None else f"{math.exp(ln_norm):.4g}"


def sampled_rows(seen: DriftProfiles) -> list[dict[str, str]]:
    """Return raw rows as the probe saw them and as they stand in the dump, slot beside slot."""
    rows = sorted(seen.rows, key=lambda row: (math.inf if row.slot is None else row.slot, row.side))
    return [_sampled(row) for row in rows]


def _sampled(row: SampledRow) -> dict[str, str]:
    values = [MISSING if value is None else f"{value:+.4g}".replace("-", "−") for value in row.first_values]
    return {
        "side": SIDES.get(row.side, row.side), "time": row.time,
        "row_class": MISSING if row.row_class is None else CLASSES.get(row.row_class, row.row_class),
        "phase": PHASES.get(row.phase, row.phase),
        "slot": "last state" if row.slot is None else str(row.slot),
        "token": MISSING if row.token_id is None else str(row.token_id),
        "position": str(row.position), "norm": MISSING if row.norm is None else f"{row.norm:.4g}",
        "values": "  ".join(values),
    }  # fmt: skip


def totals_view(query: Mapping[str, str]) -> dict[str, Any]:
    """Return the calculator's fields and, where all are given, its answer or what is wrong with them."""
    content: dict[str, Any] = {"fields": dict(query), "found": None, "problem": ""}
    needed = ("total_a", "tokens_a", "total_b", "tokens_b")
    if not any(query.get(name) for name in needed):
        return content
    try:
        size = query.get("hidden_size")
        content["found"] = totals(
            _float(query, "total_a"), _whole(query, "tokens_a"), _float(query, "total_b"),
            _whole(query, "tokens_b"), _whole(query, "hidden_size") if size else None, ("A", "B"),
        )  # fmt: skip
    except InvalidInput as error:
        content["problem"] = str(error)
    return content


def _float(query: Mapping[str, str], name: str) -> float:
    try:
        return float(query.get(name, "")[:MAX_NUMBER])
    except ValueError:
        raise InvalidInput(f"{name}={query.get(name, '')[:MAX_NUMBER]!r} is no number") from None


def _whole(query: Mapping[str, str], name: str) -> int:
    text = query.get(name, "")
    if not (text.isascii() and text.isdigit() and len(text) < MAX_NUMBER):
        raise InvalidInput(f"{name}={text[:MAX_NUMBER]!r} is no whole number")
    return int(text)
