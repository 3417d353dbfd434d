"""Self-checks of what was measured about time, each with the numbers that it compares."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from specscope_server.acceptance.schemas import Check
from specscope_server.timing.evidence import TITLES, agreement_checks
from specscope_server.timing.facts import Facts
from specscope_server.timing.measure import LEVELS, Timed
from specscope_server.timing.phases import Phase
from specscope_server.timing.statistics import total
from specscope_server.timing.tracks import Track

SUM_TOLERANCE = 0.05
"""Devices finish cycles after the host left them, and sums are written up to a second late."""
GAUGE_SHARE, GAUGE_REQUESTS = 0.35, 0.5
"""The gauge of running requests is written after prefills and every 40 steps: it misses requests that end."""


def checks_of(timed: Timed, facts: Facts | None) -> list[Check]:
    """Return every self-check; ``passed`` None = cannot be checked here."""
    return [
        *_believable(timed),
        _adds_up(facts),
        _rate_holds(facts),
        *agreement_checks(timed),
        _ranks(timed),
    ]


def _believable(timed: Timed) -> list[Check]:
    """Phases must fit into their cycles, and work into the time observed: of every level that is there."""
    found = []
    for level in LEVELS:
        tracks = [one.tracks[level] for one in timed.launches if level in one.tracks]
        if not tracks:
            continue
        name = f"Σ phases ≤ cycle ({TITLES[level]})"
        problem = next((track.problem for track in tracks if track.problem), "")
        if problem:
            found.append(Check(name=name, passed=False, message=f"{problem}; this level is not used"))
            continue
        phases = sum(total(value) for track in tracks for value in track.cycle.values())
        found.append(
            Check(name=name, passed=True, message=f"{phases:.3f} s of {_wall(tracks):.3f} s observed")
        )
    return found or [Check(name="Σ phases ≤ cycle", passed=None, message="nothing was timed in this range")]


def _wall(tracks: Sequence[Track]) -> float:
    return sum(total(track.wall) for track in tracks)


def _adds_up(facts: Facts | None) -> Check:
    name = "the parts add up to the wall time"
    if facts is None:
        return Check(name=name, passed=None, message="nothing was timed in this range")
    track = facts.track
    parts = sum(total(value) for group in (track.cycle, track.beside) for value in group.values())
    wall = total(track.wall)
    message = f"{parts:.3f} s of parts in {wall:.3f} s observed, unattributed included"
    return Check(name=name, passed=abs(parts - wall) <= SUM_TOLERANCE * wall, message=message)


def _rate_holds(facts: Facts | None) -> Check:
    """Throughput × active time per cycle = requests × τ, with the requests that the gauge says."""
    name = "throughput × T = running × τ"
    running = _running(facts)
    if facts is None or facts.batch is None or running is None:
        return Check(name=name, passed=None, message="running requests or tokens are not known")
    message = f"{facts.batch:.2f} requests from tokens and cycles, {running:.2f} running by the gauge"
    apart = abs(facts.batch - running)
    return Check(name=name, passed=apart <= GAUGE_SHARE * running + GAUGE_REQUESTS, message=message)


def _running(facts: Facts | None) -> float | None:
    """Return requests per scheduler by the gauge, weighted by cycles."""
    if facts is None:
        return None
    weighted, cycles = 0.0, 0.0
    for one in facts.launches:
        if one.data is None:
            continue
        running = one.data.running / max(len(one.data.ranks), 1)
        track = one.tracks[facts.level]
        seen = ~np.isnan(running) & ~np.isnan(track.cycles) & (running > 0)
        weighted += float((running[seen] * track.cycles[seen]).sum())
        cycles += float(track.cycles[seen].sum())
    return weighted / cycles if cycles else None


def _ranks(timed: Timed) -> Check:
    name = "every expected rank reports"
    found = timed.context.coverage
    if found is None or timed.context.rank is not None:
        reason = (
            "only one rank was asked for" if timed.context.rank is not None else "no launch in this range"
        )
        return Check(name=name, passed=None, message=reason)
    message = f"{found.text} ({found.note})" if found.note else found.text
    return Check(name=name, passed=found.is_complete, message=message)


def unattributed_share(facts: Facts) -> float:
    """Return the share of the cycle that no source explains."""
    whole = total(facts.track.cycle_seconds)
    rest = facts.track.cycle.get(Phase.UNATTRIBUTED)
    return total(rest) / whole if rest is not None and whole else 0.0
