"""Where to measure: one table for all versions and workers, matched by what an object has.

SGLang renames and moves these methods from version to version (0.4.6 to 0.5.23 are covered), so nothing here
asks for a version: a seam is there when one of its names is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Place:
    """One seam: whose methods carry it, under which names, and what is measured there."""

    name: str
    owner: str
    attributes: tuple[str, ...]
    """Newest name first."""
    measures: str


CYCLE = Place(
    "cycle",
    "worker",
    ("forward_batch_generation", "forward_batch_speculative_generation"),
    "whole cycles and the gaps between them",
)
DRAFT = Place("draft", "drafter", ("draft", "_prepare_for_speculative_decoding"), "drafting")
VERIFY = Place("verify", "worker", ("verify",), "preparing the verify forward, and sampling after it")
FORWARD = Place("forward", "runner", ("forward",), "the target's forward: verify, prefill, plain decode")
DRAFT_EXTEND = Place(
    "draft_extend",
    "drafter",
    ("_draft_extend_for_decode", "forward_draft_extend_after_decode"),
    "the draft's extend after verify",
)
PREFILL_EXTEND = Place(
    "prefill_draft_extend",
    "drafter",
    ("_draft_extend_for_prefill", "forward_draft_extend"),
    "the draft's part of a prefill",
)
RESULTS = Place(
    "results",
    "results",
    ("_resolve_spec_v2_tokens", "_resolve_spec_overlap_token_ids"),
    "accepted drafts per request",
)

DRAFTING = (DRAFT, DRAFT_EXTEND, PREFILL_EXTEND)
PLACES = (CYCLE, DRAFT, VERIFY, FORWARD, DRAFT_EXTEND, PREFILL_EXTEND, RESULTS)


@dataclass(frozen=True, slots=True)
class Found:
    """A seam of a running engine."""

    place: Place
    owner: Any
    attribute: str


def owners(scheduler: Any) -> dict[str, Any]:
    """Return the objects of a running scheduler by the names used in `PLACES`; None where there is none."""
    target = scheduler.tp_worker
    worker = getattr(scheduler, "draft_worker", None)
    inner = getattr(worker, "draft_worker", None)
    return {
        "worker": target if worker is None else worker,
        "drafter": inner if any(_name_in(inner, place) for place in DRAFTING) else worker,
        "runner": getattr(target, "model_runner", None),
        "results": _results_owner(scheduler),
    }


def find(scheduler: Any) -> tuple[dict[str, Found], dict[str, str]]:
    """Return the seams of a running scheduler by name, and for each missing one the reason."""
    there = owners(scheduler)
    found, missing = {}, {}
    for place in PLACES:
        owner = there[place.owner]
        attribute = _name_in(owner, place)
        if attribute is None:
            missing[place.name] = _why_missing(place, owner)
        else:
            found[place.name] = Found(place, owner, attribute)
    return found, missing


def _name_in(owner: Any, place: Place) -> str | None:
    if owner is None:
        return None
    return next((name for name in place.attributes if callable(getattr(owner, name, None))), None)


def _why_missing(place: Place, owner: Any) -> str:
    if owner is None:
        return f"this engine has no {place.owner}"
    kind = owner.__name__ if isinstance(owner, type) else type(owner).__name__
    return f"{kind} has none of {', '.join(place.attributes)}"


def _results_owner(scheduler: Any) -> Any:
    """Return the scheduler if it resolves results itself, else the class of its component that does.

    The component takes no attributes of its own (a frozen dataclass with slots), so the class is patched.
    """
    if _name_in(scheduler, RESULTS):
        return scheduler
    components = vars(scheduler).values()
    return next((type(each) for each in components if _name_in(type(each), RESULTS)), None)
