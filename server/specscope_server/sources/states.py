"""What the probes found of hidden states that cannot be in healthy ones, in words, with the ranks named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from sqlalchemy.orm import Session

from specscope_server.kit.timerange import Window
from specscope_server.models import Launch
from specscope_server.sources.probes import rank_words
from specscope_server.sources.schemas import StateFinding, StatesItem
from specscope_server.store.series_reader import SeriesRef, find_series, read_buckets, read_levels

ROWS, INVARIANTS = "states.rows", "states.invariants"
CHECK_NORM, CHECK_SAMPLE = "states.check_ln_norm", "states.check_sample"
WAITING = "states.push_waiting"
LOOKED_MS, CHECKED_MS = 3_600_000, 300_000
"""Counts are those of the last hour in which the launch was seen, comparisons of ranks those of the last five
minutes: a few scrapes, as one may catch ranks at different samples.
"""
RANKS_APART = 0.02
"""Nats between ranks that hold the same rows; the same sums in another order make far less."""

WORDS = {
    "nonfinite_rows": "NaN or infinite values in {n} sampled row{s}",
    "zero_rows": "{n} sampled row{s} of zeros",
    "duplicate_rows": "{n} sampled row{s} equal to rows of other tokens: stale states, or padding",
    "bad_width": "states are no multiple of the hidden size wide, so nothing is profiled",
    "width_changed": "{n} forward{s} with states as wide as no other",
    "embedding": "one slot was the embedding, no layer's output, in {n} window{s}",
    "capture_differs": "prefill and verification captured different layers in {n} window{s}; SGLang 0.5.6 to "
    "0.5.10 captures graphs before it reads the draft's layers",
}
"""Kind of invariant → what it says. The counts of compared pairs say nothing by themselves."""

Rank = tuple[tuple[str, str], ...]
Values = tuple[SeriesRef, Mapping[int, float]]
"""A series with its values by time."""


def read_states(session: Session, launch: Launch | None) -> StatesItem | None:
    """Return what was looked at and found; None where no probe profiles states."""
    if launch is None:
        return None
    names = [ROWS, INVARIANTS, CHECK_NORM, CHECK_SAMPLE, WAITING]
    series = find_series(session, metrics=names, launch_ids=[launch.id])
    if not series:
        return None
    end_ms = launch.last_seen_ms + 1
    counted = [ref for ref in series if ref.metric in (ROWS, INVARIANTS)]
    read = read_buckets(session, counted, Window(end_ms - LOOKED_MS, end_ms, LOOKED_MS)) if counted else {}
    totals = [(ref, float(read[ref.id].sum.sum())) for ref in counted if ref.id in read]
    levels = [ref for ref in series if ref.metric not in (ROWS, INVARIANTS)]
    samples = read_levels(session, levels, end_ms - CHECKED_MS, end_ms) if levels else {}
    values = [
        (ref, dict(zip(*(each.tolist() for each in samples[ref.id]), strict=True)))
        for ref in levels
        if ref.id in samples
    ]
    return StatesItem(
        rows=round(sum(total for ref, total in totals if ref.metric == ROWS)),
        compared_ranks=len({_rank(ref) for ref, _ in values if ref.metric == CHECK_NORM}),
        waiting=_waiting(values),
        findings=[*_ranks_apart(values), *_counted(totals)],
    )


def _counted(totals: Sequence[tuple[SeriesRef, float]]) -> list[StateFinding]:
    found = []
    for kind, words in WORDS.items():
        own = {
            rank_words(ref.labels): total
            for ref, total in totals
            if ref.metric == INVARIANTS and ref.labels.get("kind") == kind and total > 0
        }
        if own:
            count = round(sum(own.values()))
            text = words.format(n=f"{count:,}", s="" if count == 1 else "s")
            found.append(StateFinding(kind=kind, words=text, ranks=sorted(own), count=count))
    return found


def _ranks_apart(values: Sequence[Values]) -> list[StateFinding]:
    """Name slots of which ranks of a group hold different states, and the ranks, in their newest sample."""
    newest: dict[tuple[Rank, str], tuple[float, dict[str, float]]] = {}
    for (group, slot, sample), held in _same_samples(values).items():
        if len(held) > 1 and sample >= newest.get((group, slot), (-1.0, {}))[0]:
            newest[group, slot] = sample, held
    found = []
    for (_, slot), (_, held) in sorted(newest.items()):
        apart = max(held.values()) - min(held.values())
        if apart > RANKS_APART:
            words = (
                f"slot {slot}: ranks hold different states of the same rows, mean ln‖h‖ is {apart:.3f} nats "
                "apart: partial sums, an all-reduce is missing"
            )
            found.append(
                StateFinding(kind="ranks_disagree", words=words, ranks=_odd_ones(held), count=len(held))
            )
    return found


def _same_samples(
    values: Sequence[Values],
) -> dict[tuple[Rank, str, float], dict[str, float]]:
    """Return (group, slot, number of sample) → rank in words → mean ln‖h‖."""
    numbers = {_rank(ref): found for ref, found in values if ref.metric == CHECK_SAMPLE}
    held: dict[tuple[Rank, str, float], dict[str, float]] = {}
    for ref, found in values:
        if ref.metric != CHECK_NORM:
            continue
        rank = _rank(ref)
        group = tuple(pair for pair in rank if pair[0] != "tp_rank")
        for time_ms, value in found.items():
            sample = numbers.get(rank, {}).get(time_ms)
            if sample is not None:
                key = group, ref.labels.get("slot", "?"), sample
                held.setdefault(key, {})[rank_words(ref.labels)] = value
    return held


def _odd_ones(held: Mapping[str, float]) -> list[str]:
    """Return the ranks that are away from the middle; all of them where there is none."""
    middle = median(held.values())
    near = [rank for rank, value in held.items() if abs(value - middle) <= RANKS_APART / 2]
    return sorted(rank for rank in held if rank not in near) if 2 * len(near) > len(held) else sorted(held)


def _waiting(values: Sequence[Values]) -> int | None:
    newest = [found[max(found)] for ref, found in values if ref.metric == WAITING]
    return round(sum(newest)) if newest else None


def _rank(ref: SeriesRef) -> Rank:
    return tuple(sorted((name, value) for name, value in ref.labels.items() if name != "slot"))
