"""Does the draft see in serving what it was trained on? Reads the newest windows and says so."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy.orm import Session

from specscope_collectors.states.rules import VOTES
from specscope_server.drift.budget import false_alarms
from specscope_server.drift.cells import Judgement, cell_of, judge_cell, missing_of
from specscope_server.drift.choosing import Asked, choose
from specscope_server.drift.facts import facts_of
from specscope_server.drift.findings import claims_of, phases_of, ranks_of
from specscope_server.drift.launches import marker
from specscope_server.drift.matching import assignment_of
from specscope_server.drift.numbers import curve_of
from specscope_server.drift.reading import SERVING_PHASES, Entry, bodies, newest_entries
from specscope_server.drift.schemas import Drift, Invariant, Resolution, UsedReference
from specscope_server.drift.slots import RESOLUTION_NOTES, SLOTS_ONLY, slot_verdict, verdict_of
from specscope_server.drift.windows import plan_windows
from specscope_server.drift.yardsticks import Boundaries, Training, Yardstick
from specscope_server.kit.timeparse import to_iso
from specscope_server.kit.web.params import TimeRange
from specscope_server.models import Launch, Server
from specscope_server.store.lookup import choose_launches, launches_between, server_by_name

APART = ("head", "sink")
"""Classes of rows that are never pooled with others."""
MOST_UNUSABLE = 10
WHOLE_RANGE = ("all", "newest", "", None)
PROBE_HINT = (
    "profiles of hidden states: start the engine with SPECSCOPE_SPOOL set, and let a collector read that "
    "folder (see the guide to state profiles)"
)


@dataclass(frozen=True, slots=True)
class Question:
    """What every answer about drift is asked."""

    server: str
    launch: str | None
    span: TimeRange
    asked: Asked = field(default_factory=Asked)


@dataclass(frozen=True, slots=True)
class Scene:
    """Serving profiles of one launch, and what they are compared with."""

    server: Server
    launch: Launch | None
    launches: tuple[Launch, ...]
    """In the range."""
    entries: tuple[Entry, ...]
    """Of the launch that is judged, newest first."""
    yard: Yardstick

    @property
    def is_demo(self) -> bool:
        """Whether any of it is simulated."""
        return any(launch.is_demo for launch in self.launches)


def scene_of(session: Session, question: Question) -> Scene:
    """Return what is judged: the launch asked for, else that of the newest profile in the range.

    Raises `NotFound` for an unknown server, launch or reference, `InvalidInput` for one that cannot be.
    """
    server = server_by_name(session, question.server)
    span = question.span
    chosen = None
    if question.launch not in WHOLE_RANGE:
        chosen = choose_launches(session, server.id, question.launch, span.from_ms, span.to_ms)
    ids = [launch.id for launch in chosen] if chosen else None
    entries = newest_entries(session, server.id, span.from_ms, span.to_ms, ids)
    own = [entry for entry in entries if entry.launch_id == entries[0].launch_id]
    launch = chosen[0] if chosen else _launch_of(session, own)
    yard = choose(
        session, question.asked, own[0].hidden_size if own else None, launch.model if launch else None
    )
    launches = tuple(launches_between(session, server.id, span.from_ms, span.to_ms))
    return Scene(server, launch, launches, tuple(own), yard)


def _launch_of(session: Session, entries: Sequence[Entry]) -> Launch | None:
    number = entries[0].launch_id if entries else None
    return session.get(Launch, number) if number is not None else None


def judgements_of(session: Session, scene: Scene) -> list[Judgement]:
    """Return each slot and phase judged by its last windows."""
    plans = plan_windows(scene.entries, VOTES)
    more = _counts_of_other_classes(session, scene.entries)
    found = []
    for place in sorted(plans, key=lambda place: (place[2], SERVING_PHASES.index(place[1]))):
        _, phase, slot = place
        counts, rows = more.get((phase, slot), ([], 0))
        facts = facts_of(session, plans[place], scene.yard)
        found.append(judge_cell(slot, phase, facts, scene.yard, counts, rows))
    # A slot that has no ordinary rows at all must not be left out of the verdict.
    for slot in sorted({entry.slot for entry in scene.entries} - {slot for _, _, slot in plans}):
        found += [
            judge_cell(slot, phase, (), scene.yard, *more[phase, slot])
            for phase in SERVING_PHASES
            if (phase, slot) in more
        ]
    return found


def _counts_of_other_classes(
    session: Session, entries: Sequence[Entry]
) -> dict[tuple[str, int], tuple[list[Mapping[str, int]], int]]:
    """Return invariant counts of the newest head and sink rows, which are never pooled with others."""
    newest = [
        plans[-1] for row_class in ("head", "sink") for plans in plan_windows(entries, 1, row_class).values()
    ]
    read = bodies(session, (number for plan in newest for number in plan.key)).records
    found: dict[tuple[str, int], tuple[list[Mapping[str, int]], int]] = {}
    for plan in newest:
        counts, rows = found.get((plan.phase, plan.slot), ([], 0))
        own = [
            {name: read[number].invariants.get(name, 0) for name in ("nonfinite_rows", "zero_rows")}
            for number in plan.key
            if number in read
        ]
        found[plan.phase, plan.slot] = ([*counts, *own], rows + plan.rows)
    return found


def drift(session: Session, question: Question) -> Drift:
    """Return the verdict with everything it rests on. Raises as `scene_of`."""
    scene = scene_of(session, question)
    yard = scene.yard
    cells = judgements_of(session, scene)
    numbers = sorted({cell.slot for cell in cells})
    slots = [slot_verdict([cell for cell in cells if cell.slot == slot], yard) for slot in numbers]
    findings = _findings(session, scene, cells, question.span.to_ms)
    assignment = assignment_of(session, scene.entries, yard)
    missing = missing_words(scene, cells)
    phases = [phase for phase in SERVING_PHASES if any(cell.phase == phase for cell in cells)]
    return Drift.model_validate(
        {
            "server": scene.server.name,
            "from": to_iso(question.span.from_ms),
            "to": to_iso(question.span.to_ms),
            "is_demo": scene.is_demo,
            "launch": marker(scene.launch) if scene.launch else None,
            "launches": [marker(launch) for launch in scene.launches],
            "verdict": verdict_of(slots, findings, assignment, yard, missing),
            "resolution": yard.resolution,
            "resolution_note": RESOLUTION_NOTES[yard.resolution],
            "reference": used(yard.training),
            "boundaries_reference": used(yard.boundaries),
            "phases": phases,
            "slots": slots,
            "cells": [cell_of(cell, yard) for cell in cells],
            "curve": [point for cell in cells if cell.newest for point in curve_of(cell.newest, yard)],
            "assignment": assignment,
            "findings": findings,
            "false_alarms": false_alarms([cell.facts for cell in cells], len(slots)),
            "missing": missing,
            "unusable": unusable_words(yard, [facts.unusable for cell in cells for facts in cell.facts]),
        }
    )


def _findings(session: Session, scene: Scene, cells: Sequence[Judgement], to_ms: int) -> list[Invariant]:
    ranks = ranks_of(session, scene.launch.id if scene.launch else None, to_ms)
    return [
        *claims_of(cells, scene.yard),
        *([phases_of(cells, scene.yard)] if cells else []),
        *([ranks] if ranks else []),
    ]


def missing_words(scene: Scene, cells: Sequence[Judgement]) -> list[str]:
    """Return what would be needed to say more, each thing once, what helps most first."""
    found = [] if cells else [PROBE_HINT]
    if scene.yard.resolution == Resolution.SLOTS:
        found.append(SLOTS_ONLY)
    for cell in cells:
        found += missing_of(cell, scene.yard)
    if scene.yard.training is None and scene.yard.bank is not None:
        found.append("a reference of the training dump: what the engine says it captures stands in for it")
    return list(dict.fromkeys(found))


def unusable_words(yard: Yardstick, profiles: Iterable[Iterable[str]]) -> list[str]:
    """Return what is stored and cannot be used, each once; of profiles a few examples."""
    found = list(dict.fromkeys(words for each in profiles for words in each))
    more = (
        [f"{len(found) - MOST_UNUSABLE} more profiles cannot be used"] if len(found) > MOST_UNUSABLE else []
    )
    return [*yard.unusable, *found[:MOST_UNUSABLE], *more]


def used(kind: Training | Boundaries | None) -> UsedReference | None:
    """Return a reference as answers name it."""
    if kind is None:
        return None
    document, version = kind.document, kind.version
    if isinstance(kind, Training):
        name, boundaries, answers_only = "slots", document.boundaries, bool(kind.answers)
    else:
        places = kind.bank.places
        name, boundaries, answers_only = "boundaries", tuple(place.boundary for place in places), False
    return UsedReference(
        id=version.id, name=version.name, version=version.version, kind=name, model=document.model,
        hidden_size=document.hidden_size, boundaries=list(boundaries), boundary_rule=document.boundary_rule,
        boundary_source=document.boundary_source, tool=document.tool, fingerprint=document.fingerprint,
        requests=document.requests, rows=document.rows, made=to_iso(version.made_ms),
        answers_only=answers_only,
    )  # fmt: skip
