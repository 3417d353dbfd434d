"""What acceptance says of itself: self-checks that fail, tiers that flap, a rank that falls behind."""

from __future__ import annotations

import numpy as np
from sqlalchemy.orm import Session

from specscope_server.acceptance import numbers
from specscope_server.acceptance.context import Context
from specscope_server.acceptance.gather import LaunchData, RankData
from specscope_server.acceptance.plain import ended
from specscope_server.acceptance.requests import histograms_agree
from specscope_server.acceptance.rolling import rolling
from specscope_server.acceptance.schemas import Check
from specscope_server.acceptance.service import engine_rate
from specscope_server.acceptance.statistics import MIN_CYCLES, MIN_WINDOWS, Floats
from specscope_server.acceptance.verdict import checks
from specscope_server.kit.signal import ReadOne, Signal, SignalQuery, SignalSeries, Target, Why, each_server

TIERS = ("spec.num_draft_tokens", "spec.num_steps")
MIN_LENGTH = 1.05
"""With a median τ below this all ranks accept next to nothing: none is the odd one."""


def _failed_checks(session: Session, query: SignalQuery, server: Target) -> list[SignalSeries]:
    rolled = rolling(session, query, server)
    contexts = rolled.contexts
    if not any(context.measured.launches for context in contexts):
        return []
    found = [_checks(session, server, context) for context in contexts]
    failed = [[check for check in one if check.passed is False] for one in found]
    made = np.array([sum(check.passed is not None for check in one) for one in found], dtype=np.float64)
    newest = "; ".join(f"{check.name}: {check.message}" for check in failed[-1])
    whys = [_why_checked(*pair) for pair in zip(contexts, made, strict=True)]
    value = np.where(np.array(whys) == Why.OK, [float(len(one)) for one in failed], np.nan)
    series = SignalSeries(
        {"server": server.name}, value, np.array(whys, dtype=np.uint8), made, note=newest,
        evidence={"failed": [check.name for check in failed[-1]]},
    )  # fmt: skip
    return ended(query, rolled.launches, [series], keeps=True)


def _why_checked(context: Context, made: float) -> Why:
    if made:
        return Why.OK
    return Why.IDLE if context.measured.ends_idle else Why.NO_DATA


def _checks(session: Session, server: Target, context: Context) -> list[Check]:
    """Return the summary's checks, where there are enough cycles to tell."""
    measured = context.measured
    if not measured.launches or 0 < measured.counters.calls < MIN_CYCLES:
        return []
    ids = [data.launch.id for data in measured.launches]
    agree = histograms_agree(session, server.id, ids, measured.window) if measured.requests else None
    return checks(context, numbers.accept_length(context), engine_rate(context), agree)


def _tier_switches(session: Session, query: SignalQuery, server: Target) -> list[SignalSeries]:
    contexts = rolling(session, query, server).contexts
    found = [_switches(context) for context in contexts]
    if not any(samples for _, samples in found):
        return []
    n = np.array([samples for _, samples in found], dtype=np.float64)
    value = np.where(n > 1, [float(count) for count, _ in found], np.nan)
    why = np.where(n > 1, Why.OK, Why.NO_DATA).astype(np.uint8)
    return [SignalSeries({"server": server.name}, value, why, n)]


def _switches(context: Context) -> tuple[int, int]:
    """Return (changes of D or K between two readings, of the rank with most; readings)."""
    rows = [_changes(rank) for data in context.measured.launches for rank in data.ranks.values()]
    return max((row[0] for row in rows), default=0), max((row[1] for row in rows), default=0)


def _changes(rank: RankData) -> tuple[int, int]:
    for metric in TIERS:
        seen = rank.last.get(metric, np.empty(0))
        seen = seen[~np.isnan(seen)]
        if len(seen):
            return int((np.diff(seen) != 0).sum()), len(seen)
    return 0, 0


def _weakest_rank(session: Session, query: SignalQuery, server: Target) -> list[SignalSeries]:
    contexts = rolling(session, query, server).contexts
    found = [_weakest(context) for context in contexts]
    if all(one is None for one in found):
        return []
    value = np.array([np.nan if one is None else one[0] for one in found])
    n = np.array([np.nan if one is None else one[1] for one in found], dtype=np.float64)
    idle = np.array([context.measured.ends_idle for context in contexts])
    why = np.where(~np.isnan(value), Why.OK, np.where(idle, Why.IDLE, Why.NO_DATA)).astype(np.uint8)
    newest = found[-1]
    lengths = {} if newest is None else {str(rank): round(length, 4) for rank, length in newest[2].items()}
    note = "" if newest is None else f"dp {min(newest[2], key=lambda rank: newest[2][rank])} accepts least"
    return [
        SignalSeries({"server": server.name}, value, why, n, note=note, evidence={"accept_length": lengths})
    ]  # fmt: skip


def _weakest(context: Context) -> tuple[float, int, dict[int, float]] | None:
    """Return ((lowest τ − 1) / (median τ − 1), its windows, τ by rank) of the newest launch's ranks."""
    data = context.newest
    lengths = {} if data is None else _lengths(data)
    if len(lengths) < 2:
        return None
    values = {rank: float(array.mean()) for rank, array in lengths.items()}
    middle = float(np.median(list(values.values())))
    if middle < MIN_LENGTH:
        return None
    lowest = min(values, key=lambda rank: values[rank])
    return (values[lowest] - 1) / (middle - 1), len(lengths[lowest]), values


def _lengths(data: LaunchData) -> dict[int, Floats]:
    """Return each rank's own τ while it was active, of ranks with enough windows."""
    active, _ = data.activity
    found: dict[int, Floats] = {}
    for rank in data.ranks.values():
        running = rank.mean.get("requests.running")
        length = rank.mean.get("spec.accept_length")
        if length is None:
            continue
        keep = active & ~np.isnan(length) & (length >= 1)
        keep &= True if running is None else np.nan_to_num(running) > 0
        if keep.sum() >= MIN_WINDOWS:
            found[rank.dp_rank] = length[keep]
    return found


def _series_signal(name: str, unit: str, meaning: str, read: ReadOne, n_unit: str) -> Signal:
    return Signal(
        f"acceptance.{name}", unit, meaning, each_server(read), n_unit=n_unit, page="/acceptance",
    )  # fmt: skip


SELF_SIGNALS = (
    _series_signal(
        "failed_checks", "checks", "Self-checks that fail: numbers that must be equal are not.",
        _failed_checks, "checks",
    ),
    _series_signal(
        "tier_switches", "switches", "Changes of D (or K) between two readings, of the rank with most.",
        _tier_switches, "readings",
    ),
    _series_signal(
        "weakest_rank", "1",
        "Accepted drafts per cycle of the data-parallel rank that accepts least, over the median rank's.",
        _weakest_rank, "buckets",
    ),
)  # fmt: skip
