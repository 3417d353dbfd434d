"""Invented content for the page that shows every component; never stored, and labelled demo there."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from specscope_server.acceptance.schemas import Check, EngineRate, Number, NumberState
from specscope_server.kit.figures_theme import LIGHT
from specscope_server.pages import views
from specscope_server.pages.number_views import NumberCard, engine_rate_card, number_card

HOSTILE = '<img src=x onerror="document.title=1"></script><b>bold</b> \u202etxet desrever'
_SOURCE = "sglang:spec_accept_length, SGLang 0.5.8"


def content() -> dict[str, Any]:
    """Return the context of the patterns page."""
    return {
        "kinds": views.KINDS,
        "verdicts": [_verdict(kind) for kind in views.KINDS],
        "numbers": _numbers(),
        "self_checks": views.check_views(_checks()),
        "hostile": HOSTILE,
        "tokens": [field.name.replace("_", "-") for field in fields(LIGHT)],
    }


def _verdict(kind: str) -> views.VerdictView:
    headlines = {
        "ok": "Speculation works: 2.41 tokens per cycle",
        "warn": "Speculation works, but one rank does not report",
        "bad": "The draft is not accepted: 1.12 tokens per cycle",
        "idle": "Idle for 4 min; before that 2.41 tokens per cycle",
        "unknown": "Not enough cycles yet to say",
    }
    return views.VerdictView(kind, headlines[kind], ("A reason in one sentence.", "Another one."))


def _number(value: float | None, unit: str, state: NumberState) -> Number:
    return Number(
        value=value, unit=unit, state=state, definition="1 + mean accepted drafts", source=_SOURCE, n=1240,
        n_unit="cycles", low=value and value * 0.96, high=value and value * 1.05,
        interval_method="block bootstrap over scrapes", age_seconds=4,
    )  # fmt: skip


def _numbers() -> list[NumberCard]:
    cards = [
        number_card(
            f"pattern-{state}",
            f"In state {state}",
            _number(None if state == "no_data" else 2.41, "tokens/cycle", state),
        )
        for state in NumberState
    ]
    rate = EngineRate(
        number=_number(0.19, "1", NumberState.OK),
        formula="τ/D",
        includes_bonus=True,
        floor=1 / 6,
        strict_equivalent=0.024,
    )
    return [*cards, engine_rate_card(rate)]


def _checks() -> list[Check]:
    return [
        Check(name="τ = 1 + ΣSₖ", passed=True, message="2.410 and 2.410 agree."),
        Check(name="every rank reports", passed=False, message="7 of 8 rank groups report."),
        Check(name="Σh = cycles", passed=None, message="This engine version has no request histograms."),
    ]
