"""What verification costs by D and batch size, beside a plain decode step at the same batch size."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy.orm import Session

from specscope_server.acceptance.statistics import Ratio
from specscope_server.kit.errors import InvalidInput
from specscope_server.kit.timeparse import to_iso
from specscope_server.kit.web.state import AppState
from specscope_server.timing.baseline import PlainSteps
from specscope_server.timing.evidence import evidence_note
from specscope_server.timing.facts import facts_of
from specscope_server.timing.measure import Timed
from specscope_server.timing.schemas import Baseline, SurfaceCell, TimingSurface
from specscope_server.timing.service import Question, plain_of, timed_of
from specscope_server.timing.statistics import (
    MIN_CYCLES,
    bucket_place,
    expected_experts,
    per_cycle_ms,
    total,
)
from specscope_server.timing.tracks import Cell, CellKey
from specscope_server.timing.words import timed_launch

MIDDLES = {
    "1": 1.0, "2": 2.0, "3-4": 3.5, "5-8": 6.5, "9-16": 12.5, "17-32": 24.5, "33-64": 48.5, "65-128": 96.5,
    "129-256": 192.5,
}  # fmt: skip
"""Batch bucket → a batch size in it."""
UNKNOWN_EXPERTS = (
    "unknown: how many experts the model has, and how many a token uses, is not told by the engine. Give "
    "both (experts, experts_per_token) to see what their traffic predicts"
)
MAX_EXPERTS = 65_536


@dataclass(frozen=True, slots=True)
class Experts:
    """A mixture of experts, as the asker knows it."""

    experts: int
    per_token: int


def experts_of(experts: int | None, per_token: int | None) -> Experts | None:
    """Return the experts; None without. Raises `InvalidInput` for half of it, or for what cannot be."""
    if experts is None and per_token is None:
        return None
    if experts is None or per_token is None:
        raise InvalidInput("experts and experts_per_token belong together: give both, or neither")
    if not 0 < per_token <= experts <= MAX_EXPERTS:
        raise InvalidInput(
            f"experts={experts} and experts_per_token={per_token} do not fit together; a token uses 1 to "
            f"all of at most {MAX_EXPERTS} experts"
        )
    return Experts(experts, per_token)


def surface(session: Session, state: AppState, asked: Question, experts: Experts | None) -> TimingSurface:
    """Return T_v(D, B). Raises `NotFound` for an unknown server or launch."""
    timed = timed_of(session, state, asked)
    plain = plain_of(session, state, timed, facts_of(timed), asked.span.now_ms).steps
    return TimingSurface.model_validate(
        {
            "server": asked.server,
            "from": to_iso(timed.window.from_ms),
            "to": to_iso(timed.window.to_ms),
            "is_demo": any(one.launch.is_demo for one in timed.launches),
            "evidence": timed.level,
            "evidence_note": evidence_note(timed),
            "baseline": _baseline(plain, asked.span.now_ms) if plain else None,
            "experts_note": _experts_note(experts),
            "cells": _cells(timed, plain, experts),
        }
    )


def _baseline(plain: PlainSteps, now_ms: int) -> Baseline:
    age = max(now_ms - plain.launch.last_seen_ms, 0) / 1_000
    return Baseline(
        launch=timed_launch(plain.launch), level=plain.level, age_seconds=age, cycles=plain.cycles,
        note=plain.note,
    )  # fmt: skip


def _experts_note(experts: Experts | None) -> str:
    if experts is None:
        return UNKNOWN_EXPERTS
    return (
        f"E · (1 − (1 − k/E)^t) distinct experts in a layer, with E = {experts.experts}, "
        f"k = {experts.per_token}, t = batch × D tokens: an upper bound, routing taken as independent"
    )


def _cells(timed: Timed, plain: PlainSteps | None, experts: Experts | None) -> list[SurfaceCell]:
    found = [
        _cell(one.launch.id, key, cell, plain, experts)
        for one in timed.of_level(timed.level)
        if not one.tracks[timed.level].is_plain
        for key, cell in one.tracks[timed.level].cells.items()
        if total(cell.cycles) > 0
    ]
    return sorted(found, key=lambda cell: (cell.launch_id, _width(cell), bucket_place(cell.batch)))


def _width(cell: SurfaceCell) -> int:
    text = cell.num_draft_tokens
    return int(text) if text.isascii() and text.isdigit() and len(text) < 6 else 1_000_000


def _cell(
    launch_id: int, key: CellKey, cell: Cell, plain: PlainSteps | None, experts: Experts | None
) -> SurfaceCell:
    batch, width = key
    cycles = total(cell.cycles)
    verify = per_cycle_ms(cell.verify, cell.cycles) if cell.verify is not None else Ratio(None)
    step = plain.step_ms(batch).value if plain else None
    return SurfaceCell(
        launch_id=launch_id,
        num_draft_tokens=width,
        batch=batch,
        cycles=cycles,
        is_few=cycles < MIN_CYCLES,
        verify_ms=verify.value,
        verify_low=verify.low,
        verify_high=verify.high,
        cycle_ms=per_cycle_ms(cell.seconds, cell.cycles).value,
        plain_ms=step,
        verify_ratio=verify.value / step if verify.value is not None and step else None,
        expected_experts_ratio=_predicted(batch, width, experts),
    )


def _predicted(batch: str, width: str, experts: Experts | None) -> float | None:
    requests = MIDDLES.get(batch)
    if experts is None or requests is None or not (width.isascii() and width.isdigit() and len(width) < 6):
        return None
    one, many = (
        expected_experts(tokens, experts.experts, experts.per_token)
        for tokens in (requests, requests * int(width))
    )
    return many / one
