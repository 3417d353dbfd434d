"""The result of a replay as one document: printed as JSON, and sent to Specscope in an event."""

from __future__ import annotations

import math
from typing import Any

from specscope_collectors.observations import Event
from specscope_collectors.replays.comparing import Nearness
from specscope_collectors.replays.pairing import Compared
from specscope_collectors.replays.samples import Training
from specscope_collectors.replays.spooled import Gathered
from specscope_collectors.replays.verdicts import SlotVerdict, Verdict

KIND = "replay"
WORDS = {
    Verdict.SAME: "same",
    Verdict.QUANTISED: "same, but quantised",
    Verdict.WRONG_BOUNDARY: "WRONG BOUNDARY",
    Verdict.ROTATED: "ROTATED",
    Verdict.POST_NORM: "POST-NORM",
    Verdict.UNLIKE: "UNLIKE ANY BOUNDARY",
    Verdict.UNSURE: "unsure",
    Verdict.NO_DATA: "no data",
}
FAULTS = frozenset({Verdict.WRONG_BOUNDARY, Verdict.ROTATED, Verdict.POST_NORM, Verdict.UNLIKE})
OPEN = frozenset({Verdict.UNSURE, Verdict.NO_DATA})


def document_of(compared: Compared, training: Training, gathered: Gathered, run: str) -> dict[str, Any]:
    """Return everything that was found out, as JSON can hold it. No token id is in it."""
    return {
        "run": run,
        "way": gathered.way,
        "requests": len(training.samples),
        "tokens": sum(len(sample.token_ids) for sample in training.samples),
        "captured": list(gathered.boundaries) if gathered.boundaries is not None else None,
        "compared_with": "boundaries" if compared.is_fine else "slots",
        "places": [place.name for place in compared.places],
        "slots": [_slot(each) for each in compared.slots],
    }


def _slot(found: SlotVerdict) -> dict[str, Any]:
    return {
        "slot": found.slot,
        "verdict": found.verdict.value,
        "words": found.words,
        "claimed": found.claimed,
        "nearest": found.nearest,
        "nearest_boundary": found.nearest_boundary,
        "at_claimed": _nearness(found.at_claimed),
        "at_nearest": _nearness(found.at_nearest),
        "runner_up": found.runner_up,
        "runner_up_ratio": _number(found.runner_up_ratio),
        "votes": _number(found.votes),
        "rows": found.rows,
        "requests": found.requests,
        "distances": [_number(each) for each in found.distances],
    }


def _nearness(found: Nearness | None) -> dict[str, float | None] | None:
    if found is None:
        return None
    return {
        "relative_l2": _number(found.relative_l2),
        "cosine": _number(found.cosine),
        "ln_norm_ratio": _number(found.ln_norm_ratio),
    }


def _number(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(f"{value:.6g}")


def event_of(document: dict[str, Any], time_ms: int) -> Event:
    """Return the event by which a page can show the newest replay."""
    words = ", ".join(f"slot {each['slot']} {WORDS[Verdict(each['verdict'])]}" for each in document["slots"])
    return Event(kind=KIND, time_ms=time_ms, message=f"paired replay: {words}"[:1_000], detail=document)


def exit_status(compared: Compared) -> int:
    """Return 0 when all slots are as in training, 3 for a fault, 4 when some could not be told."""
    verdicts = {each.verdict for each in compared.slots}
    return 3 if verdicts & FAULTS else 4 if verdicts & OPEN or not verdicts else 0
