"""States of a replay through SGLang's own ``return_hidden_states``, where that can be trusted.

Up to 0.5.15 rows are cut out of a batch by the lengths of whole prompts although a cached prefix has no rows,
and under speculation by the number of the request although each has several: rows of other requests come back
(sgl-project/sglang, 26163). From 0.5.20 on rows are cut by what was computed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from specscope_collectors.replays.engine import MARK, Engine
from specscope_collectors.replays.errors import ReplayError
from specscope_collectors.replays.pairing import Served
from specscope_collectors.replays.samples import Sample, Training
from specscope_collectors.replays.spooled import Gathered

TRUSTED = (0, 5, 20)
INSTEAD = "use the probe: SPECSCOPE_PROBE_REPLAY=1, and --spool"


def version_of(info: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the first three numbers of the engine's version; () = it does not say."""
    numbers = []
    for part in str(info.get("version") or "").split(".")[:3]:
        digits = "".join(c for c in part if c.isdigit()) if part[:1].isdigit() else ""
        numbers.append(digits)
    return tuple(int(each[:6]) for each in numbers) if numbers and all(numbers) else ()


def why_not(info: Mapping[str, Any]) -> str | None:
    """Return why states that this engine returns cannot be trusted; None: they can."""
    version = version_of(info)
    if not version:
        return f"the engine does not say its version, so its returned states are not trusted; {INSTEAD}"
    if version < TRUSTED:
        return (
            f"SGLang {'.'.join(map(str, version))} can return rows of other requests (trusted from "
            f"{'.'.join(map(str, TRUSTED))} on); {INSTEAD}"
        )
    if not info.get("enable_return_hidden_states"):
        return f"the engine was started without --enable-return-hidden-states; {INSTEAD}"
    return None


def through_engine(engine: Engine, training: Training, run: str) -> Gathered:
    """Ask for states with each sample, one after the other. Raises ReplayError.

    The requests' ids are not those that a probe listens to: nobody would read what it keeps.
    """
    reason = why_not(engine.info())
    if reason is not None:
        raise ReplayError(reason)
    gathered = Gathered(way="engine")
    for index, sample in enumerate(training.samples):
        more = {"return_hidden_states": True}
        answer = engine.prefill(sample.token_ids.tolist(), f"{MARK}-direct-{run}-{index}", more)
        found = _served(sample, answer)
        if found is not None:
            gathered.served[index] = found
    if not gathered.served:
        gathered.missing = f"the engine returned no states; {INSTEAD}"
    return gathered


def _served(sample: Sample, answer: Mapping[str, Any]) -> Served | None:
    """Return the rows of the prompt; a cached prefix has none. Raises ReplayError when they do not add up."""
    meta = answer.get("meta_info")
    states = meta.get("hidden_states") if isinstance(meta, dict) else None
    if not isinstance(states, list) or not states or not isinstance(meta, dict):
        return None
    cached = meta.get("cached_tokens")
    cached = cached if type(cached) is int else 0
    try:
        chunks = [np.atleast_2d(np.asarray(each, np.float32)) for each in states]
    except (TypeError, ValueError):
        raise ReplayError("the engine returned states that are no numbers") from None
    wanted = len(sample.token_ids) - cached
    rows: list[np.ndarray[Any, np.dtype[np.float32]]] = []
    for chunk in chunks:
        if sum(map(len, rows)) < wanted:
            rows.append(chunk)
    have = sum(map(len, rows))
    if have != wanted or len({each.shape[1] for each in rows}) != 1:
        raise ReplayError(
            f"the engine returned {have} rows for {wanted} tokens that it computed: not trusted; {INSTEAD}"
        )
    return Served(np.arange(cached, len(sample.token_ids)), np.concatenate(rows))
