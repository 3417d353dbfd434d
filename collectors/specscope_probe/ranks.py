"""Which rank a scheduler is: labels of everything it reports, and whether it speaks for its group.

The attributes moved from version to version; each place is tried in turn.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

RANK_LABELS = ("engine_type", "dp_rank", "tp_rank", "pp_rank", "moe_ep_rank")
"""Labels that SGLang's own metrics carry; not all of them in every version."""


@dataclass(frozen=True, slots=True)
class Rank:
    """Who reports."""

    labels: dict[str, str]
    is_speaker: bool
    """First of its tensor-parallel group in the last stage of its pipeline, which has the draft: the only one
    to report what all of them see."""


def rank_of(scheduler: Any) -> Rank:
    """Return the rank of a running scheduler."""
    labels = _engine_labels(scheduler) or _own_labels(scheduler)
    attention_rank = _look_up(scheduler, "attn_tp_rank")
    first = attention_rank if attention_rank is not None else _look_up(scheduler, "tp_rank")
    last_stage = (_look_up(scheduler, "pp_size") or 1) - 1
    return Rank(labels, not first and (_look_up(scheduler, "pp_rank") or 0) == last_stage)


def _engine_labels(scheduler: Any) -> dict[str, str] | None:
    """Return the rank labels that this process gives to the engine's own metrics."""
    reporter = getattr(scheduler, "metrics_reporter", None)
    for holder in (scheduler, reporter):
        labels = getattr(getattr(holder, "metrics_collector", None), "labels", None)
        if isinstance(labels, dict):
            return {name: str(labels[name]) for name in RANK_LABELS if name in labels}
    return None


def _own_labels(scheduler: Any) -> dict[str, str]:
    values = {name: _look_up(scheduler, name) for name in RANK_LABELS if name != "engine_type"}
    return {name: str(value) for name, value in values.items() if value is not None}


def _look_up(scheduler: Any, name: str) -> int | None:
    for place in _places(scheduler):
        with suppress(Exception):  # some places raise for what they do not know
            value = getattr(place, name, None)
            if isinstance(value, int):
                return value
    return None


def _places(scheduler: Any) -> Iterator[Any]:
    yield scheduler  # up to 0.5.13
    yield getattr(scheduler, "ps", None)  # 0.5.15
    if "sglang.srt.runtime_context" in sys.modules:  # 0.5.20 and newer
        with suppress(Exception):
            yield importlib.import_module("sglang.srt.runtime_context").get_parallel()
