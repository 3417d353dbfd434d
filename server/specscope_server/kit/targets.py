"""Which series are of the model that a launch serves, and which of a draft engine beside it (pure).

A draft engine (or any other model) that is listed on the same page has tokens and requests of its own: added
to the target's, every sum is wrong.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from specscope_server.kit.versions import is_lower_bound

Key = TypeVar("Key", bound=Hashable)
DRAFT_ENGINE = "draft"
MAX_NAMED = 3
MAX_NAME = 60
OTHER = "they are not of the model that the launch serves"


@dataclass(frozen=True, slots=True)
class TargetNames:
    """What a launch says about the names of its models."""

    served: frozenset[str]
    """Names that the target's series may carry; empty = the engine did not say."""
    draft: str | None = None


@dataclass(frozen=True, slots=True)
class Chosen(Generic[Key]):
    """The series that are used, and what a reader must know about the choice (empty: nothing)."""

    kept: list[Key]
    note: str = ""


def target_names(
    served_model_name: str | None, model: str | None, draft_model: str | None, version_source: str | None
) -> TargetNames:
    """Return the names of a launch. A launch told from metric names only guessed its served model."""
    said = () if is_lower_bound(version_source) else (served_model_name, model)
    served = frozenset(name for name in said if name)
    return TargetNames(served, None if draft_model in served else draft_model)


def of_target(series: Sequence[tuple[Key, Mapping[str, str]]], names: TargetNames) -> Chosen[Key]:
    """Return the series of the target: all of them, with a note, when none can be told to be its.

    ``series``: (key, labels) of one launch. A series without a model's name is the target's.
    """
    engines = [entry for entry in series if not _is_draft(entry[1], names)]
    if not engines:
        return Chosen([key for key, _ in series], "only series of a draft engine were read" if series else "")
    named = [entry for entry in engines if not _is_foreign(entry[1], names)]
    kept = named if any("model_name" in labels for _, labels in named) else engines
    notes = [_unsure(kept, names)]
    if len(kept) < len(series):
        others = _models(series) - _models(kept)
        notes.append(f"series of {_listed(others) if others else 'a draft engine'} are left out: {OTHER}")
    return Chosen([key for key, _ in kept], "; ".join(filter(None, notes)))


def _is_draft(labels: Mapping[str, str], names: TargetNames) -> bool:
    is_named_so = names.draft is not None and labels.get("model_name") == names.draft
    return is_named_so or labels.get("engine_type") == DRAFT_ENGINE


def _is_foreign(labels: Mapping[str, str], names: TargetNames) -> bool:
    return bool(names.served) and labels.get("model_name", "") not in (*names.served, "")


def _models(series: Sequence[tuple[Key, Mapping[str, str]]]) -> set[str]:
    return {labels["model_name"] for _, labels in series if "model_name" in labels}


def _unsure(kept: Sequence[tuple[Key, Mapping[str, str]]], names: TargetNames) -> str:
    """Say that what is kept may not be of one model, or not of the one that the launch names."""
    models = _models(kept)
    if names.served and models and models.isdisjoint(names.served):
        return f"no series carries the launch's model {_listed(names.served)}; {_listed(models)} is used"
    if not names.served and len(models) > 1:
        return f"the engine does not say which model it serves; {_listed(models)} are taken together"
    return ""


def _listed(models: frozenset[str] | set[str]) -> str:
    shown = [repr(name[:MAX_NAME]) for name in sorted(models)[:MAX_NAMED]]
    return ", ".join(shown) + (" …" if len(models) > MAX_NAMED else "")
