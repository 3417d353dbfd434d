"""Runs of the canary of one server, and their comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from specscope_server.canary.comparison import changes_of, pairs_of, verdict_of
from specscope_server.canary.reading import MAX_REQUESTS, Asked, asked_between
from specscope_server.canary.runs import counts_of, runs_of
from specscope_server.canary.schemas import CanaryComparison, CanaryRun, CanaryRuns, CanarySide
from specscope_server.kit.errors import InvalidInput, NotFound
from specscope_server.kit.timeparse import to_iso
from specscope_server.kit.web.params import TimeRange
from specscope_server.models import Launch
from specscope_server.store.chunks import chunks
from specscope_server.store.lookup import server_by_name

HOW_TO_WATCH = "add a [[canary]] table to the collectors' file"


@dataclass(frozen=True, slots=True)
class Side:
    """Answers of one side, with words for it."""

    words: str
    answers: Sequence[Asked]


def runs(session: Session, server: str, span: TimeRange) -> CanaryRuns:
    """Return the runs that began in the range, newest first. Raises `NotFound`."""
    answers = _answers(session, server, span)
    return CanaryRuns(
        server=server,
        is_demo=is_demo(session, answers),
        is_limited=len(answers) >= MAX_REQUESTS,
        runs=runs_of(answers),
    )


def compare(session: Session, server: str, span: TimeRange, a: str | None, b: str | None) -> CanaryComparison:
    """Return b against a. A side is a launch (its id) or a run (its epoch milliseconds).

    Without a choice: the newest launch of the range against the one before it, or if there is only one, its
    newest run against the run before. Raises `NotFound` and `InvalidInput`.
    """
    answers = _answers(session, server, span)
    newest = answers[0].prompt_set if answers else None
    answers = [each for each in answers if each.prompt_set == newest]
    before, after = _sides(answers, a, b)
    pairs = pairs_of(before.answers, after.answers) if before and after else []
    changes = changes_of(pairs)
    state, words = verdict_of(changes, pairs) if before and after else ("unknown", _nothing(answers))
    return CanaryComparison(
        server=server,
        prompt_set=newest,
        is_demo=is_demo(session, answers),
        verdict=words,
        state=state,
        a=_described(before),
        b=_described(after),
        changes=changes,
        outputs_changed=sum(not pair.same_output for pair in pairs),
        pairs=pairs,
    )


def is_demo(session: Session, answers: Sequence[Asked]) -> bool:
    """Tell whether any of the answers came from the demo engine."""
    ids = sorted({each.launch_id for each in answers if each.launch_id is not None})
    return any(
        session.scalars(select(Launch.id).where(Launch.id.in_(part), Launch.is_demo).limit(1)).first()
        for part in chunks(ids)
    )


def _answers(session: Session, server: str, span: TimeRange) -> list[Asked]:
    return asked_between(session, server_by_name(session, server).id, span.from_ms, span.to_ms)


def _sides(answers: Sequence[Asked], a: str | None, b: str | None) -> tuple[Side | None, Side | None]:
    if a is not None or b is not None:
        if a is None or b is None:
            raise InvalidInput("a and b belong together: give both, or neither for the newest two")
        return _chosen(answers, a, "a"), _chosen(answers, b, "b")
    launches = list(dict.fromkeys(each.launch_id for each in answers))
    if len(launches) > 1:
        return _of_launch(answers, launches[1]), _of_launch(answers, launches[0])
    newest = runs_of(answers)[:2]
    return (_of_run(answers, newest[1]), _of_run(answers, newest[0])) if len(newest) == 2 else (None, None)


def _chosen(answers: Sequence[Asked], text: str, name: str) -> Side:
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise InvalidInput(f"{name}={text[:40]!r} is neither a launch id nor a run; see /api/v1/canary/runs")
    number = int(text)
    run = next((run for run in runs_of(answers) if run.run == number), None)
    if run is not None:
        return _of_run(answers, run)
    found = _of_launch(answers, number)
    if not found.answers:
        raise NotFound(f"no canary run of the range has {name}={number}, as a run or as its launch id")
    return found


def _of_launch(answers: Sequence[Asked], launch_id: int | None) -> Side:
    return Side(f"launch {launch_id}", [each for each in answers if each.launch_id == launch_id])


def _of_run(answers: Sequence[Asked], run: CanaryRun) -> Side:
    return Side(f"run of {to_iso(run.run)}", [each for each in answers if each.run_ms == run.run])


def _described(side: Side | None) -> CanarySide | None:
    if side is None:
        return None
    return CanarySide(
        words=side.words,
        launch_ids=sorted({each.launch_id for each in side.answers if each.launch_id is not None}),
        runs=len({each.run_ms for each in side.answers}),
        prompts=len({each.prompt for each in side.answers}),
        accept_length=counts_of(side.answers).accept_length,
    )


def _nothing(answers: Sequence[Asked]) -> str:
    return "One run so far: nothing to compare it with" if answers else f"No canary ran: {HOW_TO_WATCH}"
