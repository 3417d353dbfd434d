"""What the page about time says of verify's cost by batch size and D, and of what experts predict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy.orm import Session

from specscope_server.kit.errors import InvalidInput
from specscope_server.kit.web.state import AppState
from specscope_server.pages.wording import MISSING, count_text
from specscope_server.timing.panels import surface_once
from specscope_server.timing.schemas import SurfaceCell
from specscope_server.timing.service import Question
from specscope_server.timing.surface import Experts, experts_of

OWN_KEYS = ("experts", "experts_per_token")
MAX_CELLS = 60
MAX_DIGITS = 6


def surface_shown(
    session: Session, state: AppState, asked: Question, query: Mapping[str, str]
) -> dict[str, Any]:
    """Return the cells and the question about experts. Raises `NotFound` for an unknown server or launch."""
    experts, problem = _experts(query)
    found = surface_once(session, state, asked, experts)
    cells = [each for each in found.cells if each.verify_ms is not None]
    return {
        "surface": found,
        "cells": [_cell_texts(each) for each in cells[-MAX_CELLS:]],
        "cells_left_out": max(len(cells) - MAX_CELLS, 0),
        "several_launches": len({each.launch_id for each in cells}) > 1,
        "experts": {key: query.get(key, "") for key in OWN_KEYS},
        "experts_asked": experts is not None,
        "experts_problem": problem,
    }


def _experts(query: Mapping[str, str]) -> tuple[Experts | None, str]:
    """Return what was asked for, and why it cannot be answered."""
    try:
        return experts_of(_number(query, OWN_KEYS[0]), _number(query, OWN_KEYS[1])), ""
    except InvalidInput as error:
        return None, error.detail


def _number(query: Mapping[str, str], key: str) -> int | None:
    text = query.get(key, "").strip()
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS):
        raise InvalidInput(f"{key}={text[:20]!r} is no whole number; write for example 384 and 8")
    return int(text)


def _cell_texts(cell: SurfaceCell) -> dict[str, Any]:
    bounds = cell.verify_low is not None and cell.verify_high is not None
    return {
        "launch": cell.launch_id,
        "width": cell.num_draft_tokens,
        "batch": cell.batch,
        "cycles": count_text(round(cell.cycles)),
        "is_few": cell.is_few,
        "verify": _two(cell.verify_ms),
        "bounds": f"{_two(cell.verify_low)} … {_two(cell.verify_high)}" if bounds else MISSING,
        "plain": _two(cell.plain_ms),
        "ratio": _two(cell.verify_ratio),
        "predicted": _two(cell.expected_experts_ratio),
    }


def _two(value: float | None) -> str:
    return MISSING if value is None else f"{value:.2f}"
