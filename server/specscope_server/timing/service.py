"""Compose the summary of where the time of a server went."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy.orm import Session

from specscope_server.acceptance import numbers
from specscope_server.acceptance.positions import positions
from specscope_server.acceptance.schemas import Verdict
from specscope_server.kit.timeparse import to_iso
from specscope_server.kit.web.params import TimeRange
from specscope_server.kit.web.state import AppState
from specscope_server.store.lookup import choose_launches, server_by_name
from specscope_server.timing import timed_numbers as worded
from specscope_server.timing.baseline import BreakEven, PlainSteps, break_even, find_baseline
from specscope_server.timing.checks import checks_of
from specscope_server.timing.costs import sensitivities, waste_of
from specscope_server.timing.evidence import blind_spots, evidence_note, level_items
from specscope_server.timing.facts import Facts, facts_of, phase_rows
from specscope_server.timing.measure import Timed, measure
from specscope_server.timing.schemas import TimingSummary
from specscope_server.timing.statistics import total
from specscope_server.timing.verdict import judge
from specscope_server.timing.words import timed_launch


@dataclass(frozen=True, slots=True)
class Question:
    """What every answer about time is asked."""

    server: str
    launch: str | None
    span: TimeRange
    rank: int | None = None


@dataclass(frozen=True, slots=True)
class Plain:
    """The baseline of a window, and where it meets the window's batch sizes."""

    steps: PlainSteps | None
    even: BreakEven | None


def timed_of(session: Session, state: AppState, asked: Question) -> Timed:
    """Return what a window holds. Raises `NotFound` for an unknown server or launch."""
    row = server_by_name(session, asked.server)
    span = asked.span
    launches = choose_launches(session, row.id, asked.launch, span.from_ms, span.to_ms)
    return measure(
        session, state, row.id, launches, span.from_ms, span.to_ms, span.now_ms, asked.rank
    )  # fmt: skip


def plain_of(session: Session, state: AppState, timed: Timed, facts: Facts | None, now_ms: int) -> Plain:
    """Return the baseline; of a window that is plain itself there is none to look for."""
    if facts is None or facts.track.is_plain:
        return Plain(None, None)
    steps = find_baseline(session, state, timed, now_ms)
    return Plain(steps, break_even(facts.track, steps) if steps else None)


def summary(session: Session, state: AppState, asked: Question) -> TimingSummary:
    """Return where the time went. Raises `NotFound` for an unknown server or launch."""
    timed = timed_of(session, state, asked)
    facts = facts_of(timed)
    plain = plain_of(session, state, timed, facts, asked.span.now_ms)
    found = _summary(timed, facts, plain, asked)
    found.checks = checks_of(timed, facts)
    found.sensitivity = sensitivities(facts, alphas_of(session, asked))
    found.verdict = judge(timed, facts, found.speed_up, found.sensitivity, found.checks)
    return found


def alphas_of(session: Session, asked: Question) -> list[float]:
    """Return α_1 … α_K of the newest launch as measured by position; empty where they are not known."""
    groups = positions(session, asked.server, asked.launch, asked.span).groups
    points = groups[-1].positions if groups else []
    if not points or any(point.conditional is None or point.is_few for point in points):
        return []
    return [point.conditional for point in points if point.conditional is not None]


def _summary(timed: Timed, facts: Facts | None, plain: Plain, asked: Question) -> TimingSummary:
    newest = timed.launches[-1].launch if timed.launches else None
    window = timed.window
    return TimingSummary.model_validate(
        {
            "server": asked.server,
            "launch": timed_launch(newest) if newest else None,
            "launches": len(timed.alike(timed.level)),
            "from": to_iso(window.from_ms),
            "to": to_iso(window.to_ms),
            "is_demo": any(one.launch.is_demo for one in timed.launches),
            "evidence": timed.level,
            "evidence_note": evidence_note(timed),
            "levels": level_items(timed),
            "cycle_time": worded.cycle_time(timed, facts),
            "verify_time": worded.verify_time(timed, facts),
            "verify_share": worded.verify_share(timed, facts),
            "plain_time": worded.plain_time(timed, facts, plain.steps, plain.even, asked.span.now_ms),
            "break_even": worded.break_even_length(timed, facts, plain.steps, plain.even),
            "speed_up": worded.speed_up(timed, facts, plain.steps, plain.even),
            "accept_length": facts.length if facts else numbers.accept_length(timed.context),
            "tokens_per_second": worded.rate(timed, facts),
            "requests_per_cycle": worded.batch(timed, facts),
            "cycles": facts.cycles if facts else None,
            "wall_seconds": total(facts.track.wall) if facts else None,
            "emitted_tokens": facts.emitted if facts else None,
            "accepted_drafts": facts.accepted if facts else None,
            "warm_up_cycles": facts.track.warm_up_cycles if facts else 0.0,
            "phases": phase_rows(facts) if facts else [],
            "waste": waste_of(timed, facts),
            "sensitivity": [],
            "blind_spots": blind_spots(timed),
            "checks": [],
            "verdict": Verdict(state="unknown", headline="", reasons=[]),
        }
    )
