"""Compare two sides prompt by prompt and say in words what it shows (pure)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from specscope_server.canary.reading import Asked
from specscope_server.canary.runs import counts_of, seconds_of
from specscope_server.canary.schemas import CanaryChange, CanaryPair
from specscope_server.canary.statistics import MIN_PAIRS, Paired, paired_change

SERIOUS = 0.02
"""A loss of this share of τ or more costs what a wrong layer costs; a smaller one is worth a look."""
ACCEPT_LENGTH, SAME_OUTPUT, LATENCY = "accept_length", "accept_length_same_output", "e2e_seconds"


def pairs_of(before: Sequence[Asked], after: Sequence[Asked]) -> list[CanaryPair]:
    """Return the prompts that both sides asked; each pools all runs of its side."""
    a, b = _by_prompt(before), _by_prompt(after)
    return [_pair(prompt, a[prompt], b[prompt]) for prompt in sorted(a.keys() & b.keys())]


def _by_prompt(answers: Sequence[Asked]) -> Mapping[str, list[Asked]]:
    found: dict[str, list[Asked]] = {}
    for each in answers:
        found.setdefault(each.prompt, []).append(each)
    return found


def _pair(prompt: str, before: Sequence[Asked], after: Sequence[Asked]) -> CanaryPair:
    a, b = counts_of(before), counts_of(after)
    return CanaryPair(
        prompt=prompt,
        a_accept_length=a.accept_length,
        b_accept_length=b.accept_length,
        a_cycles=a.cycles,
        b_cycles=b.cycles,
        a_e2e_seconds=seconds_of(before),
        b_e2e_seconds=seconds_of(after),
        # One output in common is enough: near ties may flip from run to run within one launch.
        same_output=bool({each.output for each in before} & {each.output for each in after}),
    )


def changes_of(pairs: Sequence[CanaryPair]) -> list[CanaryChange]:
    """Return the changes of accept length (all prompts; those with equal output) and of latency."""
    lengths = [(p.a_accept_length, p.b_accept_length) for p in pairs]
    same = [(p.a_accept_length, p.b_accept_length) for p in pairs if p.same_output]
    seconds = [(p.a_e2e_seconds, p.b_e2e_seconds) for p in pairs]
    named = ((ACCEPT_LENGTH, lengths), (SAME_OUTPUT, same), (LATENCY, seconds))
    return [_change(name, _compared(values)) for name, values in named]


def _compared(values: Sequence[tuple[float | None, float | None]]) -> Paired:
    both = [(a, b) for a, b in values if a and b]
    a, b = (np.array(side, dtype=np.float64) for side in (zip(*both, strict=True) if both else ((), ())))
    return paired_change(a, b)


def _change(name: str, paired: Paired) -> CanaryChange:
    return CanaryChange(
        name=name, pairs=paired.n, change=paired.change, low=paired.low, high=paired.high,
        p_value=paired.p_value, lower=paired.lower, higher=paired.higher, is_shown=paired.is_shown,
    )  # fmt: skip


def verdict_of(changes: Sequence[CanaryChange], pairs: Sequence[CanaryPair]) -> tuple[str, str]:
    """Return (state, words) about the accept length."""
    found = next(change for change in changes if change.name == ACCEPT_LENGTH)
    if not pairs:
        return "unknown", "No prompt was asked on both sides"
    if found.pairs < MIN_PAIRS or found.change is None or found.low is None or found.high is None:
        return "unknown", f"Too few pairs to tell: {found.pairs} of at least {MIN_PAIRS}"
    bounds = f"95 % interval {_percent(found.low)} … {_percent(found.high)}"
    if not found.is_shown:
        return "ok", f"No change of the accept length is shown over {found.pairs} pairs ({bounds})"
    moved = f"{found.lower} of {found.pairs} prompts fell, {found.higher} rose"
    state = "ok" if found.change > 0 else "bad" if found.change <= -SERIOUS else "warn"
    direction = "fell" if found.change < 0 else "rose"
    return (
        state,
        f"The accept length {direction} by {_percent(abs(found.change), sign=False)} ({bounds}; {moved})",
    )


def _percent(share: float, *, sign: bool = True) -> str:
    text = f"{share * 100:+.1f} %" if sign else f"{share * 100:.1f} %"
    return text.replace("-", "−")
