"""What the comparison is made of: merged profiles of serving and of references, and rows as seen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import orjson
from sqlalchemy import select
from sqlalchemy.orm import Session

from specscope_collectors.observations import StateProfile
from specscope_collectors.states.distances import quantiles, resultant
from specscope_collectors.states.sums import Sums, sums_of
from specscope_server.drift.facts import read_windows
from specscope_server.drift.launches import marker
from specscope_server.drift.numbers import known
from specscope_server.drift.reading import SERVING_PHASES
from specscope_server.drift.schemas import DriftProfiles, ProfileRow, Quantiles, SampledRow
from specscope_server.drift.service import Question, Scene, scene_of, used
from specscope_server.drift.windows import Plan, plan_windows
from specscope_server.kit.timeparse import to_iso
from specscope_server.models import Event

ROW_CLASSES = ("other", "head", "sink")
CAPTURE, ROWS = "state_capture", "state_rows"
TOP_CHANNELS = 4
SHARES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
MOST_EVENTS, MOST_ROWS = 20, 60


def profiles(session: Session, question: Question) -> DriftProfiles:
    """Return the inspector's data. Raises as `scene_of`."""
    scene = scene_of(session, question)
    span = question.span
    events = _events(session, scene, span.from_ms, span.to_ms)
    return DriftProfiles.model_validate(
        {
            "server": scene.server.name,
            "from": to_iso(span.from_ms),
            "to": to_iso(span.to_ms),
            "is_demo": scene.is_demo,
            "launch": marker(scene.launch) if scene.launch else None,
            "reference": used(scene.yard.training),
            "boundaries_reference": used(scene.yard.boundaries),
            "profiles": [*_serving(session, scene), *_references(scene)],
            "rows": [*list(_rows(events))[:MOST_ROWS], *_rows_of_training(scene)],
            "capture": next((_detail(event) for event in events if event.kind == CAPTURE), None),
        }
    )


def _serving(session: Session, scene: Scene) -> Iterator[ProfileRow]:
    """Yield the newest window of each place and class."""
    newest = [
        (row_class, plans[-1])
        for row_class in ROW_CLASSES
        for plans in plan_windows(scene.entries, 1, row_class).values()
    ]
    newest.sort(key=lambda each: (each[1].slot, SERVING_PHASES.index(each[1].phase)))
    read = read_windows(session, [plan for _, plan in newest])
    for (row_class, plan), window in zip(newest, read, strict=True):
        yield _row("serving", plan, row_class, window.sums, window.invariants)


def _references(scene: Scene) -> Iterator[ProfileRow]:
    for side, kind in (("training", scene.yard.training), ("boundaries", scene.yard.boundaries)):
        for each in kind.document.profiles if kind is not None else ():
            yield _row(side, each, each.row_class, sums_of(each), each.invariants)


def _row(
    side: str, place: Plan | StateProfile, row_class: str, sums: Sums, invariants: Mapping[str, int]
) -> ProfileRow:
    norms = sums.norms
    mean = norms.sum / norms.rows if norms.rows else None
    variance = norms.sum_of_squares / norms.rows - mean * mean if mean is not None else None
    channels, share = _top(sums)
    values = (known(value) for value in quantiles(norms, SHARES))
    return ProfileRow(
        side=side, slot=place.slot, boundary=place.boundary, phase=place.phase, row_class=row_class,
        profiles=sums.profiles, rows=sums.rows, requests=sums.requests, hidden_size=sums.hidden_size,
        mean_ln_norm=mean, sd_ln_norm=None if variance is None else max(variance, 0.0) ** 0.5,
        quantiles=Quantiles(**dict(zip(Quantiles.model_fields, values, strict=True))),
        mean_resultant=known(resultant(sums)), common_ids=len(sums.token_ids),
        common_rows=sums.common_rows, top_channels=channels, top_share=share,
        invariants=dict(invariants),
    )  # fmt: skip


def _top(sums: Sums) -> tuple[list[int], float | None]:
    total = float(sums.energy.sum()) if len(sums.energy) else 0.0
    if total <= 0:
        return [], None
    channels = np.argsort(-sums.energy, kind="stable")[:TOP_CHANNELS]
    return channels.tolist(), float(sums.energy[channels].sum() / total)


def _events(session: Session, scene: Scene, from_ms: int, to_ms: int) -> list[Event]:
    query = (
        select(Event)
        .where(
            Event.server_id == scene.server.id, Event.time_ms > from_ms, Event.time_ms <= to_ms,
            Event.kind.in_((CAPTURE, ROWS)),
        )
        .order_by(Event.time_ms.desc(), Event.id.desc())
        .limit(MOST_EVENTS)
    )  # fmt: skip
    if scene.launch is not None:
        query = query.where(Event.launch_id == scene.launch.id)
    return list(session.scalars(query))


def _detail(event: Event) -> dict[str, Any]:
    found = orjson.loads(event.detail)
    return found if isinstance(found, dict) else {}


def _rows_of_training(scene: Scene) -> Iterator[SampledRow]:
    """Yield rows as they stand in the dump that serving is compared with."""
    training = scene.yard.training
    if training is None:
        return
    for row in training.document.samples:
        yield SampledRow(
            side="training", time=to_iso(training.version.made_ms), phase="prefill",
            slot=row.slot, position=row.position, norm=row.norm, first_values=list(row.first_values),
            token_id=row.token_id, row_class=row.row_class,
        )  # fmt: skip


def _rows(events: Iterable[Event]) -> Iterator[SampledRow]:
    """Yield rows of the newest events; what is not of the shape that the probe writes is passed over."""
    for event in events:
        rows = _detail(event).get("rows") if event.kind == ROWS else None
        for row in rows if isinstance(rows, list) else ():
            try:
                yield SampledRow(**{**row, "side": "serving", "time": to_iso(event.time_ms)})
            except (TypeError, ValueError):
                continue
