"""Two captures, phase by phase and class of kernel by class of kernel."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from specscope_collectors.observations import TracePhase, TraceSummary
from specscope_server.store.trace_writer import floats, occurrences
from specscope_server.traces.schemas import ChangeItem
from specscope_server.traces.statistics import Floats, change_of, mean_over_ranks

WHOLE = "all"
ORDER = (
    "cycle", "draft", "verify", "sampling", "draft_extend", "after_verify", "unattributed", "prefill",
    "prefill_draft_extend", "decode",
)  # fmt: skip


def changes_of(a: TraceSummary, b: TraceSummary) -> list[ChangeItem]:
    """Return the changes from a to b of every phase that both hold, whole phases first in each."""
    found = []
    before, after = _phases(a), _phases(b)
    for phase in ORDER:
        if phase not in before or phase not in after:
            continue
        own, others = before[phase], after[phase]
        names = [WHOLE, *sorted((own.keys() | others.keys()) - {WHOLE})]
        items = [_item(phase, name, own, others) for name in names]
        found += [items[0], *sorted(items[1:], key=lambda item: -abs(item.change_ms))]
    return found


def notes_of(a: TraceSummary, b: TraceSummary) -> Iterator[str]:
    """Yield what makes the two hard to compare."""
    if len(a.ranks) != len(b.ranks):
        yield f"a has {len(a.ranks)} ranks and b has {len(b.ranks)}: means over ranks are compared."
    bases = {rank.basis for rank in a.ranks}, {rank.basis for rank in b.ranks}
    if bases[0] != bases[1]:
        words = [", ".join(sorted(each)) for each in bases]
        yield f"Phases were found differently ({words[0]}; {words[1]}): that alone may make a difference."
    sizes = _batch_sizes(a), _batch_sizes(b)
    if sizes[0] and sizes[1] and max(sizes) > 1.1 * min(sizes):
        yield f"Mean batch sizes differ: {sizes[0]:.3g} in a, {sizes[1]:.3g} in b. Compare under equal load."
    yield "Intervals cover the scatter of cycles within each capture, not the change of load between them."


def verdict_of(changes: list[ChangeItem]) -> str:
    """Say what happened to the cycle, or else to verify, and which class did most of it."""
    whole = {item.phase: item for item in changes if item.kernel_class == WHOLE}
    main = whole.get("cycle") or whole.get("verify")
    if main is None:
        return "The two captures have no phase in common."
    name = "cycle" if main.phase == "cycle" else "verify"
    if not main.is_shown or main.change is None:
        return f"No change of the {name} is shown ({main.a_ms:.2f} → {main.b_ms:.2f} ms)."
    words = f"The {name} takes {100 * abs(main.change):.1f} % {'less' if main.change < 0 else 'more'}"
    words += f" ({main.a_ms:.2f} → {main.b_ms:.2f} ms)"
    parts = [
        item for item in changes if item.kernel_class != WHOLE and item.is_shown and item.phase in _PARTS
    ]
    same = [item for item in parts if (item.change_ms < 0) == (main.change_ms < 0)]
    most = max(same, key=lambda item: abs(item.change_ms), default=None)
    if most is not None:
        words += f"; most of it is {most.kernel_class.replace('_', '-')} in {most.phase.replace('_', '-')}"
        words += f" ({most.change_ms:+.2f} ms)"
    return f"{words}.".replace("-0.", "−0.").replace("(-", "(−")


_PARTS = ("draft", "verify", "sampling", "draft_extend", "after_verify")


def _phases(record: TraceSummary) -> dict[str, dict[str, Floats]]:
    """Return phase → class → ms of each occurrence, mean over ranks."""
    by_phase: dict[str, list[TracePhase]] = {}
    for rank in record.ranks:
        for phase in rank.phases:
            by_phase.setdefault(phase.phase, []).append(phase)
    return {name: _classes(phases) for name, phases in by_phase.items()}


def _classes(phases: list[TracePhase]) -> dict[str, Floats]:
    parts = [dict(occurrences(phase)) for phase in phases]
    lengths = [len(phase.wall_ms) // 4 for phase in phases]
    names = {name for part in parts for name in part}
    result = {
        name: mean_over_ranks(
            [part.get(name, np.zeros(length)) for part, length in zip(parts, lengths, strict=True)]
        )
        for name in names
    }
    result[WHOLE] = mean_over_ranks([floats(phase.wall_ms) for phase in phases])
    return result


def _item(phase: str, name: str, before: dict[str, Floats], after: dict[str, Floats]) -> ChangeItem:
    a = before.get(name, np.zeros(len(before[WHOLE])))
    b = after.get(name, np.zeros(len(after[WHOLE])))
    found = change_of(a, b)
    return ChangeItem(
        phase=phase, kernel_class=name, a_ms=found.a, b_ms=found.b, change_ms=found.change,
        low_ms=found.low, high_ms=found.high, change=found.change / found.a if found.a else None,
        a_count=len(a), b_count=len(b), is_shown=found.is_shown,
    )  # fmt: skip


def _batch_sizes(record: TraceSummary) -> float:
    """Return the mean batch size of verify; 0 = not said."""
    counts: dict[int, int] = {}
    for rank in record.ranks:
        for phase in rank.phases:
            for size, count in phase.batch_sizes.items() if phase.phase == "verify" else ():
                counts[size] = counts.get(size, 0) + count
    total = sum(counts.values())
    return sum(size * count for size, count in counts.items()) / total if total else 0.0
