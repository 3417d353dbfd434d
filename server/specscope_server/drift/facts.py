"""What a window says against a yardstick. A window's profiles are read once; then a few numbers are kept."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session

from specscope_collectors.states import distances
from specscope_collectors.states.post_norm import normed_square
from specscope_collectors.states.rules import Judged, judge
from specscope_collectors.states.sums import Norms, Sums, added, counted, nothing, sums_of
from specscope_server.drift.kept import KeptByStore
from specscope_server.drift.reading import AT_ONCE, Bodies, bodies, named
from specscope_server.drift.threads import one_thread
from specscope_server.drift.windows import Plan
from specscope_server.drift.yardsticks import Yardstick

KEPT_WINDOWS = 8_192


@dataclass(frozen=True, slots=True)
class Apart:
    """How far two profiles are apart, by statistics that follow the text too; NaN = not known."""

    w1: float = math.nan
    psi: float = math.nan
    ks: float = math.nan
    channel_rms: float = math.nan
    mean_direction: float = math.nan


STATISTICS = ("w1", "psi", "ks", "channel_rms", "mean_direction")


@dataclass(frozen=True, slots=True)
class Facts:
    """One window against a yardstick."""

    plan: Plan
    hidden_size: int
    rows: int
    requests: int
    judged: Judged
    is_comparable: bool
    """Whether the yardstick has this hidden size."""
    norms: Norms
    claimed: int | None
    """Place that the slot ought to be."""
    apart: Apart
    """From the claimed profile."""
    step: Apart | None
    """From the window before it, of the same launch: what noise and text make of it."""
    invariants: Mapping[str, int]
    resultant: float
    square: float | None
    """Mean of (h/w)² with the weight of the final norm; None = not known."""
    square_rows: int = 0
    """Rows that it is of."""
    unusable: tuple[str, ...] = ()
    """Profiles that are left out, and why."""


@dataclass(frozen=True, slots=True)
class Window:
    """What is in a window's profiles together."""

    sums: Sums
    invariants: Mapping[str, int]
    unusable: tuple[str, ...] = ()


_Key = tuple[tuple[int, ...], tuple[int, ...], tuple[str, str]]
_windows: KeptByStore[_Key, Facts] = KeptByStore(KEPT_WINDOWS)


def facts_of(session: Session, plans: Sequence[Plan], yard: Yardstick) -> list[Facts]:
    """Return facts of windows of one place, oldest first as ``plans`` are."""
    kept = _windows.of(session)
    keys = [
        (plan.key, before.key if before else (), yard.key)
        for plan, before in zip(plans, [None, *plans], strict=False)
    ]
    found = [kept.get(key) for key in keys]
    missing = [index for index, facts in enumerate(found) if facts is None]
    if missing:
        with one_thread():
            for index, facts in _made(session, plans, missing, yard):
                found[index] = kept.put(keys[index], facts)
    return [facts for facts in found if facts is not None]


def _made(
    session: Session, plans: Sequence[Plan], missing: Sequence[int], yard: Yardstick
) -> Iterator[tuple[int, Facts]]:
    """Yield facts of the windows at these places, a few at a time, so that few profiles are in memory."""
    read: dict[int, Window] = {}
    for group in _groups(plans, missing):
        wanted = {*group, *(index - 1 for index in group if index)}
        read = {index: window for index, window in read.items() if index in wanted}
        new = sorted(wanted - read.keys())
        read |= dict(zip(new, read_windows(session, [plans[index] for index in new]), strict=True))
        judged = _judged({index: (plans[index], read[index].sums) for index in group}, yard)
        for index in group:
            before = read[index - 1].sums if _follows(plans, index) else None
            yield index, _facts(plans[index], read[index], before, judged.get(index), yard)


def _follows(plans: Sequence[Plan], index: int) -> bool:
    return index > 0 and plans[index - 1].launch_id == plans[index].launch_id


def _groups(plans: Sequence[Plan], missing: Sequence[int]) -> Iterator[list[int]]:
    group: list[int] = []
    for index in missing:
        if group and sum(len(plans[each].entries) for each in [*group, index]) > AT_ONCE:
            yield group
            group = []
        group.append(index)
    if group:
        yield group


def read_windows(session: Session, plans: Sequence[Plan]) -> list[Window]:
    """Return what is in windows; profiles that cannot be used are left out, and named."""
    read = bodies(session, (number for plan in plans for number in plan.key))
    return [_window(plan, read) for plan in plans]


def _window(plan: Plan, read: Bodies) -> Window:
    usable = [read.records[number] for number in plan.key if number in read.records]
    unusable = [named(entry, read.unusable[entry.id]) for entry in plan.entries if entry.id in read.unusable]
    sums = [sums_of(record) for record in usable]
    return Window(
        added(sums) if sums else nothing(plan.entries[0].hidden_size),
        counted(record.invariants for record in usable), tuple(unusable),
    )  # fmt: skip


def _is_comparable(window: Sums, yard: Yardstick) -> bool:
    return yard.hidden_size is not None and window.hidden_size == yard.hidden_size


def _judged(windows: Mapping[int, tuple[Plan, Sums]], yard: Yardstick) -> dict[int, Judged]:
    """Return what the windows say that can be compared, by their place; all are ranked at once."""
    bank = yard.bank
    known = {index: each for index, each in windows.items() if _is_comparable(each[1], yard)}
    if bank is None or not known:
        return {}
    sums = [window for _, window in known.values()]
    scores = zip(bank.vcos_of(sums), bank.dnll_of(sums), strict=True)
    return {
        index: judge(
            window, bank, yard.claimed(plan.slot, plan.boundary),
            yard.profile(plan.slot, plan.phase, plan.boundary), both,
        )
        for (index, (plan, window)), both in zip(known.items(), scores, strict=True)
    }  # fmt: skip


def _facts(plan: Plan, read: Window, before: Sums | None, judged: Judged | None, yard: Yardstick) -> Facts:
    window = read.sums
    profile = yard.profile(plan.slot, plan.phase, plan.boundary) if judged else None
    same = before if before is not None and before.hidden_size == window.hidden_size else None
    return Facts(
        plan, window.hidden_size, window.rows, window.requests,
        judged or judge(window, None, None, None), judged is not None, window.norms,
        yard.claimed(plan.slot, plan.boundary) if judged else None,
        apart(window, profile) if profile else Apart(), apart(window, same) if same else None,
        read.invariants, distances.resultant(window), _square(window, yard), window.energy_rows,
        read.unusable,
    )  # fmt: skip


def _square(window: Sums, yard: Yardstick) -> float | None:
    weight = yard.training.norm_weight if yard.training is not None else None
    return normed_square(window, weight) if weight is not None else None


def apart(window: Sums, other: Sums) -> Apart:
    """Return how far a window is from another profile."""
    return Apart(
        distances.w1(window.norms, other.norms), distances.psi(window.norms, other.norms),
        distances.ks(window.norms, other.norms), distances.channel_rms(window, other),
        distances.direction(window, other),
    )  # fmt: skip
