"""What the probes inside an engine say of themselves: on which rank, doing what, at what cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sqlalchemy import select
from sqlalchemy.orm import Session

from specscope_server.kit.timerange import Window
from specscope_server.models import Latest, Launch
from specscope_server.sources.schemas import ProbeItem
from specscope_server.store.series_reader import SeriesRef, find_series, read_buckets

LEVELS = ("probe.info", "probe.part", "probe.time_every")
COSTS = ("probe.host_time", "probe.wall_time")
COST_MS = 3_600_000
"""The cost is that of the last hour in which the launch was seen."""

RANK_WORDS = (("dp_rank", "dp"), ("pp_rank", "pp"), ("tp_rank", "tp"))
WORST = ("failed", "over_budget", "removed", "simulated", "missing", "not_here", "on")


@dataclass(slots=True)
class _Probe:
    """One rank's probe in the making."""

    info: Mapping[str, str] = field(default_factory=dict)
    parts: dict[str, str] = field(default_factory=dict)
    time_every: int | None = None
    host_seconds: float = 0.0
    wall_seconds: float = 0.0


def read_probes(session: Session, launch: Launch | None, stale_after_ms: int) -> list[ProbeItem]:
    """Return the probes that reported when the launch was last seen, by rank; none without a probe."""
    if launch is None:
        return []
    found = find_series(session, metrics=[*LEVELS, *COSTS], launch_ids=[launch.id])
    probes: dict[str, _Probe] = {}
    since_ms = launch.last_seen_ms - stale_after_ms
    newest = _newest(session, found, since_ms)
    for ref in found:
        if ref.id in newest and ref.metric in LEVELS:
            _take(probes.setdefault(rank_words(ref.labels), _Probe()), ref, newest[ref.id])
    end_ms = launch.last_seen_ms + 1
    costs = [ref for ref in found if ref.metric in COSTS and rank_words(ref.labels) in probes]
    read = read_buckets(session, costs, Window(end_ms - COST_MS, end_ms, COST_MS)) if costs else {}
    for ref in costs:
        if ref.id in read:
            _add_cost(probes[rank_words(ref.labels)], ref, float(read[ref.id].sum.sum()))
    return [_item(rank, probe) for rank, probe in sorted(probes.items())]


def rank_words(labels: Mapping[str, str]) -> str:
    """Return which rank labels speak of, e.g. ``dp 1, pp 0, tp 3``."""
    return (
        ", ".join(f"{word} {labels[name]}" for name, word in RANK_WORDS if name in labels) or "the only one"
    )


def _newest(session: Session, refs: Iterable[SeriesRef], since_ms: int) -> dict[int, float]:
    wanted = [ref.id for ref in refs if ref.metric in LEVELS]
    query = select(Latest.series_id, Latest.value).where(
        Latest.series_id.in_(wanted), Latest.time_ms > since_ms
    )
    return {row.series_id: row.value for row in session.execute(query)}


def _take(probe: _Probe, ref: SeriesRef, value: float) -> None:
    if ref.metric == "probe.time_every":
        probe.time_every = round(value)
    elif value != 1:
        return
    elif ref.metric == "probe.info":
        probe.info = ref.labels
    else:
        part, state = ref.labels.get("part", "?"), ref.labels.get("state", "?")
        known = probe.parts.get(part, "on")
        probe.parts[part] = min(known, state, key=lambda each: WORST.index(each) if each in WORST else 0)


def _add_cost(probe: _Probe, ref: SeriesRef, seconds: float) -> None:
    if ref.metric == "probe.wall_time":
        probe.wall_seconds += seconds
    elif ref.labels.get("where") == "cycle":
        probe.host_seconds += seconds


def _item(rank: str, probe: _Probe) -> ProbeItem:
    share = probe.host_seconds / probe.wall_seconds if probe.wall_seconds else None
    return ProbeItem(
        rank=rank,
        version=probe.info.get("version"),
        engine_version=probe.info.get("engine_version"),
        worker=probe.info.get("worker"),
        clock=probe.info.get("clock"),
        parts=probe.parts,
        is_well=all(state in ("on", "not_here") for state in probe.parts.values()),
        time_every=probe.time_every,
        cost_share=share,
        measured_seconds=probe.wall_seconds,
    )
