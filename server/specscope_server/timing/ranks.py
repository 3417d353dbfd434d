"""How evenly the ranks of one launch work: skew, lock-step, and who is waited for.

In a tensor-parallel group every rank leaves verify at the same moment, because its collectives wait for the
last one. A rank that comes late waits least: its verify is the shortest, and its time outside is the longest.
A device that computes slowly inside verify makes all verify times longer alike; only a trace shows that.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sqlalchemy.orm import Session

from specscope_server.acceptance.schemas import Check
from specscope_server.acceptance.statistics import sum_over
from specscope_server.acceptance.windows import fine_window
from specscope_server.kit.timeparse import to_iso
from specscope_server.kit.web.state import AppState
from specscope_server.models import Launch
from specscope_server.store.lookup import choose_launches, server_by_name
from specscope_server.timing.device_track import DECODE_MODES
from specscope_server.timing.phases import PROBE_CYCLE
from specscope_server.timing.schemas import Level, RankTime, TimingRanks
from specscope_server.timing.series import Scheduler, find_time_series, read_schedulers
from specscope_server.timing.service import Question
from specscope_server.timing.statistics import total
from specscope_server.timing.words import timed_launch

MAX_BUCKETS = 500
APART = 0.05
"""From this skew of verify on, the rank with the shortest is named."""
IN_STEP = 0.02
"""Ranks are scraped at once, but write at moments of their own."""
SLOW_DEVICE = (
    "A device that is slow inside verify makes every rank's verify longer alike: only a trace tells which."
)
NOTHING = "No rank reports times: the device timer and the probe are off"
ALONE = "One scheduler reports times; skew needs two"


def ranks(session: Session, state: AppState, asked: Question) -> TimingRanks:
    """Return times by rank of the newest launch of the range. Raises `NotFound`."""
    row = server_by_name(session, asked.server)
    span = asked.span
    launches = choose_launches(session, row.id, asked.launch, span.from_ms, span.to_ms)[-1:]
    window = fine_window(span.from_ms, span.to_ms, state.scrape_interval_ms, MAX_BUCKETS)
    read = read_schedulers(session, find_time_series(session, launches), window)
    schedulers = read.get(launches[0].id, []) if launches else []
    if asked.rank is not None:
        schedulers = [one for one in schedulers if one.dp_rank == asked.rank]
    level, found = _times(schedulers)
    skew, straggler = _straggler(found)
    return TimingRanks.model_validate(
        {
            "server": asked.server,
            "launch": timed_launch(launches[0]) if launches else None,
            "from": to_iso(window.from_ms),
            "to": to_iso(window.to_ms),
            "is_demo": any(launch.is_demo for launch in launches),
            "evidence": level,
            "evidence_note": _note(level),
            "skew": skew,
            "straggler": straggler,
            "verdict": _verdict(found, skew, straggler),
            "checks": [_lock_step(found), _complete(found, launches)],
            "ranks": found,
        }
    )


def skew_of(schedulers: Sequence[Scheduler]) -> tuple[float | None, str | None, float]:
    """Return (skew of verify inside the worst group, who is waited for, cycles of the rank with fewest)."""
    _, found = _times(schedulers)
    return *_straggler(found), min((item.cycles or 0.0 for item in found), default=0.0)


def _times(schedulers: Sequence[Scheduler]) -> tuple[Level, list[RankTime]]:
    """Return the level that shows most ranks (the probe where both show as many), and what it shows."""
    by_probe = [item for one in schedulers if (item := _by_probe(one)) is not None]
    by_timer = [item for one in schedulers if (item := _by_timer(one)) is not None]
    level, found = (
        (Level.DEVICE_TIMER, by_timer) if len(by_timer) > len(by_probe) else (Level.PROBE, by_probe)
    )
    return (level if found else Level.NONE), _against_median(found)


def _by_probe(one: Scheduler) -> RankTime | None:
    for clock in ("device", "host"):
        cycles = total(one.sum("time.cycles_timed", kind="speculative", clock=clock))
        if cycles <= 0:
            continue
        verify = total(one.sum("time.phase", phase="verify", clock=clock))
        other = sum(
            total(one.sum("time.phase", phase=name, clock=clock)) for name in PROBE_CYCLE if name != "verify"
        )
        return _rank(one, cycles, verify, other)
    return None


def _by_timer(one: Scheduler) -> RankTime | None:
    found = {name: total(one.sum("time.forward", category=name)) for name in
             one.values_of("time.forward", "category")}  # fmt: skip
    cycles = total(sum_over([one.sum("engine.graph_passes", mode=mode) for mode in DECODE_MODES], one.size))
    if cycles <= 0 or not found:
        return None
    verify = found.get("target_verify", found.get("forward_decode", found.get("decode", 0.0)))
    other = sum(found.get(name, 0.0) for name in ("eagle_draft", "eagle_draft_extend", "frozen_kv_draft"))
    return _rank(one, cycles, verify, other)


def _rank(one: Scheduler, cycles: float, verify: float, other: float) -> RankTime:
    stage, member = one.place
    return RankTime(
        rank=f"dp {one.dp_rank}, pp {stage}, tp {member}",
        dp_rank=one.dp_rank,
        pp_rank=stage,
        tp_rank=member,
        cycles=cycles,
        cycle_ms=1_000 * (verify + other) / cycles,
        verify_ms=1_000 * verify / cycles,
        other_ms=1_000 * other / cycles,
        verify_against_median=None,
    )


def _against_median(found: list[RankTime]) -> list[RankTime]:
    """Compare each rank with its own tensor-parallel group: other groups have other requests."""
    for item in found:
        mates = [other.verify_ms or 0.0 for other in found if _group(other) == _group(item)]
        middle = float(np.median(mates))
        if len(mates) > 1 and middle > 0:
            item.verify_against_median = (item.verify_ms or 0.0) / middle - 1
    return sorted(found, key=lambda item: (item.dp_rank, item.pp_rank, item.tp_rank))


def _group(item: RankTime) -> tuple[int, int]:
    return item.dp_rank, item.pp_rank


def _straggler(found: Sequence[RankTime]) -> tuple[float | None, str | None]:
    compared = [item for item in found if item.verify_against_median is not None]
    if not compared:
        return None, None
    spreads = {}
    for item in compared:
        own = [mate.verify_against_median or 0.0 for mate in compared if _group(mate) == _group(item)]
        spreads[_group(item)] = max(own) - min(own)
    worst = max(spreads, key=lambda key: spreads[key])
    members = [item for item in compared if _group(item) == worst]
    first = min(members, key=lambda item: item.verify_against_median or 0.0)
    return spreads[worst], first.rank if spreads[worst] > APART else None


def _verdict(found: Sequence[RankTime], skew: float | None, straggler: str | None) -> str:
    if not found:
        return NOTHING
    if skew is None:
        return ALONE
    if straggler is None:
        return f"Ranks work evenly: verify differs by {100 * skew:.1f} % within a group. {SLOW_DEVICE}"
    return (
        f"The others wait for {straggler}: its verify is the shortest, {100 * skew:.1f} % below the longest, "
        f"so it comes last. {SLOW_DEVICE}"
    )


def _lock_step(found: Sequence[RankTime]) -> Check:
    name = "ranks of a group run the same cycles"
    groups: dict[tuple[int, int], list[float]] = {}
    for item in found:
        groups.setdefault(_group(item), []).append(item.cycles or 0.0)
    several = [counts for counts in groups.values() if len(counts) > 1]
    if not several:
        return Check(name=name, passed=None, message="no group has two ranks that report")
    apart = max((max(counts) - min(counts)) / max(counts) for counts in several)
    low, high = min(map(min, several)), max(map(max, several))
    return Check(name=name, passed=apart <= IN_STEP, message=f"{low:.0f} to {high:.0f} cycles on a rank")


def _complete(found: Sequence[RankTime], launches: Sequence[Launch]) -> Check:
    name = "every rank reports times"
    sizes = [launches[0].tp_size, launches[0].pp_size] if launches else []
    if not found or any(size is None for size in sizes):
        return Check(
            name=name, passed=None, message="the engine did not say its parallel sizes, or none reports"
        )
    launch = launches[0]
    groups = 1 if launch.enable_dp_attention else launch.dp_size or 1
    expected = (launch.tp_size or 1) * (launch.pp_size or 1) * groups // (launch.nnodes or 1)
    members = {item.tp_rank for item in found}
    absent = [str(member) for member in range(launch.tp_size or 1) if member not in members]
    missing = f": missing tp {', '.join(absent[:8])}" if absent and len(found) < expected else ""
    return Check(
        name=name, passed=len(found) >= expected, message=f"{len(found)} of {expected} ranks{missing}"
    )


def _note(level: Level) -> str:
    notes = {
        Level.PROBE: "The probe on each rank; cycles as that rank counted them.",
        Level.DEVICE_TIMER: "The device timer and the passes of each rank.",
    }
    return notes.get(level, NOTHING)
