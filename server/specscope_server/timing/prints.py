"""The engine's own log windows, one by one, as its log or its gauges told them.

Every ``decode_log_interval`` cycles SGLang prints a Decode line and writes its gauges: tokens per second and
τ of exactly these cycles, and the requests that run now. A log holds each of them; scrapes see the newest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import orjson
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from specscope_server.acceptance.gather import Labels, series_of_target
from specscope_server.acceptance.statistics import Floats
from specscope_server.kit.ranks import homes, leaders, mirror_group
from specscope_server.kit.timerange import Window
from specscope_server.kit.versions import LOG_LINES
from specscope_server.models import Launch
from specscope_server.store.series_reader import SeriesRef, find_series, read_levels

THROUGHPUT, RUNNING, LENGTH = "throughput.generated", "requests.running", "spec.accept_length"
RATES = (THROUGHPUT, RUNNING, LENGTH)
FINE_MS = 30_000
"""Windows read in coarser buckets than this have no single samples: they are answered from summaries."""

Samples = tuple[NDArray[np.int64], Floats]
"""(times in ms, values) in order of time."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What one scheduler told, moment by moment; arrays of shape (moments,)."""

    time_ms: NDArray[np.int64]
    throughput: Floats
    """Tokens per second; 0 = the engine is idle, or has not printed yet."""
    running: Floats
    length: Floats
    """τ; NaN = not told."""
    prefill_ms: NDArray[np.int64] | None
    """When prefills were printed; None = the source does not tell."""
    is_log: bool
    """Each moment is a line of the log, and no line is missing."""
    interval: int | None
    """Cycles between two prints; None = not known, or the engine prints by the clock."""


def read_shown(
    session: Session, launches: Sequence[Launch], window: Window
) -> dict[int, dict[Labels, Shown]]:
    """Return launch id → scheduler (as `gather` names it) → what it told; empty for long windows."""
    if window.step_ms > FINE_MS or not launches:
        return {}
    found = find_series(session, metrics=RATES, launch_ids=[one.id for one in launches])
    samples = read_levels(session, found, window.from_ms, window.to_ms)
    result = {}
    for launch in launches:
        chosen, _ = series_of_target(launch, [ref for ref in found if ref.id in samples])
        result[launch.id] = {
            home: shown
            for home, parts in _by_scheduler(chosen, samples).items()
            if (shown := _shown(launch, parts)) is not None
        }
    return result


def interval_of(launch: Launch) -> int | None:
    """Return the cycles between two prints of a launch; None = not known, or it prints by the clock."""
    told = orjson.loads(launch.config).get("decode_log_interval") if launch.config else None
    return told if isinstance(told, int) and told > 0 else None


def _by_scheduler(
    refs: Sequence[SeriesRef], samples: Mapping[int, Samples]
) -> dict[Labels, dict[str, Samples]]:
    kept = [
        ref for metric in RATES for ref in leaders((ref, ref.labels) for ref in refs if ref.metric == metric)
    ]
    home = homes([mirror_group(ref.labels) for ref in kept])
    found: dict[Labels, dict[str, Samples]] = {}
    # The source that tells more comes first: one that tells less of the same scheduler fills its gaps.
    for ref in sorted(kept, key=lambda ref: -len(ref.labels)):
        parts = found.setdefault(home[mirror_group(ref.labels)], {})
        parts.setdefault(ref.metric, samples[ref.id])
    return found


def _shown(launch: Launch, parts: Mapping[str, Samples]) -> Shown | None:
    if THROUGHPUT not in parts or RUNNING not in parts:
        return None
    time_ms, throughput = parts[THROUGHPUT]
    running_ms, running = parts[RUNNING]
    common, of_rate, of_running = np.intersect1d(time_ms, running_ms, return_indices=True)
    if not len(common):
        return None
    is_log = launch.version_source == LOG_LINES
    prefill = running_ms[~np.isin(running_ms, time_ms)] if is_log and launch.engine == "sglang" else None
    return Shown(
        common, throughput[of_rate], running[of_running], _at(common, parts.get(LENGTH)), prefill,
        is_log, interval_of(launch),
    )  # fmt: skip


def _at(time_ms: NDArray[np.int64], samples: Samples | None) -> Floats:
    """Return the values of exactly these moments; NaN where there is none."""
    found = np.full(len(time_ms), np.nan)
    if samples is not None:
        _, here, there = np.intersect1d(time_ms, samples[0], return_indices=True)
        found[here] = samples[1][there]
    return found
