"""What is found of a launch as a whole: claims that disagree, phases and ranks that differ."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy.orm import Session

from specscope_collectors.states.distances import quantiles
from specscope_collectors.states.rules import LEAST_ROWS
from specscope_server.drift.cells import Judgement
from specscope_server.drift.schemas import CellState, Invariant
from specscope_server.drift.words import listed, measured_of
from specscope_server.drift.yardsticks import Yardstick
from specscope_server.store.series_reader import SeriesRef, find_series, read_levels

CLAIMS, DUMP, PHASES, RANKS = "claims", "training_boundaries", "phases", "ranks"
CHECK_NORM, CHECK_SAMPLE = "states.check_ln_norm", "states.check_sample"
CLAIMS_TITLE = "Boundaries captured and trained"
APART = 0.5
"""Nats between the medians of ln‖h‖ in prefill and verify: other text makes a fraction of that."""
RANKS_APART = 0.02
"""Nats between ranks that hold the same rows; the same sums in another order make far less."""
CHECKED_MS = 1_800_000


def claims_of(cells: Sequence[Judgement], yard: Yardstick) -> list[Invariant]:
    """Compare what the engine says it captures, what training says, and what training's states are."""
    if yard.training is None:
        return []
    slots = sorted(yard.training.slots)
    captured = {cell.slot: cell.captured for cell in cells if cell.captured is not None}
    served = [captured.get(slot) for slot in slots]
    trained = [yard.trained(slot) for slot in slots]
    return [
        _equal(
            CLAIMS, "Boundaries captured and trained", served, trained, "the engine captures", "trained on"
        ),
        *_dump(slots, yard),
    ]


def _dump(slots: Sequence[int], yard: Yardstick) -> list[Invariant]:
    """Say whether the training dump is of the boundaries that it says."""
    assert yard.training is not None
    if yard.boundaries is None:
        return []
    told = [yard.training.told(slot) for slot in slots]
    measured = [yard.measured.get(slot) for slot in slots]
    title = "Boundaries that the training dump names"
    return [_equal(DUMP, title, told, measured, "it says", "its states are nearest to")]


def _equal(
    kind: str, title: str, one: Sequence[int | None], other: Sequence[int | None], said: str, against: str
) -> Invariant:
    pairs = [(a, b) for a, b in zip(one, other, strict=True) if a is not None and b is not None]
    if not pairs:
        nothing = "one side does not say"
        return Invariant(kind=kind, title=title, passed=None, count=None, looked_at=None, message=nothing)
    differ = sum(a != b for a, b in pairs)
    message = f"{said} {listed([a for a, _ in pairs])}, {against} {listed([b for _, b in pairs])}"
    return Invariant(
        kind=kind, title=title, passed=not differ, count=differ, looked_at=len(pairs), message=message
    )


def phases_of(cells: Sequence[Judgement], yard: Yardstick) -> Invariant:
    """Say whether prefill and verification captured the same layers."""
    title = "Prefill and verification capture the same"
    found = []
    looked_at = 0
    for slot in sorted({cell.slot for cell in cells}):
        own = {cell.phase: cell for cell in cells if cell.slot == slot}
        one, other = own.get("prefill"), own.get("verify_accepted")
        if one is None or other is None or not _can_compare(one) or not _can_compare(other):
            continue
        looked_at += 1
        words = _differ(one, other, yard)
        if words:
            found.append(f"slot {slot}: {words}")
    if not looked_at:
        nothing = "needs 64 rows of each"
        return Invariant(kind=PHASES, title=title, passed=None, count=None, looked_at=None, message=nothing)
    return Invariant(
        kind=PHASES, title=title, passed=not found, count=len(found), looked_at=looked_at,
        message="; ".join(found) or "in every slot",
    )  # fmt: skip


def _can_compare(cell: Judgement) -> bool:
    return cell.newest is not None and cell.newest.norms.rows >= LEAST_ROWS


def _differ(one: Judgement, other: Judgement, yard: Yardstick) -> str:
    """Return how two phases of a slot differ; empty: they do not."""
    assert one.newest is not None
    assert other.newest is not None
    if CellState.SUSPECTED not in (one.state, other.state):
        measured = measured_of(one, yard), measured_of(other, yard)
        if None not in measured and measured[0] != measured[1]:
            return f"boundary {measured[0]} in prefill, {measured[1]} in verification"
    medians = [quantiles(each.newest.norms, [0.5])[0] for each in (one, other) if each.newest]
    apart = abs(medians[0] - medians[1])
    return f"medians of ln‖h‖ are {apart:.2f} nats apart" if apart > APART else ""


def ranks_of(session: Session, launch_id: int | None, to_ms: int) -> Invariant | None:
    """Compare what ranks of a tensor-parallel group hold of the same rows; None: there is one rank."""
    if launch_id is None:
        return None
    series = find_series(session, metrics=[CHECK_NORM, CHECK_SAMPLE], launch_ids=[launch_id])
    if len({ref.labels.get("tp_rank") for ref in series}) < 2:
        return None
    read = read_levels(session, series, to_ms - CHECKED_MS, to_ms + 1)
    apart = _apart(series, {key: dict(zip(*map(list, both), strict=True)) for key, both in read.items()})
    title = "Ranks hold the same states"
    if not apart:
        nothing = "no two ranks reported the same sample in the last half hour"
        return Invariant(kind=RANKS, title=title, passed=None, count=None, looked_at=None, message=nothing)
    differ = sum(each > RANKS_APART for each in apart)
    message = f"mean ln‖h‖ of the same rows is at most {max(apart):.3f} nats apart"
    return Invariant(
        kind=RANKS, title=title, passed=not differ, count=differ, looked_at=len(apart),
        message=f"{message}: partial sums are handed on" if differ else message,
    )  # fmt: skip


def _apart(series: Sequence[SeriesRef], read: dict[int, dict[int, float]]) -> list[float]:
    """Return the spread over ranks of each slot of each sample that several of them report."""
    samples = {_rank(ref): read.get(ref.id, {}) for ref in series if ref.metric == CHECK_SAMPLE}
    values: dict[tuple[object, ...], dict[str, float]] = {}
    for ref in series:
        if ref.metric != CHECK_NORM:
            continue
        rank = _rank(ref)
        group = tuple(pair for pair in rank if pair[0] != "tp_rank")
        numbers = samples.get(rank, {})
        for time_ms, value in read.get(ref.id, {}).items():
            if time_ms in numbers:
                key = (group, ref.labels.get("slot"), numbers[time_ms])
                values.setdefault(key, {})[ref.labels.get("tp_rank", "")] = value
    return [max(each.values()) - min(each.values()) for each in values.values() if len(each) > 1]


def _rank(ref: SeriesRef) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, value) for name, value in ref.labels.items() if name != "slot"))
